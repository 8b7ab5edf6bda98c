//! Stories of updated guest agents.

use agentd::model::records::TakenBy;
use agentd::operation::{Operation, Snapshot, UpdateController};

use super::Story;
use crate::controllers::Speech;
use crate::fixtures::target;
use crate::ground::Ground;

/// What is killed twice: the wait is the same wherever it is cut.
const SECONDS: usize = 7;

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story { second_one_in: SECONDS, ..Story::done("update_controller", Ground::HotRuns, |_| update()) },
        // The new one reports that it is not well: the guest hears that it goes back, and the operation has fulfilled its
        // purpose.
        Story {
            speech: Speech::Unwell,
            second_one_in: SECONDS,
            ..Story::done("update_controller, it is not well", Ground::HotRuns, |_| update())
        },
        // It has the bytes, which end as soon as they start, and its guest puts the previous one back.
        Story {
            speech: Speech::Returns,
            second_one_in: SECONDS,
            ..Story::done("update_controller, it returns", Ground::HotRuns, |_| update())
        },
        // It has the bytes, and becomes silent, and the guest's own way back does not come either. The guest is free for
        // the next operation.
        Story {
            speech: Speech::Breaks,
            second_one_in: SECONDS,
            ..Story::done("update_controller, it breaks", Ground::HotRuns, |_| update())
        },
        // It has the bytes, which do not run there, and the previous one still speaks.
        Story {
            speech: Speech::Refuses,
            second_one_in: 3 * SECONDS,
            ..Story::undone("update_controller, thrown away", Ground::HotRuns, |_| update())
        },
        // No controller fetches anything.
        Story {
            speech: Speech::Silence,
            second_one_in: SECONDS,
            ..Story::undone("update_controller, not taken", Ground::HotRuns, |_| update())
        },
        // No snapshot is taken of volumes that no backup holds, and none is needed.
        Story {
            second_one_in: SECONDS,
            ..Story::done("update_controller, with bulk", Ground::GuestRuns, |_| update())
        },
    ]
}

fn update() -> Operation {
    Operation::UpdateController(Box::new(UpdateController {
        snapshot: Snapshot {
            target: target(1),
            name: "update-20261121T050000Z".parse().unwrap(),
            taken_by: TakenBy::Agent,
            expires_at: Some("2026-11-22T05:00:00Z".parse().unwrap()),
            due: None,
        },
        version: "0.2.0".to_owned().try_into().unwrap(),
        sha256: "cd".repeat(32).try_into().unwrap(),
        pace_s: 60,
        unwell_before: std::collections::BTreeSet::new(),
    }))
}
