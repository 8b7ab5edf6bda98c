//! Whether Proxmox's firewall is set to hold a guest to its addresses.
//!
//! Only what was read is reported. Deliberately absent: whether a rule is in force, which no call of Proxmox says; the
//! cluster's switch and the daemon of the firewall are root's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GuestReport;

/// More guests than this are counted and not named.
const NAMED_MAX: usize = 8;

/// What was read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressFilterState {
    /// The firewall's flag is not on its first network.
    NoFlag,
    /// The flag is on its first network, and the guest's own firewall is switched off.
    FirewallOff,
    /// The guest's firewall is on; `ipfilter`, `macfilter` or the set of its addresses is missing.
    Incomplete,
    /// It could not be read.
    Unread,
    /// The guest's firewall, both filters and the set are there.
    Set,
}

impl AddressFilterState {
    /// What it means, and which setting changes it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoFlag => {
                "Not held to its addresses: the firewall's flag is not on its first network, so it can send from any address \
                 of its bridge. To change it, set `\"firewall\": \"on\"` in `network` of the document; then root writes rules \
                 that let its traffic in, and sets `enable` in the firewall's options of the guest: without rules that drops \
                 all that comes in."
            }
            Self::FirewallOff => {
                "Not held to its addresses: the firewall's flag is on its first network, and the guest's own firewall is \
                 switched off, so it can send from any address of its bridge. To change it, root writes rules that let its \
                 traffic in, and sets `enable` in the firewall's options of the guest: without rules that drops all that comes \
                 in."
            }
            Self::Incomplete => {
                "Not held to its addresses, although Proxmox's firewall is used for it: `ipfilter`, `macfilter` or the set \
                 `ipfilter-net0` is missing. The agent sets them where it knows all its addresses, unless the document says \
                 `\"address_filter\": \"as_it_is\"`."
            }
            Self::Unread => "Whether Proxmox's firewall holds it to its addresses could not be read.",
            Self::Set => {
                "Proxmox's firewall is set to hold its first network to the addresses in `ipfilter-net0`; whether it does so \
                 now Proxmox does not say."
            }
        }
    }

    /// Whether it was seen that nothing holds the guest to its addresses.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::NoFlag | Self::FirewallOff | Self::Incomplete => true,
            Self::Unread | Self::Set => false,
        }
    }
}

/// Guests of one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressFilterFinding {
    /// The state.
    pub state: AddressFilterState,
    /// Who they are, the first ones by name.
    pub guests: String,
}

/// The guests of each state, those that nothing holds first. A guest of which nothing was read is in none.
#[must_use]
pub fn address_filter_findings(guests: &[GuestReport]) -> Vec<AddressFilterFinding> {
    let mut by_state: BTreeMap<AddressFilterState, Vec<&str>> = BTreeMap::new();
    for guest in guests {
        if let Some(state) = guest.address_filter {
            by_state.entry(state).or_default().push(&guest.name);
        }
    }
    let finding = |(state, names)| AddressFilterFinding { state, guests: listed(names) };
    by_state.into_iter().map(finding).collect()
}

fn listed(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let named = names.join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALL: [AddressFilterState; 5] = [
        AddressFilterState::NoFlag,
        AddressFilterState::FirewallOff,
        AddressFilterState::Incomplete,
        AddressFilterState::Unread,
        AddressFilterState::Set,
    ];

    fn guest(name: &str, state: Option<AddressFilterState>) -> GuestReport {
        let mut guest = json!({ "name": name, "status": "managed", "run": "running" });
        if let Some(state) = state {
            guest["address_filter"] = json!(state);
        }
        serde_json::from_value(guest).unwrap()
    }

    #[test]
    fn the_sentence_names_the_setting_wherever_nothing_holds_the_guest() {
        for state in ALL {
            assert_eq!(state.words().starts_with("Not held to its addresses"), state.is_open(), "{state:?}");
        }
        for (state, setting) in [
            (AddressFilterState::NoFlag, "`\"firewall\": \"on\"`"),
            (AddressFilterState::NoFlag, "`enable`"),
            (AddressFilterState::FirewallOff, "`enable`"),
            (AddressFilterState::Incomplete, "`\"address_filter\": \"as_it_is\"`"),
        ] {
            assert!(state.words().contains(setting), "{state:?}: {setting}");
        }
    }

    #[test]
    fn guests_are_listed_by_state() {
        let (open, set) = (AddressFilterState::NoFlag, AddressFilterState::Set);
        let guests = [
            guest("web", Some(open)),
            guest("unseen", None),
            guest("db", Some(set)),
            guest("app", Some(open)),
        ];
        let found = address_filter_findings(&guests);
        let reported: Vec<_> = found.iter().map(|one| (one.state, one.guests.as_str())).collect();
        assert_eq!(reported, [(open, "app, web"), (set, "db")]);
        assert_eq!(address_filter_findings(&guests[1..2]), []);
    }

    #[test]
    fn many_guests_are_counted() {
        let guests: Vec<_> = (0..10).map(|n| guest(&format!("web-{n}"), Some(ALL[1]))).collect();
        let found = address_filter_findings(&guests);
        assert!(found[0].guests.ends_with("web-7 and 2 more"), "{found:?}");
    }
}
