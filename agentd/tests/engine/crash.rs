//! Killed before and after every journal write and every effect of *provision*, then run again from what is on disk:
//! once on the way to a whole guest, once on the way back from a failed one.

use std::sync::{Arc, Mutex};

use agentd::execute::failpoint::{Failpoints, Killed, Nowhere, Point};
use agentd::execute::run::{Stopped, run};
use agentd::operation::Operation;
use agentd::operation::log::Status;

use super::world::{Controllers, World, open, told};

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
    operation: fn(&World) -> Operation,
    end: Status,
}

/// What there is to compare at the end of a run.
#[derive(Clone, PartialEq, Debug)]
struct End {
    guests: Vec<(String, String)>,
    disks: Vec<String>,
    restores: usize,
}

async fn end_of(world: &World) -> End {
    End {
        guests: world.guests().into_iter().collect(),
        disks: world.disks().into_iter().collect(),
        restores: world.restores(300).await,
    }
}

async fn undisturbed(story: Story) -> (Vec<Point>, End) {
    let world = World::start().await;
    let recorder = Arc::new(Recorder::default());
    let ports = world.ports(Arc::clone(&recorder) as Arc<dyn Failpoints>).await;
    let _controllers = Controllers::start(&ports);
    let opened = open(&ports, 1, (story.operation)(&world)).await;
    let done = run(&ports, opened).await.unwrap();
    assert_eq!(done.status(), story.end, "{}", told(&done));
    assert_eq!(done.conditions().count(), 0, "{}", told(&done));
    let points = recorder.0.lock().unwrap().clone();
    (points, end_of(&world).await)
}

/// Every point, four at a time.
async fn matrix(story: Story, points: &[Point], wanted: &End) {
    let mut wrong = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    let mut pending = points.iter().copied().enumerate();
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
    assert!(wrong.is_empty(), "{} of {} points:\n{}", wrong.len(), points.len(), wrong.join("\n"));
    println!("{} points, 0 violations", points.len());
}

/// One kill and one restart. Gives what is wrong afterwards.
async fn case(story: Story, nth: usize, point: Point, wanted: &End) -> Option<String> {
    let world = World::start().await;
    {
        let ports = world.ports(Arc::new(KillAfter { points: nth, seen: Mutex::new(0) })).await;
        let _controllers = Controllers::start(&ports);
        let opened = open(&ports, 1, (story.operation)(&world)).await;
        match run(&ports, opened).await {
            Err(Stopped::Killed(_)) => {}
            other => return Some(format!("{point}: not killed but {other:?}")),
        }
    }
    let ports = world.ports(Arc::new(Nowhere)).await;
    let _controllers = Controllers::start(&ports);
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
    let story = Story { operation: |world| world.provision(1), end: Status::Done };
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
    let story = Story { operation: doomed, end: Status::Undone };
    let (points, wanted) = undisturbed(story).await;
    assert_eq!((wanted.guests.len(), wanted.disks.len()), (0, 0), "{wanted:#?}");
    matrix(story, &points, &wanted).await;
}
