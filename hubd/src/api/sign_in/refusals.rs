//! Events about refused sign-ins, summed where they come in floods.
//!
//! In: each refusal. Out: an event for the first of an address, and one a minute later with the number of those that
//! followed. Only a few addresses are told apart in a minute; all others are one sum, so that a flood does not push other
//! events out of the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_protocol::id::{CorrelationId, OperatorName};
use jiff::{SignedDuration, Timestamp};
use net::admission::Origin;

use crate::domain::event::{EventKind, NewEvent};

/// Addresses that are told apart in a minute: at most seventeen events in it.
const ADDRESSES_MAX: usize = 8;

const WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// Why a sign-in was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// What was typed as a name may be a password, so it is not written down.
    UnknownName,
    Password(OperatorName),
    /// Somebody else may know the password.
    Code(OperatorName),
    Link,
    /// By a provider.
    Provider {
        name: String,
        why: String,
    },
    TooOften,
}

#[derive(Clone, Copy, Debug)]
struct Tally {
    since: Timestamp,
    more: u64,
}

/// Refusals that are still to be written down.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    addresses: BTreeMap<Origin, Tally>,
    others: Option<Tally>,
}

impl Refusals {
    /// Counts a refusal. The first of an address is an event at once.
    pub(super) fn count(
        &self,
        from: Origin,
        reason: &Reason,
        (now, correlation): (Timestamp, CorrelationId),
    ) -> Option<NewEvent> {
        let mut state = self.lock();
        if let Some(tally) = state.addresses.get_mut(&from) {
            tally.more = tally.more.saturating_add(1);
            // What matters most is not hidden in a sum.
            return matches!(reason, Reason::Code(_)).then(|| event(from, reason, (now, correlation)));
        }
        if state.addresses.len() >= ADDRESSES_MAX {
            let tally = state.others.get_or_insert(Tally { since: now, more: 0 });
            tally.more = tally.more.saturating_add(1);
            return matches!(reason, Reason::Code(_)).then(|| event(from, reason, (now, correlation)));
        }
        state.addresses.insert(from, Tally { since: now, more: 0 });
        Some(event(from, reason, (now, correlation)))
    }

    /// The sums that are a minute old.
    #[must_use]
    pub fn due(&self, now: Timestamp, correlation: CorrelationId) -> Vec<NewEvent> {
        let mut state = self.lock();
        let is_due = |tally: &Tally| now.duration_since(tally.since) >= WINDOW || now < tally.since;
        let mut events = Vec::new();
        state.addresses.retain(|from, tally| {
            if is_due(tally) && tally.more > 0 {
                let message =
                    format!("{} more sign-ins from {from} were refused since {}", tally.more, tally.since);
                events.push(written(message, now, correlation));
            }
            !is_due(tally)
        });
        if let Some(tally) = state.others.take_if(|tally| is_due(tally)) {
            let message =
                format!("{} sign-ins from other addresses were refused since {}", tally.more, tally.since);
            events.push(written(message, now, correlation));
        }
        events
    }

    /// No method stops half-way, so what is behind a poisoned lock is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn event(from: Origin, reason: &Reason, (now, correlation): (Timestamp, CorrelationId)) -> NewEvent {
    let message = match reason {
        Reason::UnknownName => format!("a sign-in from {from} was refused: no such operator"),
        Reason::Password(name) => format!("a sign-in as {name} from {from} was refused: wrong password"),
        Reason::Code(name) => format!(
            "a sign-in as {name} from {from} was refused: the password was right and the code was not"
        ),
        Reason::Link => format!("a sign-in from {from} was refused: the link is unknown, used or has ended"),
        Reason::Provider { name, why } => format!("a sign-in from {from} by {name} was refused: {why}"),
        Reason::TooOften => format!("sign-ins from {from} are refused: too many of them were wrong"),
    };
    written(message, now, correlation)
}

fn written(message: String, at: Timestamp, correlation: CorrelationId) -> NewEvent {
    NewEvent { at, kind: EventKind::SignInRefused, host: None, actor: None, correlation, message }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const CORRELATION: CorrelationId = CorrelationId::new(uuid::Uuid::nil());

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn from(number: u8) -> Origin {
        Origin::from(IpAddr::from([10, 0, 0, number]))
    }

    #[test]
    fn a_flood_is_one_event_and_one_sum() {
        let refusals = Refusals::default();
        let count = |second| refusals.count(from(1), &Reason::UnknownName, (at(second), CORRELATION));
        assert!(count(0).unwrap().message.contains("10.0.0.1"));
        assert!((0..999).all(|_| count(1).is_none()));
        assert!(refusals.due(at(59), CORRELATION).is_empty());
        let sum = refusals.due(at(60), CORRELATION);
        assert_eq!(sum.len(), 1);
        assert!(sum[0].message.starts_with("999 more sign-ins from 10.0.0.1 "), "{}", sum[0].message);
        assert!(refusals.due(at(300), CORRELATION).is_empty());
        assert!(count(301).is_some(), "a new minute");
    }

    #[test]
    fn many_addresses_are_few_events_and_a_right_password_is_always_one() {
        let refusals = Refusals::default();
        let reason = Reason::Password("ada".parse().unwrap());
        let events =
            (0..200).filter_map(|number| refusals.count(from(number), &reason, (at(0), CORRELATION)));
        assert_eq!(events.count(), ADDRESSES_MAX);
        let code = Reason::Code("ada".parse().unwrap());
        assert!(refusals.count(from(201), &code, (at(1), CORRELATION)).is_some());
        let sums = refusals.due(at(60), CORRELATION);
        assert_eq!(sums.len(), 1);
        assert!(sums[0].message.starts_with("193 sign-ins from other addresses"), "{}", sums[0].message);
    }
}
