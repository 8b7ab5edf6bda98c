//! Killed before and after every journal write and every effect of every operation, then run again from what is on disk:
//! *provision* once on the way to a whole guest and once on the way back from a failed one, the others on a guest that
//! was made before.

use std::sync::{Arc, Mutex};

use agentd::execute::Ports;
use agentd::execute::failpoint::{Failpoints, Killed, Moment, Nowhere, Point, Side};
use agentd::execute::run::{Stopped, run};
use agentd::operation::log::Status;
use agentd::operation::{DiskRef, Grow, KeepProtection, Operation, Reconfigure, Target};
use agentd::port::pve::read::Power;
use holdfast_protocol::operation::OperationKind;

use super::attach::attachment;
use super::world::{Controllers, FastClock, World, guest, open, told, vmid};

/// Writes down every point that is reached.
#[derive(Default)]
struct Recorder(Mutex<Vec<Point>>);

impl Failpoints for Recorder {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        self.0.lock().unwrap().push(point);
        Ok(())
    }
}

/// Stops the world after so many points, and from then on always: the dead do nothing more.
struct KillAfter {
    points: usize,
    seen: Mutex<usize>,
}

impl Failpoints for KillAfter {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        let mut seen = self.seen.lock().unwrap();
        *seen += 1;
        if *seen > self.points { Err(Killed(point)) } else { Ok(()) }
    }
}

/// A story that is told once undisturbed and once for each point.
#[derive(Clone, Copy)]
struct Story {
    name: &'static str,
    ground: Ground,
    operation: fn(&World) -> Operation,
    controllers: Speech,
    end: Status,
}

/// Whether the guests' controllers speak.
#[derive(Clone, Copy, PartialEq)]
enum Speech {
    Hello,
    /// The wait for them passes faster, too.
    Silence,
}

impl Speech {
    /// The ports of one run, and who speaks during it.
    async fn set_up(self, world: &World, failpoints: Arc<dyn Failpoints>) -> (Ports, Option<Controllers>) {
        let ports = world.ports(failpoints).await;
        match self {
            Self::Hello => {
                let controllers = Controllers::start(&ports);
                (ports, Some(controllers))
            }
            Self::Silence => (Ports { clock: Arc::new(FastClock::times(150)), ..ports }, None),
        }
    }
}

/// What is there before the story begins.
#[derive(Clone, Copy, PartialEq)]
enum Ground {
    Empty,
    GuestRuns,
    GuestStands,
}

impl Ground {
    /// Makes it, with an agent that nothing disturbs.
    async fn prepare(self, world: &World) {
        if self == Self::Empty {
            return;
        }
        let ports = world.sound().await;
        let _controllers = Controllers::start(&ports);
        let made = run(&ports, open(&ports, 0, world.provision(1)).await).await.unwrap();
        assert_eq!(made.status(), Status::Done, "{}", told(&made));
        if self == Self::GuestStands {
            let stop = Operation::Stop(target());
            let stopped = run(&ports, open(&ports, 9, stop).await).await.unwrap();
            assert_eq!(stopped.status(), Status::Done, "{}", told(&stopped));
        }
    }
}

fn target() -> Target {
    Target { uid: guest(1).uid, name: guest(1).name, vmid: vmid(300) }
}

/// What there is to compare at the end of a run.
#[derive(Clone, PartialEq, Debug)]
struct End {
    guests: Vec<(String, String)>,
    disks: Vec<String>,
    restores: usize,
    power: Option<Power>,
}

async fn end_of(world: &World) -> End {
    End {
        guests: world.guests().into_iter().collect(),
        disks: world.disks().into_iter().collect(),
        restores: world.restores(300).await,
        power: world.pve().guest_status(vmid(300)).await.ok().map(|status| status.power),
    }
}

async fn undisturbed(story: Story) -> (Vec<(usize, Point)>, End) {
    let world = World::start().await;
    story.ground.prepare(&world).await;
    let recorder = Arc::new(Recorder::default());
    let failpoints = Arc::clone(&recorder) as Arc<dyn Failpoints>;
    let (ports, _controllers) = story.controllers.set_up(&world, failpoints).await;
    let opened = open(&ports, 1, (story.operation)(&world)).await;
    let done = run(&ports, opened).await.unwrap();
    assert_eq!(done.status(), story.end, "{}", told(&done));
    assert_eq!(done.conditions().count(), 0, "{}", told(&done));
    let points = recorder.0.lock().unwrap().iter().copied().enumerate().collect();
    (points, end_of(&world).await)
}

/// Every point, four at a time.
async fn matrix(story: Story, points: &[(usize, Point)], wanted: &End) {
    let mut wrong = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    let mut pending = points.iter().copied();
    loop {
        while running.len() < 4
            && let Some((nth, point)) = pending.next()
        {
            let wanted = wanted.clone();
            running.spawn(async move { case(story, nth, point, &wanted).await });
        }
        match running.join_next().await {
            Some(found) => wrong.extend(found.unwrap()),
            None => break,
        }
    }
    let (name, count) = (story.name, points.len());
    assert!(wrong.is_empty(), "{name}: {} of {count} points:\n{}", wrong.len(), wrong.join("\n"));
    println!("{name}: {count} points, 0 violations");
}

