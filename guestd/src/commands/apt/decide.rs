//! Decision after packages changed. Pure.

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::work::SnapshotsView;

use super::state::Run;
use crate::stacks::AptAfter;

/// The state of the snapshot that was taken before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotState {
    /// It is the last of this guest's own.
    Last,
    /// None was taken.
    None,
    /// It is not there any more.
    Gone,
    /// This one was taken after it: an operator has another plan.
    Followed(SnapshotName),
    /// The state is unknown.
    Unknown(String),
}

/// Its state by the agent's list, the oldest first.
pub fn snapshot_state(snapshot: &SnapshotName, view: &SnapshotsView) -> SnapshotState {
    let mut later = view.snapshots.iter().skip_while(|one| one.name != *snapshot);
    match (later.next(), view.snapshots.last()) {
        (Some(_), Some(last)) if last.name == *snapshot => SnapshotState::Last,
        (Some(_), Some(last)) => SnapshotState::Followed(last.name.clone()),
        _ => SnapshotState::Gone,
    }
}

/// What is known when apt is done.
#[derive(Clone, Debug)]
pub struct CheckResult<'a> {
    pub run: Run,
    pub after: AptAfter,
    /// What is not well any more, as text.
    pub unwell: Option<&'a str>,
    /// What dpkg left half done, as text.
    pub interrupted: Option<&'a str>,
    /// Names of what was well before, as text.
    pub asked: &'a str,
    /// What was taken before.
    pub snapshot: Option<&'a SnapshotName>,
    pub snapshot_state: SnapshotState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All that was well is well.
    Well(String),
    /// A person should check.
    Report(String),
    /// The guest is rolled back to this snapshot, for this reason.
    RollBack(SnapshotName, String),
}

