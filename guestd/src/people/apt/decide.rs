//! What follows from how the stacks are after packages changed: pure.

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::work::SnapshotsView;

use super::note::Run;
use crate::stacks::AptAfter;

/// How the snapshot stands that was taken before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It is the last of this guest's own.
    Last,
    /// None was taken.
    None,
    /// It is not there any more.
    Gone,
    /// This one came after it: somebody has a plan of their own.
    Followed(SnapshotName),
    /// It cannot be told.
    Unknown(String),
}

/// How it stands by the agent's list, the oldest first.
pub fn stands(snapshot: &SnapshotName, view: &SnapshotsView) -> Stands {
    let mut later = view.snapshots.iter().skip_while(|one| one.name != *snapshot);
    match (later.next(), view.snapshots.last()) {
        (Some(_), Some(last)) if last.name == *snapshot => Stands::Last,
        (Some(_), Some(last)) => Stands::Followed(last.name.clone()),
        _ => Stands::Gone,
    }
}

/// What is known when apt is done.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    pub run: Run,
    pub after: AptAfter,
    /// What is not well any more, in words.
    pub unwell: Option<&'a str>,
    /// What dpkg left half done, in words.
    pub half: Option<&'a str>,
    /// Names of what was well before, in words.
    pub asked: &'a str,
    /// What was taken before.
    pub snapshot: Option<&'a SnapshotName>,
    pub stands: Stands,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All that was well is well.
    Well(String),
    /// A person should look.
    Tell(String),
    /// The guest goes back to this, for a reason.
    GoBack(SnapshotName, String),
}

/// Decides. A guest goes back for a stack that was well, and for nothing less: what dpkg left half done, a person can have dpkg
/// end. After an upgrade that no person waits for, it goes back for that, too.
pub fn decide(seen: &Seen<'_>) -> Verdict {
    let half = seen.half.map_or_else(String::new, |half| {
        format!("dpkg left these half done, and `dpkg --configure -a` goes on with them: {half}")
    });
    let well = format!("packages changed; well before and after it: {}", seen.asked);
    let why = match (seen.unwell, half.as_str()) {
        (None, "") => return Verdict::Well(well),
        (None, half) if seen.run == Run::ByHand => return Verdict::Tell(format!("{well}; {half}")),
        (None, half) => format!("{well}; {half}"),
        (Some(unwell), "") => format!("packages changed, and {unwell}"),
        (Some(unwell), half) => format!("packages changed, and {unwell}; {half}"),
    };
    let by_hand =
        seen.snapshot.map_or_else(String::new, |name| format!("; `guestd rollback {name}` goes back"));
    let held = match (seen.after, &seen.stands, seen.snapshot) {
        (AptAfter::RollBack, Stands::Last, Some(snapshot)) => return Verdict::GoBack(snapshot.clone(), why),
        (AptAfter::Off | AptAfter::Tell, _, _) => return Verdict::Tell(format!("{why}{by_hand}")),
        (AptAfter::RollBack, Stands::None | Stands::Last, _) => "no snapshot was taken before".to_owned(),
        (AptAfter::RollBack, Stands::Gone, _) => "the snapshot from before is not there any more".to_owned(),
        (AptAfter::RollBack, Stands::Followed(other), _) => {
            format!("snapshot {other} came after it{by_hand}")
        }
        (AptAfter::RollBack, Stands::Unknown(why), _) => format!("{why}{by_hand}"),
    };
    Verdict::Tell(format!("{why}; it is not rolled back: {held}"))
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
        assert_eq!(stands(&mine, &view(&["old", "apt-1"])), Stands::Last);
        assert_eq!(stands(&mine, &view(&["apt-1", "hour-2", "mine-3"])), Stands::Followed(name("mine-3")));
        assert_eq!(stands(&mine, &view(&["old"])), Stands::Gone);
        assert_eq!(stands(&mine, &view(&[])), Stands::Gone);
    }

    #[test]
    fn a_guest_goes_back_only_for_a_stack_and_only_to_the_last_snapshot() {
        let mine = name("apt-1");
        let every = [
            Stands::Last,
            Stands::None,
            Stands::Gone,
            Stands::Followed(name("try-2")),
            Stands::Unknown("the agent is away".to_owned()),
        ];
        let runs = [Run::ByHand, Run::Upgrade];
        for (run, stands) in runs.into_iter().flat_map(|run| every.iter().map(move |one| (run, one))) {
            for after in [AptAfter::Off, AptAfter::Tell, AptAfter::RollBack] {
                for unwell in [None, Some("stack db is not well")] {
                    for half in [None, Some("web (half-configured)")] {
                        for snapshot in [None, Some(&mine)] {
                            let stands = stands.clone();
                            let seen = Seen { run, after, unwell, half, asked: "db", snapshot, stands };
                            let verdict = decide(&seen);
                            let cause = unwell.is_some() || (run == Run::Upgrade && half.is_some());
                            let back = after == AptAfter::RollBack
                                && cause
                                && snapshot.is_some()
                                && seen.stands == Stands::Last;
                            match &verdict {
                                Verdict::GoBack(to, _) => assert!(back && *to == mine, "{seen:?}"),
                                Verdict::Well(_) => assert!(unwell.is_none() && half.is_none(), "{seen:?}"),
                                Verdict::Tell(said) => {
                                    assert!(!back && (unwell.is_some() || half.is_some()), "{seen:?}");
                                    assert_eq!(said.contains("half done"), half.is_some(), "{said}");
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
        let said = |stands: Stands, snapshot: Option<&SnapshotName>| {
            let (after, unwell) = (AptAfter::RollBack, Some("stack db is not well: down"));
            match decide(&Seen { run: Run::ByHand, after, unwell, half: None, asked: "db", snapshot, stands })
            {
                Verdict::Tell(said) => said,
                other => panic!("{other:?}"),
            }
        };
        assert!(said(Stands::None, None).ends_with("it is not rolled back: no snapshot was taken before"));
        let followed = said(Stands::Followed(name("mine")), Some(&mine));
        assert!(followed.ends_with("snapshot mine came after it; `guestd rollback apt-1` goes back"));
        assert!(said(Stands::Gone, Some(&mine)).contains("not there any more"));
        assert!(said(Stands::Unknown("away".to_owned()), Some(&mine)).contains("rolled back: away"));
    }
}
