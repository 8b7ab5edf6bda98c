//! Decision whether this program is replaced now. Pure.

use std::cmp::Ordering;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::local::desired::{CONTROLLER_BYTES_MAX, DesiredView, Turn, WantedController};
use holdfast_protocol::version;

use super::UpdateError;
use super::exchange::{Exchange, ExchangeState};

/// What runs here.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A replacement that failed three times in one operation is not tried again.
const TRIES: u32 = 3;

/// What is done.
#[derive(Debug)]
pub enum Decision {
    Stay,
    /// Nothing is done, and the reason is reported.
    Refuse(UpdateError),
    /// It is replaced, as part of this operation.
    Exchange(OperationId, WantedController),
}

/// Decides by what the agent says, what this program hashes to, what was tried, and the last exchange. A build that was
/// taken back in an operation is not put in again in the same one.
pub fn decide(
    view: DesiredView,
    own: Option<&Sha256Text>,
    tried: Option<(OperationId, u32)>,
    last: Option<&Exchange>,
) -> Decision {
    let taken_back =
        last.filter(|last| last.state == ExchangeState::TakenBack).map(|last| (last.operation, &last.sha256));
    let Some(wanted) = view.controller else { return Decision::Stay };
    let Turn::Now(turn) = wanted.turn else { return Decision::Stay };
    if own == Some(&wanted.sha256) || tried.is_some_and(|(of, times)| of == turn && times >= TRIES) {
        return Decision::Stay;
    }
    if taken_back == Some((turn, &wanted.sha256)) {
        return Decision::Stay;
    }
    // The agent judges the same. But a hub that has its ear is not enough to bring an old fault back.
    if !matches!(version::order(wanted.version.as_str(), VERSION), Some(Ordering::Greater | Ordering::Equal))
    {
        let target = wanted.version.as_str().to_owned();
        return Decision::Refuse(UpdateError::Older { target, runs: VERSION });
    }
    if !(1..=CONTROLLER_BYTES_MAX).contains(&wanted.bytes) {
        return Decision::Refuse(UpdateError::TooLarge { bytes: wanted.bytes });
    }
    Decision::Exchange(turn, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn() -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(7))
    }

    fn sha(pair: &str) -> Sha256Text {
        pair.repeat(32).try_into().unwrap()
    }

    fn wanted(version: &str, bytes: u64, turn: Turn) -> DesiredView {
        let version = version.to_owned().try_into().unwrap();
        DesiredView {
            controller: Some(WantedController { version, sha256: sha("ab"), bytes, turn }),
            ..DesiredView::default()
        }
    }

    #[test]
    fn it_is_exchanged_in_its_turn_for_another_that_is_no_older() {
        let now = |version: &str| wanted(version, 9, Turn::Now(turn()));
        let own = sha("cd");
        let stays =
            |view, own: &Sha256Text, tried| matches!(decide(view, Some(own), tried, None), Decision::Stay);
        assert!(stays(DesiredView::default(), &own, None));
        assert!(stays(wanted("99.0.0", 9, Turn::Waits), &own, None));
        assert!(stays(now("99.0.0"), &sha("ab"), None), "it runs already");
        assert!(stays(now("99.0.0"), &own, Some((turn(), TRIES))));
        let exchanged = |view, tried| matches!(decide(view, Some(&own), tried, None), Decision::Exchange(..));
        assert!(exchanged(now("99.0.0"), None) && exchanged(now(VERSION), None));
        assert!(exchanged(now("99.0.0"), Some((turn(), TRIES - 1))));
        assert!(exchanged(now("99.0.0"), Some((OperationId::new(uuid::Uuid::nil()), TRIES))), "another turn");
        // Taken back in this turn, it is not put in again. In the next one it may be.
        let last = |operation, state| Exchange::new(operation, sha("ab"), "/usr/bin/guestd".into(), state);
        for (operation, state, stays) in [
            (turn(), ExchangeState::TakenBack, true),
            (turn(), ExchangeState::OnTrial, false),
            (OperationId::new(uuid::Uuid::nil()), ExchangeState::TakenBack, false),
        ] {
            let decided = decide(now("99.0.0"), Some(&own), None, Some(&last(operation, state)));
            assert_eq!(matches!(decided, Decision::Stay), stays, "{operation} {state:?}");
        }
        for older in ["0.0.1", "0.0.99-rc1", "main"] {
            let refused = decide(now(older), Some(&own), None, None);
            assert!(matches!(refused, Decision::Refuse(UpdateError::Older { .. })), "{older}");
        }
        for bytes in [0, CONTROLLER_BYTES_MAX + 1, u64::MAX] {
            let refused = decide(wanted("99.0.0", bytes, Turn::Now(turn())), Some(&own), None, None);
            assert!(matches!(refused, Decision::Refuse(UpdateError::TooLarge { .. })), "{bytes}");
        }
    }
}
