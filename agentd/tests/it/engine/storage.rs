//! Tests of storage targets by signature.

use agentd::execute::Ports;
use agentd::model::storage::{Marked, TargetRecord};
use agentd::operation::Operation;
use agentd::operation::log::Status;
use agentd::port::store::job_intake::Outcome;
use agentd::port::target_probe::TargetProbe;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::{LetGo, args};
use holdfast_protocol::job::{Act, Draft, JobState, Target};
use holdfast_protocol::storage::{Approval, TargetState};
use serde_json::json;

use super::drift::{Agent, report, serves, start};
use super::jobs::{ended, lay_down, leave, order};
use super::world::{World, asked_backup, end, guest, reported};

fn approval(name: &str, last: u8, class: &str) -> Approval {
    serde_json::from_value(json!({ "name": name, "class": class, "role": "local-backup",
        "backend": { "usb": { "uuid": format!("0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a{last:02x}") } } }))
    .unwrap()
}

fn attach(from: Option<Approval>, to: Approval) -> Draft {
    let act = Act::AttachStorage(args::AttachStorage { from: from.map(Box::new), to: Box::new(to) });
    Draft { target: Target::Host {}, act }
}

fn let_go(from: Approval, to: LetGo) -> Draft {
    let act = Act::DetachStorage(args::DetachStorage { from: Box::new(from), to });
    Draft { target: Target::Host {}, act }
}

async fn done(agent: &Agent, draft: Draft) {
    let mail = order(agent, draft).await;
    assert!(matches!(leave(agent, &mail).await, Outcome::Taken));
    let report = ended(agent, mail.id).await;
    assert_eq!(report.state, JobState::Done, "{report:?}");
}

