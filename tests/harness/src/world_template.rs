//! Template worlds, copied for each case.
//!
//! In: a name. Out: a folder in memory with the simulator's state and the agent's database, the moment at which it
//! continues, and its contents. Each is made by an undisturbed agent, out of the one before it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::{BackupWhy, VolumeId};
use agentd::operation::log::Status;
use agentd::operation::{Operation, RestoreCopy, Stop};
use agentd::plan::protect::Raise;
use agentd::port::clock::Clock;
use agentd::port::store::protection::Changed;
use holdfast_protocol::id::JobId;
use jiff::Timestamp;
use pve_sim::fault::admin::{Edit, apply};
use serde_json::json;
use tempfile::TempDir;

use crate::agent_run::{Begin, End, Tone, live, reported};
use crate::controllers::Speech;
use crate::db_reader::Book;
use crate::fixtures::{FOREIGN, Kit, target, uid};
use crate::ground::Ground;
use crate::mailbox::one_guest_a_day;
use crate::points::Conductor;
use crate::scene::Scene;
use crate::story::backup::backup;
use crate::story::snapshot::{scheduled, taking};
use crate::virtual_time;
use crate::windows::Windows;
use crate::world::{Beginning, World, copy, folder};

/// What an agent does to make a ground out of another; none when the other is just taken as it is.
type Making = fn(&Kit) -> Option<Operation>;

/// A template that is made on first use.
type Made = Arc<OnceLock<Arc<Template>>>;

/// What it is made of, and how.
fn recipe(ground: Ground) -> (Option<Ground>, Making) {
    match ground {
        Ground::Empty => (None, |_| None),
        Ground::HotRuns => (Some(Ground::Empty), |kit| {
            let mut hot = kit.provision(1);
            hot.guest.volumes.truncate(1);
            Some(Operation::Provision(Box::new(hot)))
        }),
        Ground::GuestRuns => {
            (Some(Ground::Empty), |kit| Some(Operation::Provision(Box::new(kit.provision(1)))))
        }
        Ground::GuestStands => (Some(Ground::GuestRuns), |_| Some(Operation::Stop(Stop(target(1))))),
        Ground::Snapshotted => (Some(Ground::GuestRuns), |_| Some(taking())),
        Ground::TwoGuests => {
            (Some(Ground::GuestRuns), |kit| Some(Operation::Provision(Box::new(kit.provision(2)))))
        }
        Ground::Taker => (Some(Ground::GuestStands), |kit| {
            let mut taker = kit.provision(2);
            taker.guest.volumes.truncate(1);
            Some(Operation::Provision(Box::new(taker)))
        }),
        Ground::TwoStand => (Some(Ground::Taker), |_| Some(Operation::Stop(Stop(target(2))))),
        Ground::BackedUp => (Some(Ground::GuestRuns), |_| Some(backup("backup2", BackupWhy::Schedule))),
        Ground::Promised => (Some(Ground::BackedUp), |_| None),
        Ground::Scheduled => (Some(Ground::GuestRuns), |_| Some(scheduled())),
        Ground::LetGo => (Some(Ground::Scheduled), |_| None),
        Ground::Lost => (Some(Ground::GuestRuns), |_| None),
        Ground::Copy => (Some(Ground::GuestRuns), |kit| Some(copy_of(kit))),
        Ground::OneADay => (Some(Ground::Empty), |_| None),
    }
}

/// A ground that was made.
pub struct Template {
    dir: TempDir,
    beginning: Beginning,
    /// The common parts.
    pub kit: Kit,
    /// The scene in it.
    pub scene: Scene,
    /// The contents of its agent's database.
    pub book: Book,
}

impl Template {
    /// The ground, made on first use.
    #[must_use]
    pub fn of(ground: Ground) -> Arc<Self> {
        static MADE: OnceLock<Mutex<HashMap<Ground, Made>>> = OnceLock::new();
        let cell = Arc::clone(MADE.get_or_init(Mutex::default).lock().unwrap().entry(ground).or_default());
        Arc::clone(cell.get_or_init(|| Arc::new(make(ground))))
    }

    /// The moment at which stories on it begin.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.beginning.at
    }

    /// A world of its own, for one case. Must be called within virtual time.
    #[must_use]
    pub fn world(&self, seed: u64) -> World {
        let dir = folder();
        copy(self.dir.path(), dir.path());
        World::open(dir, Beginning { seed, ..self.beginning }, self.kit.clone())
    }
}

