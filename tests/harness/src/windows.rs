//! Simulated guest agents in quiesce windows.
//!
//! In: the running agent, by the same view that its local API answers with. Out: in the world, when programs were
//! stopped and for which window. The knowledge of a controller outlives the agent, since it is in the guest. Its own
//! bounds are kept whether the agent lives or not: the window's, and that of an agent which is silent for too long.
//! Deliberately absent: stacks and hooks, which are `guestd`'s.

use std::collections::BTreeSet;
use std::time::Duration;

use agentd::execute::failpoint::Side;
use agentd::operation::window::{QuiescedStacks, Restarted, WindowEvent};
use agentd::port::clock::Clock;
use agentd::port::store::Store;
use agentd::port::store::window::Moment;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::window::WindowPhase;
use holdfast_protocol::operation::OperationKind;

use crate::points::Conductor;
use crate::world::World;

/// How often a controller checks.
const EVERY: Duration = Duration::from_millis(300);

/// What controllers do with windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Nothing: no controller is there to stop anything.
    NoOne,
    /// What they should.
    Play,
    /// They stop their programs, and start them no sooner than their own bound says.
    Slow,
    /// They stop their programs, start them again by their own bound, and never report the latter. They were killed
    /// meanwhile, and only their timer is left.
    NeverRelease,
}

/// Plays the windows of all guests for as long as it is awaited.
pub async fn play(world: &World, store: &Store, conductor: &Conductor, windows: Windows) {
    if windows == Windows::NoOne {
        return std::future::pending().await;
    }
    loop {
        world.windows.keep_bounds(world.timeline.passed());
        for window in known(world, store).await {
            if !world.windows.is_done(window) {
                turn(world, store, conductor, (windows, window)).await;
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// One check of one window; returns whether nothing more is to be done about it.
pub async fn is_settled(
    world: &World,
    store: &Store,
    conductor: &Conductor,
    (windows, window): (Windows, OperationId),
) -> bool {
    world.windows.keep_bounds(world.timeline.passed());
    turn(world, store, conductor, (windows, window)).await;
    let over = match store.look_at_window(window).await.unwrap() {
        Some(look) => look.view(&Clock::boot_moment(&world.timeline)).phase.is_over(),
        None => true,
    };
    // A window with stopped programs is settled when its controller reported that all runs again.
    world.windows.is_done(window) || (over && world.windows.of(window).is_none())
}

/// The windows that are requested, open, or have stopped programs.
async fn known(world: &World, store: &Store) -> BTreeSet<OperationId> {
    let open = store.open_operations().await.unwrap().into_iter();
    let open = open.filter(|progress| progress.operation.kind() == OperationKind::QuiescedBackup);
    let records = store.records(Generation::new(1), world.timeline.now()).await.unwrap();
    let intended = records.requests.into_iter();
    let intended = intended.filter(|request| request.ask.kind() == OperationKind::QuiescedBackup);
    let mut all: BTreeSet<OperationId> = open.map(|progress| progress.id).collect();
    all.extend(intended.map(|request| request.id));
    all.extend(world.windows.standing());
    all
}

/// One check of a window, and its result.
async fn turn(
    world: &World,
    store: &Store,
    conductor: &Conductor,
    (windows, window): (Windows, OperationId),
) {
    let memory = &world.windows;
    let Some(look) = store.look_at_window(window).await.unwrap() else { return };
    let view = look.view(&Clock::boot_moment(&world.timeline));
    let now = world.timeline.passed();
    memory.hear(window, now);
    let Some(stood) = memory.of(window) else {
        if view.phase == WindowPhase::Granted {
            let left = view.left_s.unwrap_or(view.bound_s);
            memory.stop(window, now, Duration::from_secs(left.into()));
            say(world, store, conductor, (window, quiesced())).await;
        }
        return;
    };
    if stood.to.is_none() {
        match view.phase {
            WindowPhase::Granted => drop(say(world, store, conductor, (window, quiesced())).await),
            _ if windows == Windows::Slow => {}
            WindowPhase::Captured => memory.start(window, now),
            phase if phase.is_over() => memory.start(window, now),
            _ => {}
        }
    }
    let Some(started) = memory.of(window).and_then(|stood| stood.to) else { return };
    let ago = world.timeline.passed().saturating_sub(started);
    let speaks = matches!(windows, Windows::Play | Windows::Slow);
    if speaks && say(world, store, conductor, (window, released(ago))).await {
        memory.done(window);
    }
}

fn quiesced() -> WindowEvent {
    WindowEvent::Quiesced(QuiescedStacks { stacks: vec!["shop".parse().unwrap()], canaries: Vec::new() })
}

fn released(ago: Duration) -> WindowEvent {
    WindowEvent::Released(Restarted { down: Vec::new(), begun_ago: Some(ago) })
}

/// Sends the event. Returns whether it was received.
async fn say(
    world: &World,
    store: &Store,
    conductor: &Conductor,
    (window, said): (OperationId, WindowEvent),
) -> bool {
    let step = if matches!(said, WindowEvent::Quiesced(_)) { "await_quiesced" } else { "await_released" };
    pass(conductor, step, Side::Before).await;
    let moment = Moment { boot: Clock::boot_moment(&world.timeline), at: world.timeline.now() };
    let heard = store.say_of_window(window, said, moment).await.is_ok();
    pass(conductor, step, Side::After).await;
    heard
}

/// A dead agent receives nothing.
async fn pass(conductor: &Conductor, step: &'static str, side: Side) {
    if conductor.exchange(step, side).is_err() {
        std::future::pending::<()>().await;
    }
}
