//! Stories of snapshots and rollbacks.

use agentd::model::records::TakenBy;
use agentd::operation::{
    Begun, BulkRule, DuePoint, ExpireSnapshot, ExpiryWhy, Operation, RollBack, Snapshot,
};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::protection::Tier;

use super::Story;
use crate::fixtures::target;
use crate::ground::Ground;

pub(super) fn take() -> Vec<Story> {
    vec![
        Story::done("snapshot", Ground::GuestRuns, |_| taking()),
        Story::undone("snapshot, name taken", Ground::Snapshotted, |_| taking()),
        Story::done("snapshot, by schedule", Ground::GuestRuns, |_| scheduled()),
    ]
}

pub(super) fn expire() -> Vec<Story> {
    let expire = |_: &_| {
        Operation::ExpireSnapshot(ExpireSnapshot {
            target: target(1),
            name: "s1".parse().unwrap(),
            made_by: made_by(),
            why: ExpiryWhy::PastItsTime,
        })
    };
    let story = Story::done("expire_snapshot", Ground::Snapshotted, expire);
    let let_go = Story::done("expire_snapshot, let go", Ground::LetGo, |_| letting_go());
    vec![
        Story { may_take: |held| held.ends_with("@s1"), ..story },
        Story { may_take: |held| held.contains("@scheduled-"), ..let_go },
        // Nothing is promised on this ground: a snapshot that no retention releases stays.
        Story::undone("expire_snapshot, unpromised", Ground::Scheduled, |_| letting_go()),
    ]
}

pub(super) fn roll_back() -> Vec<Story> {
    vec![
        Story::done("roll_back", Ground::Snapshotted, |_| back(BulkRule::Signed)),
        Story::undone("roll_back, unsigned", Ground::Snapshotted, |_| back(BulkRule::NoneThere)),
    ]
}

/// A snapshot that expires at once. The ground is made by it, too.
pub(crate) fn taking() -> Operation {
    Operation::Snapshot(Snapshot {
        target: target(1),
        name: "s1".parse().unwrap(),
        taken_by: TakenBy::Guest,
        expires_at: Some("2026-11-21T05:00:01Z".parse().unwrap()),
        due: None,
    })
}

/// A snapshot for a point of a schedule. The ground is made by it, too.
pub(crate) fn scheduled() -> Operation {
    let point = "2026-11-21T05:00:00Z".parse().unwrap();
    Operation::Snapshot(Snapshot {
        target: target(1),
        name: "scheduled-20261121T050000Z".parse().unwrap(),
        taken_by: TakenBy::Schedule,
        expires_at: None,
        due: Some(DuePoint { tier: Tier::Snapshot, point, begun: Begun::InTime, at: point }),
    })
}

/// The removal of the one that the schedule took.
fn letting_go() -> Operation {
    Operation::ExpireSnapshot(ExpireSnapshot {
        target: target(1),
        name: "scheduled-20261121T050000Z".parse().unwrap(),
        made_by: OperationId::new(uuid::Uuid::from_u128(u128::from(Ground::Scheduled.number()))),
        why: ExpiryWhy::OutsidePolicy,
    })
}

/// Who made the ground's snapshot.
fn made_by() -> OperationId {
    OperationId::new(uuid::Uuid::from_u128(u128::from(Ground::Snapshotted.number())))
}

fn back(bulk: BulkRule) -> Operation {
    Operation::RollBack(RollBack {
        target: target(1),
        snapshot: "s1".parse().unwrap(),
        made_by: made_by(),
        bulk,
    })
}
