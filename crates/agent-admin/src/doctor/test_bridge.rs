//! The check of the bridge of scratch guests.
//!
//! Input: the settings, and the state that the kernel shows. Output: one [`Check`], or none on a host without such a
//! bridge. A running scratch guest is plugged in and does not count as a stranger. Deliberately absent: its firewall
//! rules, which only root can read; the scratch guest tests them from inside.

use holdfast_protocol::json::chain;

use super::row::{Check, State};
use crate::port::bridge::{BridgeError, Bridges};
use crate::settings::ScratchSettings;

pub(super) fn check(scratch: Option<&ScratchSettings>, bridges: &Bridges) -> Option<Check> {
    let scratch = scratch?;
    let bridge = &scratch.speech.as_ref()?.bridge;
    let name = format!("bridge of tests {bridge}");
    let ports = match bridges.ports(bridge) {
        Ok(ports) => ports,
        Err(error) => {
            let mend = match &error {
                BridgeError::Absent(_) => vec!["systemctl restart holdfast-test-bridge".to_owned()],
                BridgeError::Unreadable { .. } => Vec::new(),
            };
            return Some(Check { mend, ..Check::new(State::Failed, name, chain(&error)) });
        }
    };
    let [first, last] = scratch.vmid_range.map(|vmid| vmid.number());
    // As Proxmox names a container's end of its first network.
    let is_scratch = |port: &str| {
        let number = port.strip_prefix("veth").and_then(|rest| rest.strip_suffix("i0"));
        number
            .and_then(|text| text.parse::<u32>().ok())
            .is_some_and(|number| (first..=last).contains(&number))
    };
    let others: Vec<&str> = ports.iter().map(String::as_str).filter(|port| !is_scratch(port)).collect();
    Some(if others.is_empty() {
        Check::new(State::Good, name, "nobody is plugged in but scratch guests")
    } else {
        let text = format!("{} is plugged in, so no backup is tried: unplug it", others.join(", "));
        let mend = others.iter().map(|port| format!("ip link set {port} nomaster")).collect();
        Check { mend, ..Check::new(State::Failed, name, text) }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scratch(speech: serde_json::Value) -> ScratchSettings {
        serde_json::from_value(json!({
            "pool": "scratch", "vmid_range": [900, 909], "storage": "tank", "memory_mib": 512, "cores": 1,
            "token": { "id": "hf@pve!scratch", "secret_file": "/s" }, "speech": speech,
        }))
        .unwrap()
    }

    #[test]
    fn scratch_guests_are_alone_on_it_or_it_is_reported() {
        let own = json!({ "bridge": "hftest0", "guest": "10.254.254.2/30", "listener": "10.254.254.1:8448" });
        let scratch_with = scratch(own);
        let dir = tempfile::tempdir().unwrap();
        let of = || check(Some(&scratch_with), &Bridges::at(dir.path())).unwrap();
        let absent = of();
        assert_eq!(absent.state, State::Failed);
        assert_eq!(absent.mend, ["systemctl restart holdfast-test-bridge"]);
        let brif = dir.path().join("hftest0/brif");
        std::fs::create_dir_all(&brif).unwrap();
        assert_eq!(of().state, State::Good);
        std::fs::write(brif.join("veth905i0"), "").unwrap();
        assert_eq!(of().state, State::Good, "a scratch guest at work");
        // A customer's guest, a second network of a throwaway one, and a network card.
        for port in ["veth910i0", "veth905i1", "enp1s0"] {
            std::fs::write(brif.join(port), "").unwrap();
            let reported = of();
            assert_eq!(reported.state, State::Failed, "{port}");
            assert_eq!(reported.mend, [format!("ip link set {port} nomaster")]);
            std::fs::remove_file(brif.join(port)).unwrap();
        }
        assert_eq!(check(Some(&scratch(json!(null))), &Bridges::at(dir.path())), None);
        assert_eq!(check(None, &Bridges::at(dir.path())), None);
    }
}
