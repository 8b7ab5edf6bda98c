//! Tests of requests of guests, one small host each.

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::protection::Tier;

use super::*;
use crate::model::limits;
use crate::model::policy::QuiesceBound;
use crate::model::records::{SnapshotRecord, TakenBy};
use crate::model::request::{Ask, QueuedRequest};

fn name(text: &str) -> SnapshotName {
    text.parse().unwrap()
}

fn request(serial: u64, n: u32, ask: Ask) -> QueuedRequest {
    QueuedRequest { serial, id: op(u128::from(serial)), guest: uid(n), ask, asked_at: at(-60) }
}

fn snapshot(n: u32, text: &str, taken_by: TakenBy) -> SnapshotRecord {
    SnapshotRecord {
        guest: uid(n),
        name: name(text),
        vmid: vmid(299 + n),
        made_by: op(70),
        taken_by,
        taken_at: at(-600),
        expires_at: Some(at(600)),
        point: None,
    }
}

const SITUATIONS: &[Situation] = &[
    ("a backup", |w| w.records.requests.push(request(1, 1, Ask::Backup { tier: None }))),
    ("a backup, and there is no storage for any", |w| {
        w.policy.backup_storage = None;
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
    }),
    ("an off-site backup, and none is promised", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: Some(Tier::OffSite) }));
    }),
    ("only the first of each guest, and the first behind its backups", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.records.requests.push(request(2, 1, Ask::Snapshot { name: name("s1"), keep_s: None }));
        w.records.requests.push(request(3, 2, Ask::Snapshot { name: name("s1"), keep_s: Some(7_200) }));
    }),
    ("while something is under way it waits", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::Start, guest: uid(1) });
    }),
    ("a locked guest is waited for", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.seen(300).lock = Some("backup".to_owned());
    }),
    ("but not longer than a day", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.records.requests[0].asked_at = at(-90_000);
        w.seen(300).lock = Some("backup".to_owned());
    }),
    ("what cannot be seen is waited for", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.observed.guests.remove(&vmid(300));
    }),
    ("a stranger under its number", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.facts(300).mark = mark::Mark::None;
    }),
    ("a parked guest", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.records.parked.push(ParkedOperation {
            id: op(9),
            kind: OperationKind::Grow,
            guest: uid(1),
            about: uid(1),
            message: "the disk is full".to_owned(),
        });
    }),
    ("a frozen guest", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.records.guests[0].access = Access::Frozen;
    }),
    ("a guest that is there no more", |w| {
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
        w.records.guests[0].place = Place::Nowhere;
        w.desired.remove(0);
    }),
    ("a rollback to its own snapshot", |w| {
        w.records.snapshots.push(snapshot(1, "s1", TakenBy::Guest));
        w.records.requests.push(request(1, 1, Ask::RollBack { snapshot: name("s1") }));
    }),
    ("a rollback that would take bulk data along", |w| {
        w.records.snapshots.push(snapshot(1, "s1", TakenBy::Guest));
        let bulk = json!({ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": { "bulk": { "none": "rebuilt" } } });
        w.desired[0].volumes = vec![serde_json::from_value(bulk).unwrap()];
        w.records.requests.push(request(1, 1, Ask::RollBack { snapshot: name("s1") }));
    }),
    ("a rollback to a snapshot of the agent's", |w| {
        w.records.snapshots.push(snapshot(1, "s1", TakenBy::Agent));
        w.records.requests.push(request(1, 1, Ask::RollBack { snapshot: name("s1") }));
    }),
    ("a rollback to another guest's snapshot", |w| {
        w.records.snapshots.push(snapshot(2, "s1", TakenBy::Guest));
        w.records.requests.push(request(1, 1, Ask::RollBack { snapshot: name("s1") }));
    }),
    ("the end of its own snapshot", |w| {
        w.records.snapshots.push(snapshot(1, "s1", TakenBy::Guest));
        w.records.requests.push(request(1, 1, Ask::ExpireSnapshot { name: name("s1") }));
    }),
    ("the end of a snapshot that is gone", |w| {
        w.records.requests.push(request(1, 1, Ask::ExpireSnapshot { name: name("s1") }));
    }),
    ("one window more than a day has", |w| {
        w.records.asked_backups.insert(uid(1), limits::ASKED_BACKUPS_PER_DAY + 1);
        let ask = Ask::QuiescedBackup { tier: None, bound: QuiesceBound::usual() };
        w.records.requests.push(request(1, 1, ask));
    }),
    ("beside a request of the document", |w| {
        w.seen(300).run = Running::Stopped;
        w.records.requests.push(request(1, 1, Ask::Backup { tier: None }));
    }),
];

#[test]
fn every_goal_of_a_guest_has_its_printed_answer() {
    let mut text = String::new();
    for (name, change) in SITUATIONS {
        let mut world = world(2);
        world.policy.backup_storage = Some("backup2".parse().unwrap());
        change(&mut world);
        text.push_str(&format!("# {name}\n{}\n", world.plan()));
    }
    insta::assert_snapshot!(text);
}
