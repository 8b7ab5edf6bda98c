//! Guests that Proxmox's firewall does not hold to their addresses.
//!
//! Input: the admin socket. Output: one check for each state in which guests of ours were seen, with its meaning and
//! the setting that changes it. It is a notice and no failure: whether a guest gets a firewall is root's choice. A
//! command to copy would cut off guests that have no firewall rules yet. If the agent does not answer, the check of its
//! records reports that.

use std::path::Path;

use holdfast_protocol::report::{
    AddressFilterFinding, AddressFilterState, GuestReport, address_filter_findings,
};

use super::row::{Check, State};
use crate::port::admin_socket;

#[must_use]
pub fn checks(state: &Path) -> Vec<Check> {
    let status = admin_socket::ask(state).ok();
    judged(&status.and_then(|status| status.sections.guests).unwrap_or_default())
}

fn judged(guests: &[GuestReport]) -> Vec<Check> {
    address_filter_findings(guests).into_iter().map(check).collect()
}

fn check(finding: AddressFilterFinding) -> Check {
    let AddressFilterFinding { state, guests } = finding;
    let word = match state {
        AddressFilterState::NoFlag | AddressFilterState::FirewallOff | AddressFilterState::Incomplete => {
            State::Notice
        }
        AddressFilterState::Unread => State::Unknown,
        AddressFilterState::Set => State::Good,
    };
    Check::new(word, format!("addresses of {guests}"), state.words())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_open_guest_is_a_notice_with_its_setting() {
        let guest = |name: &str, state: Option<&str>| -> GuestReport {
            let mut guest = json!({ "name": name, "status": "managed", "run": "running" });
            if let Some(state) = state {
                guest["address_filter"] = json!(state);
            }
            serde_json::from_value(guest).unwrap()
        };
        let guests = [
            guest("web", Some("no_flag")),
            guest("app", Some("firewall_off")),
            guest("db", Some("set")),
            guest("old", Some("unread")),
            guest("unseen", None),
        ];
        let found = judged(&guests);
        let reported: Vec<_> = found.iter().map(|check| (check.state, check.name.as_str())).collect();
        let expected = [
            (State::Notice, "addresses of web"),
            (State::Notice, "addresses of app"),
            (State::Unknown, "addresses of old"),
            (State::Good, "addresses of db"),
        ];
        assert_eq!(reported, expected);
        assert_eq!(found[0].detail, AddressFilterState::NoFlag.words());
        assert_eq!(found[1].detail, AddressFilterState::FirewallOff.words());
        assert!(found.iter().all(|check| check.mend.is_empty()), "{found:?}");
    }
}
