//! Used orders, the open way, and what an event makes of them.
//!
//! In: the file of the last run, and an event. Out: the next one. It is root's alone, and is written before anything is
//! opened, so that an order has at most one effect. Every list is bounded; a used order is never forgotten before it can
//! no longer be taken. Deliberately absent: files and clocks.

use std::collections::BTreeSet;

use holdfast_protocol::break_glass::{
    BreakGlassSchema, BreakGlassStatus, Closed, ORDERS_MAX, OpenedOrder, RefusedOrder,
};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::{Nonce, UtcSecond};
use holdfast_protocol::json::{self, JsonError};
use serde::{Deserialize, Serialize};

use crate::moment::{Moment, Term};

/// Larger than a state with all its lists full.
pub const BYTES_MAX: usize = 512 * 1024;

/// Used orders that are known. Each could still be taken, so none gives way to a new one.
pub const USED_MAX: usize = 256;

/// A used order is known for so long after its end: longer than the clock may be behind without being noticed.
const KNOWN_S: i64 = 3_600;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum StateSchema {
    #[default]
    #[serde(rename = "holdfast.break-glass-state/v1")]
    V1,
}

/// All that is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    schema: StateSchema,
    /// The newest time that was seen.
    pub latest: UtcSecond,
    pub used: Vec<UsedOrder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenWay>,
    /// Ways that were open, oldest first.
    pub past: Vec<OpenedOrder>,
    /// Orders that were refused, oldest first.
    pub refused: Vec<RefusedOrder>,
}

/// An order that opened a way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedOrder {
    pub job: JobId,
    pub nonce: Nonce,
    pub order: Sha256Text,
    pub opened_at: UtcSecond,
    pub expires_at: UtcSecond,
}

/// A way that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenWay {
    pub order: OpenedOrder,
    /// The text of the `authorized_keys` file.
    pub line: String,
    /// The program of a forced command; none for a login shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Vec<String>>,
    pub term: Term,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Opened(Box<(OpenWay, UsedOrder)>),
    /// Time went on.
    Ticked,
    SessionBegan,
    Closed(Closed),
    Refused(RefusedOrder),
}

