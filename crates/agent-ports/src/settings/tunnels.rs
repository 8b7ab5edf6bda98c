//! Tunnels in the settings.

use holdfast_protocol::report::TUNNELS_MAX;

use crate::model::tunnel::Tunnel;

/// More connections than any tunnel has.
const CONNECTIONS_MAX: u32 = 32;

/// The first mistake that the types could not refuse, with its key.
#[must_use]
pub fn mistake(tunnels: &[Tunnel]) -> Option<(String, &'static str)> {
    if tunnels.len() > TUNNELS_MAX {
        return Some(("tunnel".to_owned(), "at most 8 tunnels"));
    }
    tunnels.iter().enumerate().find_map(|(index, tunnel)| {
        let at = |field: &str| format!("tunnel[{index}].{field}");
        let mut earlier = tunnels.iter().take(index);
        if earlier.any(|other| other.name == tunnel.name || other.unit == tunnel.unit) {
            return Some((at("name"), "a tunnel and its unit are named once"));
        }
        if tunnel.metrics.is_some_and(|metrics| !metrics.ip().is_loopback() || metrics.port() == 0) {
            return Some((
                at("metrics"),
                "an address of the loopback with its port, such as 127.0.0.1:20241",
            ));
        }
        let possible = (1..=CONNECTIONS_MAX).contains(&tunnel.connections);
        (!possible).then(|| (at("connections"), "1 to 32 connections"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<Option<String>, toml::de::Error> {
        #[derive(serde::Deserialize)]
        struct Tunnels {
            tunnel: Vec<Tunnel>,
        }
        toml::from_str::<Tunnels>(text).map(|all| mistake(&all.tunnel).map(|(at, _)| at))
    }

    #[test]
    fn tunnels_are_checked() {
        let one = "[[tunnel]]\nname = \"cf\"\nunit = \"cloudflared.service\"\n";
        assert_eq!(said(one).unwrap(), None);
        for (more, at) in [
            ("metrics = \"10.0.0.1:20241\"", "tunnel[0].metrics"),
            ("metrics = \"127.0.0.1:0\"", "tunnel[0].metrics"),
            ("connections = 0", "tunnel[0].connections"),
            ("[[tunnel]]\nname = \"cf\"\nunit = \"b.service\"", "tunnel[1].name"),
            ("[[tunnel]]\nname = \"b\"\nunit = \"cloudflared.service\"", "tunnel[1].name"),
        ] {
            assert_eq!(said(&format!("{one}{more}\n")).unwrap().as_deref(), Some(at), "{more}");
        }
        let many: String =
            (0..9).map(|n| format!("[[tunnel]]\nname = \"t{n}\"\nunit = \"t{n}.service\"\n")).collect();
        assert_eq!(said(&many).unwrap().as_deref(), Some("tunnel"));
        for bad in ["unit = \"sshd\"", "probe = \"http://x\"", "token = \"none\"", "colour = 1"] {
            let text = format!("[[tunnel]]\nname = \"cf\"\n{bad}\n");
            assert!(said(&text).is_err(), "{bad}");
        }
    }
}
