//! What guest agents say of their guests: stacks, upgrades, restarts.
//!
//! What comes in: the last hello. What goes out: conditions for people. Nothing is done about it here: the controller
//! starts stacks again where its settings say so, and rolls upgrades back. `silence` says how old its last message is.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::local::hello::{
    RestartNeeded, UnwellStack, UnwellState, UpgradeOutcome, UpgradeReport,
};
use holdfast_protocol::report::Condition;

use crate::model::records::GuestRecord;

/// What a person should know.
pub(super) fn reported(record: &GuestRecord) -> Vec<Condition> {
    let Some(hello) = &record.hello else { return Vec::new() };
    let reported = &hello.reported;
    let stacks = reported.unwell.iter().map(stack);
    let upgrade = reported.upgrade.as_ref().and_then(upgrade);
    stacks.chain(upgrade).chain(reported.restart_needed.as_ref().map(restart)).collect()
}

fn stack(unwell: &UnwellStack) -> Condition {
    let state = match unwell.state {
        UnwellState::Down => "is down",
        UnwellState::Restarting => "ends again and again",
        UnwellState::Unhealthy => "runs, and its check says no",
        UnwellState::Unknown => "cannot be looked at",
    };
    let again = match unwell.restarts {
        0 => String::new(),
        times => format!("; its controller started it {times} times"),
    };
    let message = format!(
        "stack {} {state} since {}: {}{again}; look at it in the guest (`guestd status`)",
        unwell.stack,
        unwell.since.strftime("%Y-%m-%d %H:%M:%SZ"),
        unwell.why
    );
    Condition { code: ErrorCode::Broken, message }
}

fn upgrade(report: &UpgradeReport) -> Option<Condition> {
    let what = match report.outcome {
        UpgradeOutcome::Current | UpgradeOutcome::UnderWay | UpgradeOutcome::Upgraded => return None,
        UpgradeOutcome::Failed => "failed, and the guest is as it left it",
        UpgradeOutcome::RolledBack => "was taken back",
        UpgradeOutcome::NotRun => "was not begun",
    };
    let at = report.at.strftime("%Y-%m-%d %H:%M:%SZ");
    let message = format!("its security upgrade of {at} {what}: {}", report.why);
    Some(Condition { code: ErrorCode::Broken, message })
}

fn restart(needed: &RestartNeeded) -> Condition {
    let what = match needed.programs.as_slice() {
        [] => "a package asked for it".to_owned(),
        programs => format!("{} run from files that were replaced", programs.join(", ")),
    };
    let message = format!("it needs a restart before its upgrades are in use: {what}");
    Condition { code: ErrorCode::RestartNeeded, message }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::report::Health;
    use jiff::Timestamp;

    use super::*;
    use crate::model::records::{Access, HelloRecord, Place, ReportedConditions};

    #[test]
    fn what_a_controller_says_of_its_guest_is_reported() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let reported = ReportedConditions {
            unwell: vec![UnwellStack {
                stack: "shop".parse().unwrap(),
                state: UnwellState::Down,
                why: "exit 1".to_owned(),
                since: at,
                restarts: 3,
            }],
            upgrade: Some(UpgradeReport {
                at,
                outcome: UpgradeOutcome::RolledBack,
                why: "shop was not well".to_owned(),
                snapshot: None,
            }),
            restart_needed: Some(RestartNeeded { programs: vec!["dbus-daemon".to_owned()] }),
            root_disk: None,
        };
        let mut record = GuestRecord {
            uid: holdfast_protocol::id::GuestUid::new(uuid::Uuid::from_u128(1)),
            name: "web-1".parse().unwrap(),
            customer: "acme".parse().unwrap(),
            golden: "2026.11.1".parse().unwrap(),
            place: Place::Nowhere,
            access: Access::Open,
            token_generation: 1,
            hello: None,
        };
        assert!(super::reported(&record).is_empty());
        let hello = |reported| HelloRecord {
            version: "0.1.0".to_owned(),
            health: Health::Well,
            boot_id: "b".to_owned(),
            build: None,
            reported,
            at,
        };
        record.hello = Some(hello(reported));
        let said: Vec<String> = super::reported(&record).into_iter().map(|one| one.message).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(
            said[0].contains(
                "stack shop is down since 2027-01-15 08:00:00Z: exit 1; its controller started it 3 times"
            ),
            "{said:?}"
        );
        assert!(said[1].contains("was taken back: shop was not well"), "{said:?}");
        assert!(said[2].contains("dbus-daemon run from files"), "{said:?}");
        let fine = UpgradeReport {
            at,
            outcome: UpgradeOutcome::Upgraded,
            why: "2 packages".to_owned(),
            snapshot: None,
        };
        record.hello =
            Some(hello(ReportedConditions { upgrade: Some(fine), ..ReportedConditions::default() }));
        assert!(super::reported(&record).is_empty());
    }
}