/// One kill and one restart. Gives what is wrong afterwards.
async fn case(story: Story, nth: usize, point: Point, wanted: &End) -> Option<String> {
    let world = World::start().await;
    story.ground.prepare(&world).await;
    {
        let killer = Arc::new(KillAfter { points: nth, seen: Mutex::new(0) });
        let (ports, _controllers) = story.controllers.set_up(&world, killer).await;
        let opened = open(&ports, 1, (story.operation)(&world)).await;
        match run(&ports, opened).await {
            Err(Stopped::Killed(_)) => {}
            other => return Some(format!("{point}: not killed but {other:?}")),
        }
    }
    let (ports, _controllers) = story.controllers.set_up(&world, Arc::new(Nowhere)).await;
    for progress in ports.store.open_operations().await.unwrap() {
        let done = run(&ports, progress).await.unwrap();
        if done.status() != story.end {
            return Some(format!("{point}: {}", told(&done)));
        }
    }
    if let Err(error) = ports.store.verify_audit().await {
        return Some(format!("{point}: {error}"));
    }
    let found = end_of(&world).await;
    (found != *wanted).then(|| format!("{point}: another end\n{found:#?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn provision_killed_at_every_point_ends_the_same() {
    let story = Story {
        name: "provision",
        ground: Ground::Empty,
        operation: |world| world.provision(1),
        controllers: Speech::Hello,
        end: Status::Done,
    };
    let (points, wanted) = undisturbed(story).await;
    assert_eq!((wanted.guests.len(), wanted.restores), (1, 1), "one guest by one restore: {wanted:#?}");
    assert_eq!(wanted.disks.len(), 3, "a root disk and two volumes: {wanted:#?}");
    // Fewer points mean that a hook was lost.
    assert!(points.len() >= 90, "only {} points", points.len());
    matrix(story, &points, &wanted).await;
}

/// The second volume's storage does not exist, so what was made by then is taken back.
fn doomed(world: &World) -> Operation {
    let Operation::Provision(mut provision) = world.provision(1) else {
        unreachable!("a provision was asked for")
    };
    provision.bulk_storage = Some("nosuch".parse().unwrap());
    Operation::Provision(provision)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_provision_killed_at_every_point_leaves_nothing() {
    let story = Story {
        name: "provision that fails",
        ground: Ground::Empty,
        operation: doomed,
        controllers: Speech::Hello,
        end: Status::Undone,
    };
    let (points, wanted) = undisturbed(story).await;
    assert_eq!((wanted.guests.len(), wanted.disks.len()), (0, 0), "{wanted:#?}");
    matrix(story, &from_failure(points), &wanted).await;
}

/// What comes before the failure is another test's: from the failed step's outcome on.
fn from_failure(points: Vec<(usize, Point)>) -> Vec<(usize, Point)> {
    let frame = Point { step: "operation", side: Side::Before, moment: Moment::Frame };
    // The first frame is the begin, the second the begin of the undo; its two neighbours before are the outcome.
    let undo = points.iter().filter(|(_, point)| *point == frame).nth(1).unwrap().0;
    points.into_iter().skip(undo - 2).collect()
}

/// A guest that runs, protected and with its claim handed over, is taken back because its controller never spoke.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_undo_of_a_silent_guest_killed_at_every_point_leaves_nothing() {
    let story = Story {
        name: "undo of a silent guest",
        ground: Ground::Empty,
        operation: |world| world.provision(1),
        controllers: Speech::Silence,
        end: Status::Undone,
    };
    let (points, wanted) = undisturbed(story).await;
    assert_eq!((wanted.guests.len(), wanted.disks.len()), (0, 0), "{wanted:#?}");
    let undo = from_failure(points);
    assert!(undo.len() > 40, "only {} points", undo.len());
    matrix(story, &undo, &wanted).await;
}

/// A kind of operation without a story does not compile.
fn story(kind: OperationKind) -> Option<Story> {
    let (ground, operation): (Ground, fn(&World) -> Operation) = match kind {
        // It has tests of its own.
        OperationKind::Provision => return None,
        OperationKind::Start => (Ground::GuestStands, |_| Operation::Start(target())),
        OperationKind::Stop => (Ground::GuestRuns, |_| Operation::Stop(target())),
        OperationKind::Reconfigure => (Ground::GuestRuns, |_| Operation::Reconfigure(smaller())),
        OperationKind::Grow => (Ground::GuestStands, |_| Operation::Grow(larger())),
        OperationKind::AttachVolume => (Ground::GuestRuns, |_| attachment()),
    };
    Some(Story { name: kind.as_str(), ground, operation, controllers: Speech::Hello, end: Status::Done })
}

fn smaller() -> Reconfigure {
    Reconfigure {
        target: target(),
        cores: Some(1.try_into().unwrap()),
        memory: Some(128.try_into().unwrap()),
        swap: None,
        protection: KeepProtection::AsItIs,
    }
}

fn larger() -> Grow {
    Grow { target: target(), disk: DiskRef::Mount(0), size: 2.try_into().unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_to_a_guest_killed_at_every_point_ends_the_same() {
    for story in OperationKind::ALL.iter().filter_map(|kind| story(*kind)) {
        let (points, wanted) = undisturbed(story).await;
        let disks = if story.name == OperationKind::AttachVolume.as_str() { 4 } else { 3 };
        assert_eq!((wanted.guests.len(), wanted.disks.len(), wanted.restores), (1, disks, 1), "{wanted:#?}");
        matrix(story, &points, &wanted).await;
    }
}
