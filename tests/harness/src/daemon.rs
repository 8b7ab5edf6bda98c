//! The agent's loops, from document to report.
//!
//! In: a world, perhaps a hub, the conductor that decides when the agent dies, and the awaited state. Out: whether that
//! state came, or where the agent died. The reconcile loop and the report are the agent's own. The exchange with the
//! hub is the harness's, because the agent's needs sockets: it takes the document by the same parser and the same rules
//! into the same store.

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::Ports;
use agentd::execute::failpoint::Side;
use agentd::model::view::HostSnapshot;
use agentd::port::host_replacement::HandOverFolder;
use agentd::port::hub::Contact;
use agentd::task::reconcile::{ObserveInterval, Reconcile};
use agentd::task::report::ReportTask;
use agentd::task::stop;
use holdfast_protocol::checkin::{CheckinRequest, Coverage};
use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::report::{ReportSchema, Sections};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::controllers::{Speech, speak};
use crate::hub::Hub;
use crate::points::{Conductor, Place};
use crate::world::World;

/// How often the agent checks the host, as in production.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How often the agent calls the hub.
const CHECK_IN_EVERY: Duration = Duration::from_secs(5);
/// A host whose faults are over has settled after this much virtual time.
const SETTLED_WITHIN: Duration = Duration::from_secs(12 * 3600);

/// How it went.
#[derive(Debug)]
pub enum Served {
    /// The awaited state was reached.
    Reached,
    Killed(Place),
    /// It was never reached.
    Stuck(String),
}

/// The awaited state.
pub type Goal<'a> = &'a dyn Fn(&HostDetail) -> bool;

/// Serves until the report at the hub shows the awaited state, or until death.
pub async fn serve(
    world: &World,
    hub: &Hub,
    conductor: &Arc<Conductor>,
    speech: Speech,
    goal: Goal<'_>,
) -> Served {
    let ports = world.agent(conductor).await;
    let (view, seen) = watch::channel(Arc::new(HostSnapshot::default()));
    let (sections, report) = watch::channel(Arc::new(Sections::default()));
    let (_storage, targets) = watch::channel(Arc::default());
    let (_hardware, hardware) = watch::channel(Arc::default());
    let (_levels, levels) = watch::channel(Arc::default());
    let (_way, break_glass) = watch::channel(Arc::default());
    let (_tunnels, tunnels) = watch::channel(Arc::default());
    let (_stopper, stop) = stop::pair();
    let reconcile = Reconcile {
        ports: ports.clone(),
        eye: world.eye(&ports),
        policy: world.kit.policy(),
        node: "pve1".parse().unwrap(),
        interval: ObserveInterval::Every(LOOK_EVERY),
        view,
        stop: stop.clone(),
    };
    let certificate_ends_at = Timestamp::MAX;
    let never = Contact { reached_at: None, problem: None, certificate_ends_at };
    let (_contact, contact) = watch::channel(never);
    let teller = ReportTask {
        store: ports.store.clone(),
        view: seen.clone(),
        storage: targets,
        hardware,
        levels,
        break_glass,
        tunnels,
        sections,
        clock: Arc::clone(&ports.clock),
        started_at: ports.clock.now(),
        status: Vec::new(),
        handed: HandOverFolder::of(&world.agent_folder()),
        recipient: None,
        contact,
        token_ages: Arc::new(Vec::new),
    };
    let exchange = exchange(world, hub, &ports, conductor, report, goal);
    tokio::select! {
        biased;
        place = conductor.death() => Served::Killed(place),
        () = exchange => Served::Reached,
        () = reconcile.run() => Served::Stuck("the reconcile loop ended".to_owned()),
        () = teller.run(stop) => Served::Stuck("the report ended".to_owned()),
        () = speak(world, &ports.store, speech) => Served::Stuck("the controllers ended".to_owned()),
        () = tokio::time::sleep(SETTLED_WITHIN) => {
            let operations = ports.store.operation_views(9).await;
            Served::Stuck(format!("never told so: {:#?}\n{operations:#?}", *seen.borrow()))
        }
    }
}

/// Reports, receives documents and accepts them, until the hub shows the awaited state.
async fn exchange(
    world: &World,
    hub: &Hub,
    ports: &Ports,
    conductor: &Conductor,
    report: watch::Receiver<Arc<Sections>>,
    goal: Goal<'_>,
) {
    for sequence in 1.. {
        tokio::time::sleep(CHECK_IN_EVERY).await;
        let desired = ports.store.desired_section().await.unwrap();
        let mut sections = Sections::clone(&report.borrow());
        if sections.agent.is_none() {
            continue;
        }
        let held = desired.held;
        sections.desired = Some(desired);
        let request = CheckinRequest {
            schema: ReportSchema::V1,
            sequence,
            held,
            coverage: Coverage::Full,
            sections,
            usage: Vec::new(),
            diagnostic: None,
        };
        pass(conductor, "report", Side::Before).await;
        let answer = hub.check_in(&request).await;
        pass(conductor, "report", Side::After).await;
        if let Some(text) = answer.desired {
            let desired = Desired::parse(text.as_bytes()).unwrap();
            pass(conductor, "document", Side::Before).await;
            ports.store.offer_desired(desired, world.timeline.now()).await.unwrap();
            pass(conductor, "document", Side::After).await;
        } else if held != Generation::NONE && goal(&hub.host().await) {
            return;
        }
    }
}

/// A dead agent waits for ever.
async fn pass(conductor: &Conductor, step: &'static str, side: Side) {
    if conductor.exchange(step, side).is_err() {
        std::future::pending::<()>().await;
    }
}
