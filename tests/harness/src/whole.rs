//! One run of the whole agent.
//!
//! In: a world, the conductor that decides when the agent dies, and the goals. Out: as for the engine's life, whether
//! all came to its end or where the agent died. Each life begins as the outside would begin it: the hub sends the
//! document again, and a guest without an answer sends its request again under the same key, with another id.
//! Deliberately absent: the hub itself ([`crate::daemon`]), and failing requests, which are taken back and requested
//! again ([`crate::schedule`]).

use std::sync::Arc;
use std::time::Duration;

use agentd::execute::Ports;
use agentd::execute::failpoint::Side;
use agentd::model::request::Ask;
use agentd::model::view::HostSnapshot;
use agentd::port::clock::Clock;
use agentd::port::store::Store;
use agentd::port::store::request::{NewRequest, RequestKey, RequestOrOperation};
use agentd::task::reconcile::{ObserveInterval, Reconcile};
use agentd::task::stop;
use holdfast_protocol::desired::{Desired, DesiredDocument, DesiredGuest, DesiredSchema};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::OperationId;
use tokio::sync::watch;

use crate::agent_run::End;
use crate::controllers::{Speech, speak};
use crate::fixtures::uid;
use crate::mailbox::{self, Order};
use crate::points::Conductor;
use crate::windows::{self, Windows};
use crate::world::World;

/// How often the agent checks the host when nothing is new.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Nothing was changed and nothing is open for this many checks: it has settled.
const QUIET_LOOKS: u32 = 4;

/// A host whose faults are over has settled after this much virtual time.
const SETTLED_WITHIN: Duration = Duration::from_secs(12 * 3600);

/// The requests of the document and the guests.
pub struct Goals {
    /// The document's guests.
    pub guests: Vec<DesiredGuest>,
    /// The requests of guests, by their numbers.
    pub asks: Vec<(u8, Ask)>,
    /// The jobs that operators sign, once all of that is over.
    pub jobs: Vec<Order>,
}

pub struct Life<'a> {
    /// Whether controllers speak.
    pub speech: Speech,
    /// What they do in quiesce windows.
    pub windows: Windows,
    /// The goals of this life.
    pub goals: &'a Goals,
    /// Which life it is.
    pub number: usize,
}

pub async fn live(world: &World, conductor: &Arc<Conductor>, life: &Life<'_>) -> End {
    let ports = world.agent(conductor).await;
    let store = ports.store.clone();
    let (view, seen) = watch::channel(Arc::new(HostSnapshot::default()));
    let (_stopper, stop) = stop::pair();
    let reconcile = Reconcile {
        ports: ports.clone(),
        eye: world.eye(&ports),
        policy: world.kit.policy(),
        node: "pve1".parse().unwrap(),
        interval: ObserveInterval::Every(LOOK_EVERY),
        view,
        stop,
    };
    tokio::select! {
        biased;
        place = conductor.death() => End::Killed(place),
        reported = report(world, &ports, conductor, life) => reported,
        () = reconcile.run() => End::Stuck("the loop ended by itself".to_owned()),
        () = speak(world, &store, life.speech) => End::Stuck("the controllers ended".to_owned()),
        () = windows::play(world, &store, conductor, life.windows) => End::Stuck("the windows ended".to_owned()),
        () = tokio::time::sleep(SETTLED_WITHIN) => End::Stuck(format!("it has not settled: {:#?}", *seen.borrow())),
    }
}