impl State {
    /// Of a host where nothing was ordered yet.
    #[must_use]
    pub const fn new(now: UtcSecond) -> Self {
        Self {
            schema: StateSchema::V1,
            latest: now,
            used: Vec::new(),
            open: None,
            past: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`JsonError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        json::parse("the state of break-glass", bytes, BYTES_MAX)
    }

    /// The file.
    ///
    /// # Errors
    /// Never in practice: all of it can be written as JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec_pretty(self)
    }

    /// What an event makes of it.
    #[must_use]
    pub fn next(mut self, event: Event, now: &Moment) -> Self {
        self.latest = UtcSecond::new(now.at_least(self.latest)).unwrap_or(self.latest);
        let latest = self.latest;
        self.used.retain(|used| used.expires_at.second().saturating_add(KNOWN_S) > latest.second());
        match event {
            Event::Opened(opened) => {
                let (open, used) = *opened;
                self.used.push(used);
                self.open = Some(open);
            }
            Event::Ticked => {
                if let Some(open) = &mut self.open {
                    open.term = open.term.next(now, latest);
                }
            }
            Event::SessionBegan => {
                if let Some(open) = &mut self.open {
                    open.order.sessions = open.order.sessions.saturating_add(1);
                }
            }
            Event::Closed(closed) => {
                if let Some(open) = self.open.take() {
                    keep_last(&mut self.past, OpenedOrder { closed: Some(closed), ..open.order });
                }
            }
            Event::Refused(refused) => {
                self.refused.retain(|before| before.order != refused.order);
                keep_last(&mut self.refused, refused);
            }
        }
        self
    }

    /// Seconds for which the open way is still open.
    #[must_use]
    pub fn left_s(&self, now: &Moment) -> Option<i64> {
        Some(self.open.as_ref()?.term.left_s(now, self.latest))
    }

    /// Whether an order with this id, nonce or bytes was used.
    #[must_use]
    pub fn is_used(&self, job: JobId, nonce: &Nonce, order: &Sha256Text) -> bool {
        self.used.iter().any(|used| used.job == job || used.nonce == *nonce || used.order == *order)
    }

    /// How many ways were opened within the last day.
    #[must_use]
    pub fn opened_today(&self, now: &Moment) -> usize {
        const DAY_S: i64 = 24 * 3_600;
        let from = now.at_least(self.latest).as_second().saturating_sub(DAY_S);
        self.used.iter().filter(|used| used.opened_at.second() > from).count()
    }

    /// What the agent may read.
    #[must_use]
    pub fn status(&self) -> BreakGlassStatus {
        let open = self.open.iter().map(|open| &open.order);
        let opened: Vec<OpenedOrder> = self.past.iter().chain(open).cloned().collect();
        let from = opened.len().saturating_sub(ORDERS_MAX);
        BreakGlassStatus {
            schema: BreakGlassSchema::V1,
            written_at: self.latest,
            opened: opened.into_iter().skip(from).collect(),
            refused: self.refused.clone(),
        }
    }

    /// Orders that are named in it, for tests and for `log`.
    #[must_use]
    pub fn orders(&self) -> BTreeSet<&Sha256Text> {
        self.used.iter().map(|used| &used.order).collect()
    }
}

/// Adds one at the end; the oldest gives way.
fn keep_last<T>(list: &mut Vec<T>, one: T) {
    list.push(one);
    let over = list.len().saturating_sub(ORDERS_MAX);
    list.drain(..over);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::tests::{OPENED, moment, second};
    use holdfast_protocol::break_glass::CloseCause;
    use holdfast_protocol::code::ErrorCode;

    fn refused(n: u8) -> RefusedOrder {
        let order = Sha256Text::of(&[n]);
        RefusedOrder { order, at: second(OPENED), code: ErrorCode::NotYours, message: "no".to_owned() }
    }

    fn used(n: u8, expires_s: i64) -> UsedOrder {
        UsedOrder {
            job: JobId::new(uuid::Uuid::from_u128(n.into())),
            nonce: format!("{n:032x}").try_into().unwrap(),
            order: Sha256Text::of(&[n]),
            opened_at: second(OPENED),
            expires_at: second(OPENED + expires_s),
        }
    }

    fn open(n: u8) -> OpenWay {
        let order = OpenedOrder {
            order: Sha256Text::of(&[n]),
            job: used(n, 0).job,
            way: "tunnel".to_owned().try_into().unwrap(),
            customers: BTreeSet::new(),
            consents: BTreeSet::new(),
            signers: BTreeSet::new(),
            reason: "the agent hangs".to_owned().try_into().unwrap(),
            opened_at: second(OPENED),
            closes_at: second(OPENED + 600),
            sessions: 0,
            closed: None,
        };
        let term = Term::begin(&moment(0, 1, 0), second(OPENED + 600), 600);
        OpenWay { order, line: "line\n".to_owned(), run: None, term }
    }

    #[test]
    fn a_way_goes_from_open_to_past() {
        let now = moment(0, 1, 0);
        let state = State::new(second(OPENED)).next(Event::Opened(Box::new((open(1), used(1, 60)))), &now);
        assert_eq!(state.left_s(&now), Some(600));
        assert!(state.status().open().is_some());
        let state = state.next(Event::SessionBegan, &now).next(Event::Ticked, &moment(90, 1, 90));
        assert_eq!(state.left_s(&moment(90, 1, 90)), Some(510));
        assert_eq!(State::parse(&state.to_json().unwrap()).unwrap(), state, "as it is written");
        let closed = Closed { at: second(OPENED + 600), cause: CloseCause::Expired };
        let state = state.next(Event::Closed(closed), &moment(600, 1, 600));
        assert_eq!((state.left_s(&now), state.past.len()), (None, 1));
        assert_eq!((state.status().opened[0].sessions, state.status().opened[0].closed), (1, Some(closed)));
        assert_eq!(state.clone().next(Event::Closed(closed), &now).past.len(), 1, "it is closed once");
    }

    #[test]
    fn a_used_order_is_known_until_it_can_no_longer_be_taken() {
        let state = State::new(second(OPENED))
            .next(Event::Opened(Box::new((open(1), used(1, 60)))), &moment(0, 1, 0));
        let is_known = |state: &State| {
            let UsedOrder { job, nonce, order, .. } = used(1, 60);
            let other = used(2, 60);
            assert!(!state.is_used(other.job, &other.nonce, &other.order));
            let by = [
                state.is_used(job, &other.nonce, &other.order),
                state.is_used(other.job, &nonce, &other.order),
                state.is_used(other.job, &other.nonce, &order),
            ];
            assert!(by.iter().all(|known| *known == by[0]), "by id, nonce and bytes alike: {by:?}");
            by[0]
        };
        let later = state.clone().next(Event::Ticked, &moment(60 + KNOWN_S - 1, 1, 0));
        assert!(is_known(&later));
        // A clock that was ahead forgets it, and is no way to use it again: the newest time stays.
        let ahead = later.next(Event::Ticked, &moment(60 + KNOWN_S, 1, 0));
        assert!(!is_known(&ahead));
        assert_eq!(ahead.next(Event::Ticked, &moment(0, 1, 0)).latest, second(OPENED + 60 + KNOWN_S));
    }

    #[test]
    fn lists_are_bounded() {
        let mut state = State::new(second(OPENED));
        for n in 0..40 {
            state = state.next(Event::Refused(refused(n)), &moment(0, 1, 0));
        }
        assert_eq!(state.refused.len(), ORDERS_MAX);
        let again = state.clone().next(Event::Refused(refused(39)), &moment(0, 1, 0));
        assert_eq!(again.refused.len(), ORDERS_MAX, "the same once more takes no other's place");
        assert_eq!(again.refused, state.refused);
    }
}
