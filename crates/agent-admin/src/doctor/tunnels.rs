//! Checks of tunnels.
//!
//! Input: the settings, what the running agent says, and the folder of enabled units. Output: a check for each tunnel, and
//! one for what restarts it.

use std::path::Path;

use holdfast_protocol::report::{AgentSection, TokenReport, TunnelReport, TunnelState};

use super::row::{Check, State};
use crate::model::tunnel::Tunnel;
use crate::setup::tunnels::path_unit;

pub(super) fn checks(tunnels: &[Tunnel], agent: Option<&AgentSection>, wanted: &Path) -> Vec<Check> {
    let report = |tunnel: &Tunnel| {
        agent.and_then(|agent| agent.tunnels.iter().find(|report| report.name == tunnel.name))
    };
    tunnels.iter().flat_map(|tunnel| [state(tunnel, report(tunnel)), restart(tunnel, wanted)]).collect()
}

fn state(tunnel: &Tunnel, report: Option<&TunnelReport>) -> Check {
    let name = format!("tunnel {}", tunnel.name);
    let Some(report) = report else {
        let mend = vec!["systemctl restart agentd".to_owned()];
        return Check { mend, ..Check::new(State::Unknown, name, "the running agent does not know it") };
    };
    if report.token == Some(TokenReport::Missing {}) {
        let said = "it has no token: an operator signs one, `holdfast sign HOST --tunnel-token`";
        return Check::new(State::Failed, name, format!("{}; {said}", report.why.as_str()));
    }
    let said = format!("{}: {}", report.state.as_str(), report.why.as_str());
    match report.state {
        TunnelState::Up => Check::new(State::Good, name, said),
        TunnelState::Unproved => Check::new(State::Notice, name, said),
        TunnelState::Unknown => Check::new(State::Unknown, name, said),
        TunnelState::Degraded | TunnelState::Down | TunnelState::Stopped => {
            let mend = vec![format!("systemctl status {}", tunnel.unit)];
            Check { mend, ..Check::new(State::Failed, name, said) }
        }
    }
}

/// Whether root's service hears the agent.
fn restart(tunnel: &Tunnel, wanted: &Path) -> Check {
    let name = format!("restarts of tunnel {}", tunnel.name);
    let unit = path_unit(&tunnel.name);
    if wanted.join("paths.target.wants").join(&unit).symlink_metadata().is_ok() {
        return Check::new(State::Good, name, "root's service hears the agent");
    }
    let said = "root's service does not hear the agent: run `agentd setup` as on the first day";
    Check { mend: vec![format!("systemctl enable --now {unit}")], ..Check::new(State::Notice, name, said) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tunnel_is_checked_by_what_the_agent_says_and_by_the_unit_of_its_restarts() {
        let tunnel: Tunnel =
            serde_json::from_value(json!({ "name": "cf", "unit": "cloudflared.service" })).unwrap();
        let wanted = tempfile::tempdir().unwrap();
        let of = |state: Option<(&str, serde_json::Value)>| {
            let tunnels: Vec<_> = state
                .into_iter()
                .map(|(state, token)| {
                    json!({ "name": "cf", "unit": "cloudflared.service", "state": state, "why": "so",
                        "since": "2026-11-22T00:00:00Z", "checked_at": "2026-11-22T00:00:00Z", "token": token })
                })
                .collect();
            let agent = json!({ "version": "1", "started_at": "2026-11-22T00:00:00Z", "problems": [], "tunnels": tunnels });
            let agent = serde_json::from_value(agent).unwrap();
            checks(std::slice::from_ref(&tunnel), Some(&agent), wanted.path())
                .iter()
                .map(|check| check.state)
                .collect::<Vec<_>>()
        };
        let none = serde_json::Value::Null;
        for (state, is) in [
            (None, State::Unknown),
            (Some(("up", none.clone())), State::Good),
            (Some(("unproved", none.clone())), State::Notice),
            (Some(("down", none.clone())), State::Failed),
            (Some(("up", json!({ "is": "missing" }))), State::Failed),
        ] {
            assert_eq!(of(state.clone()), [is, State::Notice], "{state:?}");
        }
        let links = wanted.path().join("paths.target.wants");
        std::fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink("/nowhere", links.join("holdfast-tunnel-restart@cf.path")).unwrap();
        assert_eq!(of(Some(("up", none))), [State::Good, State::Good]);
    }
}