fn make(ground: Ground) -> Template {
    let (before, operation) = recipe(ground);
    let Some(before) = before else { return virtual_time(|| async { empty() }) };
    let before = Template::of(before);
    virtual_time(|| async {
        let world = before.world(u64::from(ground.number()));
        if let Some(operation) = operation(&world.kit) {
            let begin = Begin::With(ground.number(), Box::new(operation));
            let tone = Tone { speech: Speech::Hello, windows: Windows::NoOne };
            match Box::pin(live(&world, &Conductor::undisturbed(), tone, begin)).await {
                End::Came(done) if done.iter().all(|done| done.status() == Status::Done) => {}
                End::Came(done) => panic!("{ground:?}: {}", done.iter().map(reported).collect::<String>()),
                other => panic!("{ground:?}: {other:?}"),
            }
        }
        if matches!(ground, Ground::Promised | Ground::LetGo) {
            promise(&world).await;
        }
        if ground == Ground::OneADay {
            let store = world.agent(&Conductor::undisturbed()).await.store;
            store.lay_down(one_guest_a_day(), Clock::now(&world.timeline)).await.unwrap();
        }
        if ground == Ground::Lost {
            let (vmid, key) = (299 + 1, "protection".to_owned());
            for edit in [Edit::Stop { vmid }, Edit::Unset { vmid, key }, Edit::Destroy { vmid }] {
                apply(&world.node, &edit).unwrap();
            }
        }
        world.settle().await;
        fill(&world.state());
        keep(world)
    })
}

/// Promises guest 1 that its last backup is kept, at a point that never comes in a story.
async fn promise(world: &World) {
    let schedule = json!({ "at": ["01-01 00:00"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": 1 } }, "consistency": "crash"
    });
    let to = serde_json::from_value(json!({ "tiers": { "local": local }, "volumes": [] })).unwrap();
    let ports = world.agent(&Conductor::undisturbed()).await;
    let raise = Raise { guest: uid(1), from: None, to, what: "a story's".to_owned() };
    let changed = ports.store.raise_protection(raise, Clock::now(&world.timeline)).await.unwrap();
    assert_eq!(changed, Changed::Yes);
}

/// A node with nothing of ours, and foreign guests.
fn empty() -> Template {
    let dir = folder();
    let at: Timestamp = "2026-11-21T05:00:00Z".parse().unwrap();
    // The golden's place is known only once the simulator has been seeded.
    let seeded = World::open(dir, Beginning { at, number: 1_000, seed: 1 }, Kit::of(Path::new("/dev/null")));
    fill(&seeded.state());
    let golden = golden(&seeded.state());
    keep(seeded.with_kit(Kit::of(&golden)))
}

fn golden(state: &Path) -> PathBuf {
    // Kept for as long as this process lives: every world reads the same file, so it is hashed once.
    static KEPT: OnceLock<TempDir> = OnceLock::new();
    let copy = KEPT.get_or_init(folder).path().join("golden.tar.zst");
    let archive = crate::fixtures::ARCHIVE.rsplit('/').next().unwrap();
    std::fs::copy(state.join("root/mnt/backup2/dump").join(archive), &copy).unwrap();
    copy
}

/// Data in every volume that has none yet: a customer's, or a stranger's.
fn fill(state: &Path) {
    let images = state.join("root/mnt/tank/images");
    for owner in std::fs::read_dir(&images).into_iter().flatten().flatten() {
        for volume in std::fs::read_dir(owner.path()).unwrap().flatten() {
            let file = volume.path().join("tree/data-of-somebody");
            if !file.exists() {
                std::fs::write(file, volume.file_name().as_encoded_bytes()).unwrap();
            }
        }
    }
}

fn keep(world: World) -> Template {
    let (kit, beginning) = (world.kit.clone(), world.ending(1));
    let dir = world.into_folder();
    // Old task logs are not needed: cases check only their own tasks.
    let tasks = dir.path().join("pve/tasks");
    std::fs::remove_dir_all(&tasks).unwrap();
    std::fs::create_dir(&tasks).unwrap();
    let scene = Scene::of(&dir.path().join("pve"));
    assert!(FOREIGN.iter().all(|number| scene.guests.contains_key(number)), "{scene:#?}");
    let book = Book::of(&dir.path().join("agent"));
    Template { dir, beginning, kit, scene, book }
}

/// The ground's first backup.
pub fn archive() -> VolumeId {
    let template = Template::of(Ground::GuestRuns);
    let held = template.scene.archives.keys().find(|held| Scene::owner(held) == Some(300));
    let (storage, file) =
        held.and_then(|held| held.split_once(':')).expect("a guest that was made has a backup");
    VolumeId::new(format!("{storage}:backup/{file}"))
}

/// The ground's guest's volumes.
pub fn volumes() -> BTreeSet<VolumeId> {
    (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect()
}

/// The copy of the ground's guest.
pub fn copy_of(kit: &Kit) -> Operation {
    let target = target(1);
    let seen = SignedState { uid: target.uid, vmid: target.vmid, name: target.name, volumes: volumes() };
    let allows = Allows::RestoreCopy { archive: archive() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen);
    Operation::RestoreCopy(Box::new(RestoreCopy::new(warrant, &kit.policy(), Vec::new()).unwrap()))
}
