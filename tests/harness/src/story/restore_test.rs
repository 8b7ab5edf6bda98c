//! Stories of restore tests.

use agentd::operation::log::Status;
use agentd::operation::restore_test::TestedBackup;
use agentd::operation::{Operation, RestoreTest};
use holdfast_protocol::id::OperationId;

use super::Story;
use crate::fixtures::{Kit, target};
use crate::ground::Ground;
use crate::world_template::archive;

/// Up to the restore its steps are those of a copy next to its guest, which is killed twice everywhere.
const SECONDS: usize = 5;

pub(super) fn stories() -> Vec<Story> {
    vec![
        // After the removal of the scratch guest the agent may not see what its end left.
        Story {
            may_take: scratch,
            unclear: Status::Parked,
            second_one_in: SECONDS,
            ..Story::done("restore_test", Ground::GuestRuns, trial)
        },
        // The same with the scratch guest's controller heard: after a kill between its messages the agent receives them
        // again.
        Story {
            may_take: scratch,
            unclear: Status::Parked,
            second_one_in: SECONDS_OF_HEARD,
            ..Story::done("restore_test, heard", Ground::GuestRuns, heard)
        },
        Story {
            refused: Some("first_start"),
            may_take: scratch,
            unclear: Status::Parked,
            second_one_in: SECONDS,
            ..Story::undone("restore_test, not started", Ground::GuestRuns, trial)
        },
    ]
}

/// But for the claim and the report they are those of the first.
const SECONDS_OF_HEARD: usize = 20;

/// Anything under the numbers of scratch guests has no owner.
fn scratch(name: &str) -> bool {
    name.contains("vm-900-") || name.contains("900.conf")
}

fn heard(kit: &Kit) -> Operation {
    let Operation::RestoreTest(mut test) = trial(kit) else { unreachable!("a trial is one") };
    test.place.speech = Some(kit.test_bridge());
    Operation::RestoreTest(test)
}

fn trial(kit: &Kit) -> Operation {
    let (guest, place) = (target(1), kit.policy().scratch.expect("the kit has a place for tests"));
    Operation::RestoreTest(Box::new(RestoreTest {
        guest: guest.uid,
        name: guest.name,
        backup: TestedBackup {
            archive: archive(),
            taken_by: OperationId::new(uuid::Uuid::nil()),
            taken_at: jiff::Timestamp::UNIX_EPOCH,
        },
        place,
    }))
}
