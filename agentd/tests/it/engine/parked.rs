//! Tests of parked and interrupted operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentd::execute::failpoint::{Failpoints, Killed, Moment, Point, Side};
use agentd::execute::recover;
use agentd::execute::run::{Stopped, run};
use agentd::model::records::Place;
use agentd::operation::log::Status;
use agentd::operation::{Operation, Stop, Target};
use agentd::plan::Questions;
use agentd::plan::recovery::{Recover, StartObservation, TaskNameSource, recovery};
use agentd::port::store::parked::Answer;
use holdfast_protocol::id::OperationId;
use pve_sim::fault::Fault;
use pve_sim::fault::admin::{Edit, apply};

use super::world::{Controllers, World, guest, open, reported, vmid};

/// The only parked operation, with the answer of a person at the host.
async fn answer(ports: &agentd::execute::Ports) -> Answer {
    let parked = ports.store.parked().await.unwrap();
    let [entry] = parked.as_slice() else { panic!("{parked:?}") };
    let at = ports.clock.now();
    Answer { operation: entry.operation, entries: entry.entries, by: "uid 0".to_owned(), at }
}

async fn half_made(world: &World, ports: &agentd::execute::Ports) {
    let fault = Fault::KillWorker { task: "vzrestore".to_owned(), phase: String::new() };
    world.sim.node.faults.arm(fault);
    let parked = run(ports, open(ports, 1, world.provision(1)).await).await.unwrap();
    assert_eq!(parked.status(), Status::Parked, "{}", reported(&parked));
}

/// Retried before it was fixed it parks again; once fixed, it is taken back completely, and the guest can be made anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mended_leftover_is_taken_back_when_it_is_retried() {
    let world = World::start().await;
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    half_made(&world, &ports).await;
    let before = world.guests();
    let reopened = ports.store.retry_parked(answer(&ports).await).await.unwrap();
    let again = run(&ports, reopened).await.unwrap();
    assert_eq!(again.status(), Status::Parked, "not mended yet: {}", reported(&again));
    assert_eq!(
        (world.guests(), world.restores(300).await),
        (before, 1),
        "nothing was touched, nothing done twice"
    );

    // What the remedy says: pct unlock 300; pct destroy 300.
    apply(&world.sim.node, &Edit::Unset { vmid: 300, key: "lock".to_owned() }).unwrap();
    apply(&world.sim.node, &Edit::Destroy { vmid: 300 }).unwrap();
    let reopened = ports.store.retry_parked(answer(&ports).await).await.unwrap();
    let undone = run(&ports, reopened).await.unwrap();
    assert_eq!(undone.status(), Status::Undone, "{}", reported(&undone));
    assert_eq!(ports.store.guest(guest(1).uid).await.unwrap().unwrap().place, Place::Nowhere);
    let made = run(&ports, open(&ports, 2, world.provision(1)).await).await.unwrap();
    assert_eq!(made.status(), Status::Done, "{}", reported(&made));
    assert_eq!((world.guests().len(), world.disks().len()), (1, 3));
}

/// Forgotten: the leftover stays for the person, and the guest is made under another number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_leftover_stays_and_the_guest_is_made_anew() {
    let world = World::start().await;
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    half_made(&world, &ports).await;
    let left = world.guests();
    let answer = answer(&ports).await;
    ports.store.forget_parked(answer, "I keep the disk to look at it".to_owned()).await.unwrap();
    let made = run(&ports, open(&ports, 2, world.provision(1)).await).await.unwrap();
    assert_eq!((made.status(), made.vmid()), (Status::Done, Some(vmid(301))), "{}", reported(&made));
    let now = world.guests();
    assert!(
        left.iter().all(|(name, text)| now.get(name) == Some(text)),
        "the leftover is as it was: {now:?}"
    );
}

/// Stops the world after one effect.
struct After(&'static str);

impl Failpoints for After {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        let here = point.step == self.0 && (point.side, point.moment) == (Side::After, Moment::Effect);
        if here { Err(Killed(point)) } else { Ok(()) }
    }
}

/// Killed between "sent" and "task recorded": the plan finds the task, records it, and it is followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_task_is_adopted_by_the_plan() {
    let world = World::start().await;
    {
        let ports = world.ports(Arc::new(After("restore"))).await;
        let killed = run(&ports, open(&ports, 1, world.provision(1)).await).await;
        assert!(matches!(killed, Err(Stopped::Killed(_))));
    }
    let ports = world.sound().await;
    let _controllers = Controllers::start(&ports);
    let left = ports.store.open_operations().await.unwrap();
    let tasks = recover::lost_tasks(&ports, &left).await;
    let plan = recovery(&left, StartObservation { observed: None, tasks: &tasks }, ports.clock.now());
    let Recover::Adopt { upid, known: TaskNameSource::LostReply } = &plan.lines[0].recover else {
        panic!("{plan}")
    };
    assert!(upid.contains(":vzrestore:300:"), "{upid}");
    recover::settle(&ports, left, &plan).await.unwrap();
    let mut left = ports.store.open_operations().await.unwrap();
    let progress = left.remove(0);
    assert_eq!(progress.restored_by(), Some(upid.as_str()), "written down before anything is done");
    let done = run(&ports, progress).await.unwrap();
    assert_eq!((done.status(), world.restores(300).await), (Status::Done, 1), "{}", reported(&done));
}

/// While the agent was away the number was given to another owner: parked before any call about the newcomer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_on_a_number_that_changed_hands_is_parked_by_the_plan() {
    let world = World::start().await;
    {
        let ports = world.sound().await;
        let _controllers = Controllers::start(&ports);
        let made = run(&ports, open(&ports, 1, world.provision(1)).await).await.unwrap();
        assert_eq!(made.status(), Status::Done, "{}", reported(&made));
        let target = Target { uid: guest(1).uid, name: guest(1).name, vmid: vmid(300) };
        open(&ports, 2, Operation::Stop(Stop(target))).await;
    }
    for key in ["tags", "description"] {
        apply(&world.sim.node, &Edit::Unset { vmid: 300, key: key.to_owned() }).unwrap();
    }
    let before = world.guests();
    let ports = world.sound().await;
    let policy = world.policy();
    let storages = [policy.storage.clone()].into();
    let mut eye = agentd::task::observe::Observer::new(
        Arc::clone(&ports.pve),
        Arc::clone(&ports.clock),
        ("pve1".parse().unwrap(), policy.pool.clone()),
        storages,
    );
    let observed = eye.look(&Questions::default()).await.unwrap();
    let mut left = ports.store.open_operations().await.unwrap();
    // Begun, so that a step is at stake: an operation that only waits in its lane is judged when it may begin.
    let begun = agentd::operation::log::Event::Begun;
    left[0] = ports.store.append(&left[0], begun, ports.clock.now()).await.unwrap();
    let tasks = BTreeMap::new();
    let plan =
        recovery(&left, StartObservation { observed: Some(&observed), tasks: &tasks }, ports.clock.now());
    recover::settle(&ports, left, &plan).await.unwrap();
    let parked = ports.store.operation(OperationId::new(uuid::Uuid::from_u128(2))).await.unwrap().unwrap();
    assert_eq!(
        (parked.status(), parked.remedy()),
        (Status::Parked, Some("pct config 300")),
        "{}",
        reported(&parked)
    );
    assert_eq!(world.guests(), before, "the newcomer is not touched");
}