/// Decides. A guest is rolled back only for a stack that was well before. For what dpkg left half done, a person can
/// run dpkg again. After an unattended upgrade, the guest is rolled back for that, too.
pub fn decide(seen: &CheckResult<'_>) -> Verdict {
    let interrupted = seen.interrupted.map_or_else(String::new, |interrupted| {
        format!("dpkg left these half done, and `dpkg --configure -a` goes on with them: {interrupted}")
    });
    let well = format!("packages changed; well before and after it: {}", seen.asked);
    let why = match (seen.unwell, interrupted.as_str()) {
        (None, "") => return Verdict::Well(well),
        (None, interrupted) if seen.run == Run::ByHand => {
            return Verdict::Report(format!("{well}; {interrupted}"));
        }
        (None, interrupted) => format!("{well}; {interrupted}"),
        (Some(unwell), "") => format!("packages changed, and {unwell}"),
        (Some(unwell), interrupted) => format!("packages changed, and {unwell}; {interrupted}"),
    };
    let by_hand =
        seen.snapshot.map_or_else(String::new, |name| format!("; `guestd rollback {name}` goes back"));
    let held = match (seen.after, &seen.snapshot_state, seen.snapshot) {
        (AptAfter::RollBack, SnapshotState::Last, Some(snapshot)) => {
            return Verdict::RollBack(snapshot.clone(), why);
        }
        (AptAfter::Off | AptAfter::Report, _, _) => return Verdict::Report(format!("{why}{by_hand}")),
        (AptAfter::RollBack, SnapshotState::None | SnapshotState::Last, _) => {
            "no snapshot was taken before".to_owned()
        }
        (AptAfter::RollBack, SnapshotState::Gone, _) => {
            "the snapshot from before is not there any more".to_owned()
        }
        (AptAfter::RollBack, SnapshotState::Followed(other), _) => {
            format!("snapshot {other} came after it{by_hand}")
        }
        (AptAfter::RollBack, SnapshotState::Unknown(why), _) => format!("{why}{by_hand}"),
    };
    Verdict::Report(format!("{why}; it is not rolled back: {held}"))
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::OperationId;
    use holdfast_protocol::local::work::SnapshotView;
    use jiff::Timestamp;

    use super::*;

    fn name(text: &str) -> SnapshotName {
        text.parse().unwrap()
    }

    fn view(names: &[&str]) -> SnapshotsView {
        let one = |text: &&str| SnapshotView {
            name: name(text),
            taken_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
            operation: OperationId::new(uuid::Uuid::nil()),
        };
        SnapshotsView { snapshots: names.iter().map(one).collect(), quota: 9 }
    }

    #[test]
    fn a_snapshot_is_the_last_or_followed_or_gone() {
        let mine = name("apt-1");
        assert_eq!(snapshot_state(&mine, &view(&["old", "apt-1"])), SnapshotState::Last);
        assert_eq!(
            snapshot_state(&mine, &view(&["apt-1", "hour-2", "mine-3"])),
            SnapshotState::Followed(name("mine-3"))
        );
        assert_eq!(snapshot_state(&mine, &view(&["old"])), SnapshotState::Gone);
        assert_eq!(snapshot_state(&mine, &view(&[])), SnapshotState::Gone);
    }

    #[test]
    fn a_guest_goes_back_only_for_a_stack_and_only_to_the_last_snapshot() {
        let mine = name("apt-1");
        let every = [
            SnapshotState::Last,
            SnapshotState::None,
            SnapshotState::Gone,
            SnapshotState::Followed(name("try-2")),
            SnapshotState::Unknown("the agent is away".to_owned()),
        ];
        let runs = [Run::ByHand, Run::Upgrade];
        for (run, snapshot_state) in runs.into_iter().flat_map(|run| every.iter().map(move |one| (run, one)))
        {
            for after in [AptAfter::Off, AptAfter::Report, AptAfter::RollBack] {
                for unwell in [None, Some("stack db is not well")] {
                    for interrupted in [None, Some("web (half-configured)")] {
                        for snapshot in [None, Some(&mine)] {
                            let snapshot_state = snapshot_state.clone();
                            let seen = CheckResult {
                                run,
                                after,
                                unwell,
                                interrupted,
                                asked: "db",
                                snapshot,
                                snapshot_state,
                            };
                            let verdict = decide(&seen);
                            let cause = unwell.is_some() || (run == Run::Upgrade && interrupted.is_some());
                            let back = after == AptAfter::RollBack
                                && cause
                                && snapshot.is_some()
                                && seen.snapshot_state == SnapshotState::Last;
                            match &verdict {
                                Verdict::RollBack(to, _) => assert!(back && *to == mine, "{seen:?}"),
                                Verdict::Well(_) => {
                                    assert!(unwell.is_none() && interrupted.is_none(), "{seen:?}")
                                }
                                Verdict::Report(said) => {
                                    assert!(!back && (unwell.is_some() || interrupted.is_some()), "{seen:?}");
                                    assert_eq!(said.contains("half done"), interrupted.is_some(), "{said}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn why_it_did_not_go_back_is_said() {
        let mine = name("apt-1");
        let said = |snapshot_state: SnapshotState, snapshot: Option<&SnapshotName>| {
            let (after, unwell) = (AptAfter::RollBack, Some("stack db is not well: down"));
            match decide(&CheckResult {
                run: Run::ByHand,
                after,
                unwell,
                interrupted: None,
                asked: "db",
                snapshot,
                snapshot_state,
            }) {
                Verdict::Report(said) => said,
                other => panic!("{other:?}"),
            }
        };
        assert!(
            said(SnapshotState::None, None).ends_with("it is not rolled back: no snapshot was taken before")
        );
        let followed = said(SnapshotState::Followed(name("mine")), Some(&mine));
        assert!(followed.ends_with("snapshot mine came after it; `guestd rollback apt-1` goes back"));
        assert!(said(SnapshotState::Gone, Some(&mine)).contains("not there any more"));
        assert!(said(SnapshotState::Unknown("away".to_owned()), Some(&mine)).contains("rolled back: away"));
    }
}