async fn away(agent: &Agent, draft: Draft, code: ErrorCode) {
    let before = agent.ports.store.storage_targets().await.unwrap();
    let mail = order(agent, draft).await;
    match leave(agent, &mail).await {
        Outcome::Away(why) => assert_eq!(why.code(), code, "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(agent.ports.store.storage_targets().await.unwrap(), before);
}

async fn failed(agent: &Agent, draft: Draft, code: ErrorCode) -> String {
    let mail = order(agent, draft).await;
    assert!(matches!(leave(agent, &mail).await, Outcome::Taken));
    let report = ended(agent, mail.id).await;
    let problem = report.problem.unwrap();
    assert_eq!((report.state, problem.code), (JobState::Failed, code), "{problem}");
    problem.to_string()
}

async fn only(agent: &Agent) -> TargetRecord {
    let mut all = agent.ports.store.storage_targets().await.unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_approved_whole_once_and_only_from_what_the_operator_saw() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.until("the host is seen", |view| view.seen_at.is_some()).await;
    let (first, other) = (approval("usb1", 1, "slow"), approval("usb1", 2, "slow"));
    away(&agent, attach(Some(first.clone()), first.clone()), ErrorCode::TargetChanged).await;
    away(&agent, let_go(first.clone(), LetGo::Disconnected), ErrorCode::TargetChanged).await;
    away(&agent, attach(Some(approval("usb2", 1, "slow")), first.clone()), ErrorCode::Range).await;
    done(&agent, attach(None, first.clone())).await;
    let record = only(&agent).await;
    assert_eq!((&record.approval, record.status, record.marked), (&first, TargetState::Attached, None));

    // Again, under another name, or in place of a target that does not exist: all are refused.
    away(&agent, attach(None, first.clone()), ErrorCode::TargetChanged).await;
    away(&agent, attach(Some(first.clone()), first.clone()), ErrorCode::TargetChanged).await;
    away(&agent, attach(None, approval("usb9", 1, "slow")), ErrorCode::TargetChanged).await;
    away(&agent, attach(Some(other.clone()), first.clone()), ErrorCode::TargetChanged).await;

    // The same disk under another class keeps its marker, another disk does not.
    let fast = approval("usb1", 1, "fast");
    done(&agent, attach(Some(first), fast.clone())).await;
    assert_eq!(only(&agent).await.mark, record.mark);
    done(&agent, attach(Some(fast), other.clone())).await;
    assert_ne!(only(&agent).await.mark, record.mark);

    done(&agent, let_go(other.clone(), LetGo::Disconnected)).await;
    assert_eq!(only(&agent).await.status, TargetState::Disconnected);
    away(&agent, let_go(other.clone(), LetGo::Disconnected), ErrorCode::TargetChanged).await;
    done(&agent, let_go(other.clone(), LetGo::Decommissioned)).await;
    done(&agent, attach(Some(other.clone()), other)).await;
    assert_eq!(only(&agent).await.status, TargetState::Attached);
    agent.ports.store.verify_audit().await.unwrap();
    agent.stop().await;
}

/// `tank` holds volumes of a guest and `backup2` its only backup: neither can be released by any signature.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_the_only_copy_of_something_is_not_let_go() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("it serves", |view| serves(view, 1)).await;
    for (name, last, says) in
        [("tank", 1, "of guest web-1 lies on it"), ("backup2", 2, "the only backups of web-1")]
    {
        let target = approval(name, last, "slow");
        done(&agent, attach(None, target.clone())).await;
        let words = failed(&agent, let_go(target, LetGo::Decommissioned), ErrorCode::Forbidden).await;
        assert!(words.contains(says), "{words}");
    }
    // Guests' root disks and hot volumes are made on `tank`, which counts as slow from now on.
    agent.goal(2, vec![guest(1), guest(2)]).await;
    let view = agent
        .until("it is refused", |view| report(view, 2).is_some_and(|one| !one.conditions.is_empty()))
        .await;
    let reported = report(&view, 2).unwrap().conditions.first().unwrap().clone();
    assert_eq!(reported.code, ErrorCode::Forbidden, "{}", reported.message);
    assert!(
        reported.message.contains("attached as slow") && world.guests().len() == 1,
        "{}",
        reported.message
    );
    let unused = approval("usb3", 3, "slow");
    done(&agent, attach(None, unused.clone())).await;
    done(&agent, let_go(unused, LetGo::Decommissioned)).await;
    let targets = agent.ports.store.storage_targets().await.unwrap();
    let attached = targets.iter().filter(|one| one.status == TargetState::Attached).count();
    assert_eq!((attached, targets.len()), (2, 3));
    agent.stop().await;
}

/// A disk that dies under its mount keeps writes in memory: Proxmox lists the archive, but it does not exist on the
/// disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_on_a_disk_that_works_no_more_counts_as_none() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    lay_down(&agent).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("it serves", |view| serves(view, 1)).await;
    done(&agent, attach(None, approval("backup2", 2, "slow"))).await;
    let (store, record) = (agent.ports.store.clone(), only(&agent).await);
    let at = agent.ports.clock.now();
    store.note_marked((record.approval.name, record.mark), Marked { iops: None }, at).await.unwrap();
    let before = store.backups(guest(1).uid, 10).await.unwrap().len();
    let dies = TargetProbe::reported(|_| Err("it takes no write: Input/output error".to_owned()));
    let ports = Ports { targets: dies, ..agent.ports.clone() };
    agent.stop().await;
    let ended = end(&ports, 1, Operation::Backup(asked_backup())).await;
    assert_ne!(ended.status(), Status::Done, "{}", reported(&ended));
    let cause = ended.cause().unwrap();
    assert!(cause.code == ErrorCode::StorageGone && cause.message.contains("it takes no write"), "{cause}");
    assert_eq!(store.backups(guest(1).uid, 10).await.unwrap().len(), before);
    let works = Ports { targets: TargetProbe::reported(|_| Ok(())), ..ports };
    let ended = end(&works, 2, Operation::Backup(asked_backup())).await;
    assert_eq!(ended.status(), Status::Done, "{}", reported(&ended));
}
