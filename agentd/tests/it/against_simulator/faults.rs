//! Tests of lost answers, slow daemons and dead workers.

use std::time::Duration;

use agentd::port::pve::error::{PveError, RetryClass};
use agentd::port::pve::task::{Patience, Unclear};
use agentd::port::pve::{
    ConfigChange, ConfigUpdate, Pve, RealPace, Role, TaskKind, TaskOutcome, TaskQuery, VmidUse, follow_task,
};
use pve_sim::fault::{Aim, Fault};

use super::lab::*;

fn on(method: &str, path: &str) -> Aim {
    Aim { method: method.to_owned(), path: path.to_owned() }
}

fn archive() -> String {
    format!("backup2:backup/{GOLDEN}")
}

fn restores(number: u32) -> TaskQuery {
    TaskQuery { vmid: vmid(number), kind: TaskKind::Restore, role: Role::Allocate, since_epoch_s: 0 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_owner_answer_was_lost_is_found_and_is_the_only_one() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    lab.sim.node.faults.arm(Fault::LostReply { on: on("POST", "/lxc") });
    let lost = client.restore(&request(300, &archive())).await.unwrap_err();
    assert!(lost.may_have_happened(), "{lost:?}");
    let found = client.find_tasks(restores(300)).await.unwrap();
    let [row] = found.as_slice() else { panic!("one task is expected: {found:?}") };
    assert_eq!(followed(&client, &row.upid).await.0, TaskOutcome::Ok);
    let again = client.restore(&request(300, &archive())).await.unwrap_err();
    assert!(matches!(again, PveError::AlreadyExists { .. }), "{again:?}");
    assert_eq!(client.resources().await.unwrap().guests.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_lost_left_nothing_behind() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    lab.sim.node.faults.arm(Fault::LostRequest { on: on("POST", "/lxc") });
    let lost = client.restore(&request(300, &archive())).await.unwrap_err();
    assert!(lost.may_have_happened(), "nobody can tell it from a lost answer: {lost:?}");
    assert!(client.find_tasks(restores(300)).await.unwrap().is_empty());
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Free);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_answered_with_596_may_have_been_made() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    done(&client, client.restore(&request(300, &archive())).await).await;
    let before = client.guest_config(vmid(300)).await.unwrap();
    let update = ConfigUpdate::new(before.digest, vec![ConfigChange::Protect]).unwrap();
    lab.sim.node.faults.arm(Fault::DaemonSlow { on: on("PUT", "/config") });
    let slow = client.configure(vmid(300), &update).await.unwrap_err();
    assert!(matches!(slow, PveError::GatewayTimeout { status: 596, .. }), "{slow:?}");
    assert_eq!(slow.retry_class(), RetryClass::LookFirst);
    // Sent again blindly it would hit another state: the digest says so.
    let again = client.configure(vmid(300), &update).await.unwrap_err();
    assert!(matches!(again, PveError::DigestChanged), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_sit_passing_trouble_out() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    for fault in [
        Fault::LostReply { on: on("GET", "/version") },
        Fault::CutBody { on: on("GET", "/version") },
        Fault::HtmlBody { on: on("GET", "/version") },
        Fault::DaemonDown { on: on("GET", "/version") },
    ] {
        lab.sim.node.faults.arm(fault.clone());
        assert!(client.version().await.unwrap().is_supported(), "{fault:?}");
        assert_eq!(lab.sim.node.faults.clear(), 0, "{fault:?} did not strike");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_worker_is_neither_success_nor_failure() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    lab.sim.node.faults.arm(Fault::KillWorker { task: "vzrestore".to_owned(), phase: String::new() });
    let upid = client.restore(&request(300, &archive())).await.unwrap();
    assert_eq!(followed(&client, &upid).await.0, TaskOutcome::Unknown(Unclear::WorkerDied));
    // Half-made, in no pool: no token sees it, and its number is taken.
    assert_eq!(client.vmid_use(vmid(300)).await.unwrap(), VmidUse::Taken);
    let blind = client.guest_config(vmid(300)).await.unwrap_err();
    assert!(matches!(blind, PveError::Permission { .. }), "{blind:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patience_ends_and_the_task_goes_on() {
    let lab = Lab::start().await;
    lab.setup(&[]).await.unwrap();
    let (client, _) = lab.client();
    lab.sim.node.faults.arm(Fault::HoldWorker {
        task: "vzrestore".to_owned(),
        phase: String::new(),
        hold_ms: 1500,
    });
    let upid = client.restore(&request(300, &archive())).await.unwrap();
    let short =
        Patience { pause_min: Duration::from_millis(20), ..Patience::up_to(Duration::from_millis(100)) };
    let early = follow_task(&client, &RealPace::default(), &upid, short, &mut |_| {}).await.unwrap();
    assert!(matches!(early, TaskOutcome::Unknown(Unclear::StillRunning { .. })), "{early:?}");
    assert_eq!(followed(&client, &upid).await.0, TaskOutcome::Ok);
}
