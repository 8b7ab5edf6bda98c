//! States of hosts, and the age of what they reported.

use std::collections::BTreeSet;

use holdfast_protocol::id::HostName;
use holdfast_protocol::operator::HostState;
use jiff::Timestamp;

use super::table::{Field, Tone};
use super::time::when;

/// The word for a state.
pub fn state(state: HostState) -> Field {
    let (word, tone) = match state {
        HostState::New => ("new", Tone::Look),
        HostState::NeverSeen => ("never seen", Tone::Bad),
        HostState::Online => ("online", Tone::Good),
        HostState::Degraded => ("degraded", Tone::Bad),
        HostState::Late => ("late", Tone::Look),
        HostState::Offline => ("offline", Tone::Bad),
        HostState::Frozen => ("frozen", Tone::Bad),
        HostState::Revoked => ("revoked", Tone::Plain),
    };
    (word.to_owned(), tone)
}

/// A host of guests, and when it was last heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeardHost<'a> {
    pub name: &'a HostName,
    pub state: HostState,
    pub seen_at: Option<Timestamp>,
}

/// One line for each host that is not heard of now: what is shown of its guests is as old.
pub fn not_heard<'a>(hosts: impl IntoIterator<Item = HeardHost<'a>>, now: Timestamp) -> String {
    let hosts: BTreeSet<HeardHost<'_>> = hosts.into_iter().collect();
    let line = |host: HeardHost<'_>| {
        let word = match host.state {
            HostState::Online | HostState::Degraded => return None,
            HostState::New
            | HostState::NeverSeen
            | HostState::Late
            | HostState::Offline
            | HostState::Frozen
            | HostState::Revoked => state(host.state).0,
        };
        let seen = host.seen_at.map_or_else(|| "it never reported".to_owned(), |at| when(at, now));
        Some(format!("\n{} is {word}: its guests are shown as of {seen}.\n", host.name))
    };
    hosts.into_iter().filter_map(line).collect()
}
