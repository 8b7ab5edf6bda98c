//! A fleet that flaps at once.

use std::collections::BTreeSet;

use alerts::digest::{DIGEST_INCIDENTS_MAX, combine};
use alerts::signal::{HostState, Signal};
use alerts::{Scope, Setting, next};
use holdfast_protocol::id::HostId;
use uuid::Uuid;

use crate::kit::*;

const HOSTS: usize = 10_000;
/// Bytes of JSON that the rows of one flapping host take.
const ROW_BYTES_MAX: usize = 4 * 1024;

/// Each host goes and comes ten times within an hour. Each sends a bounded number of notices, and the outbox can be
/// shortened to a few without losing an incident.
#[test]
fn ten_thousand_hosts_that_flap_are_bounded() {
    let rules = rules(PLAIN);
    let mut outbox = Vec::new();
    let mut bytes = 0;
    for number in 0..HOSTS {
        let mut state = alerts::ScopeState::new(Scope::Host(HostId::new(Uuid::from_u128(number as u128))));
        let setting =
            Setting { rules: &rules, silences: &[], host: None, customer: None, listening_since: at(-9_999) };
        let (mut sent, mut logged) = (0, 0);
        for cycle in 0..10 {
            for (second, host) in
                [(0, HostState::Offline), (100, HostState::Online), (300, HostState::Online)]
            {
                let second = cycle * 360 + second;
                let signal = if second % 360 == 300 {
                    Signal::Tick
                } else {
                    Signal::Host { state: host, since: at(second) }
                };
                let decision = next(&state, &signal, &setting, at(second));
                state = decision.state;
                sent += decision.notices.len();
                logged += decision.log.len();
                outbox.extend(decision.notices);
            }
        }
        assert!(sent <= 8, "{sent} notices of one host within the hour");
        assert!(logged <= 120, "{logged} log entries of one host");
        let rows = serde_json::to_string(&state.incidents.values().collect::<Vec<_>>()).unwrap().len()
            + serde_json::to_string(&state.groups.values().collect::<Vec<_>>()).unwrap().len()
            + serde_json::to_string(&state.row).unwrap().len();
        assert!(rows <= ROW_BYTES_MAX, "{rows} bytes");
        bytes += rows;
    }
    assert!(outbox.len() <= 8 * HOSTS);
    let combined = combine(outbox);
    assert!(combined.notices.len() <= HOSTS / DIGEST_INCIDENTS_MAX + 1);
    let listed: BTreeSet<_> =
        combined.notices.iter().flat_map(|notice| &notice.incidents).map(|incident| incident.id).collect();
    assert_eq!(listed.len(), HOSTS, "no host is lost");
    assert!(bytes <= HOSTS * ROW_BYTES_MAX);
}