/// Sends the goals, and waits until all of them have ended.
async fn report(world: &World, ports: &Ports, conductor: &Conductor, life: &Life<'_>) -> End {
    let store = &ports.store;
    pass(conductor, "document", Side::Before).await;
    let taken = store.offer_desired(document(life.goals), Clock::now(&world.timeline)).await;
    pass(conductor, "document", Side::After).await;
    if let Err(error) = taken {
        return End::Stuck(format!("the document was not taken: {error}"));
    }
    let mut waits = Vec::new();
    for (nth, (guest, ask)) in life.goals.asks.iter().enumerate() {
        pass(conductor, "request", Side::Before).await;
        let taken = store.ask(request(world, life, nth, (*guest, ask.clone()))).await;
        pass(conductor, "request", Side::After).await;
        match taken {
            Ok(accepted) => waits.push(accepted.operation),
            Err(error) => return End::Stuck(format!("request {nth} was not taken: {error}")),
        }
    }
    if let End::Stuck(why) = settle(world, store, &waits, 0).await {
        return End::Stuck(why);
    }
    match order(world, store, conductor, &life.goals.jobs).await {
        Ok(()) => End::Came(Vec::new()),
        Err(why) => End::Stuck(why),
    }
}

/// Passes on what was signed, in every life anew, until each job has come to its end, once.
async fn order(world: &World, store: &Store, conductor: &Conductor, orders: &[Order]) -> Result<(), String> {
    if orders.is_empty() {
        return Ok(());
    }
    mailbox::lay_down(world, store).await?;
    let mut letters = Vec::new();
    for (nth, order) in orders.iter().enumerate() {
        let letter = mailbox::letter(world, store, nth, order).await;
        pass(conductor, "mail", Side::Before).await;
        mailbox::pass_on(world, store, &letter).await?;
        pass(conductor, "mail", Side::After).await;
        letters.push(letter);
    }
    match settle(world, store, &[], orders.len()).await {
        End::Stuck(why) => Err(why),
        _ => mailbox::judge(world, store, orders, &letters).await,
    }
}

async fn settle(world: &World, store: &Store, waits: &[OperationId], jobs: usize) -> End {
    let (mut count, mut quiet) = (0, 0);
    while quiet < QUIET_LOOKS {
        tokio::time::sleep(LOOK_EVERY).await;
        let effects = world.log.effects().len();
        let mut at_work = !store.open_operations().await.unwrap().is_empty();
        for id in waits {
            match store.asked(*id).await.unwrap() {
                Some(RequestOrOperation::Operation(_)) => {}
                Some(RequestOrOperation::Request(request)) if request.end.is_none() => at_work = true,
                other => return End::Stuck(format!("request {id} never became an operation: {other:?}")),
            }
        }
        for nth in 0..jobs {
            at_work |= mailbox::is_under_way(store, nth).await;
        }
        quiet = if at_work || effects != count { 0 } else { quiet + 1 };
        count = effects;
    }
    End::Came(Vec::new())
}

fn document(goals: &Goals) -> Desired {
    let document = DesiredDocument {
        schema: DesiredSchema::V1,
        generation: Generation::new(1),
        poll_interval_s: 30.try_into().unwrap(),
        observe_interval_s: None,
        levels: None,
        overcommit: None,
        customer_limits: Vec::new(),
        alarm_after_s: None,
        policies: Vec::new(),
        storage: Vec::new(),
        guests: goals.guests.clone(),
    };
    Desired::check(document).expect("a document that can be asked for")
}

/// The same key in every life, and an id of that life's own: the first that is written counts.
fn request(world: &World, life: &Life<'_>, nth: usize, (guest, ask): (u8, Ask)) -> NewRequest {
    let number = 1_000 * (life.number as u128 + 1) + nth as u128;
    let key = format!("story-{nth}").parse().unwrap();
    NewRequest {
        id: OperationId::new(uuid::Uuid::from_u128(number)),
        guest: uid(guest),
        ask,
        key: Some(RequestKey { key, request_sha256: [u8::try_from(nth).unwrap(); 32] }),
        correlation: None,
        at: Clock::now(&world.timeline),
    }
}

/// A dead agent waits for ever.
async fn pass(conductor: &Conductor, step: &'static str, side: Side) {
    if conductor.exchange(step, side).is_err() {
        std::future::pending::<()>().await;
    }
}
