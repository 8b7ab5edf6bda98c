//! The judge of a hostile run, from files and database.
//!
//! In: the world each hour and each evening, and what operators really signed. Out: violations by the invariant's name.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;

use agentd::port::store::{Refusal, Store};
use holdfast_protocol::bootstrap::VARIABLE;
use holdfast_protocol::desired::{DesiredGuest, RunState};
use holdfast_protocol::job::Verb;
use holdfast_protocol::job::act::ArchiveText;
use rusqlite::Connection;

use super::Figures;
use super::desk::Desk;
use super::document::{LISTENER, ROUTER};
use super::growth::Sizes;
use super::hub::{REPORT_MAX, Stolen};
use super::{signed, still};
use crate::fixtures::{FOREIGN, target, uid};
use crate::invariant::apart::plugged;
use crate::invariant::{GONE, Violation, one_task_at_a_time};
use crate::log::TaskSpan;
use crate::scene::{Scene, Volume};
use crate::world::World;
use crate::world_template::Template;

/// Lines of refusals that may be written within an hour.
const REFUSALS_PER_HOUR: usize = 120;

/// Whatever a hub answers, the agent calls it at most once a second, plus extra calls to report results.
const CHECKINS_PER_HOUR: u64 = 3_600 + 720;

const HOUR_US: i64 = 3_600_000_000;

/// The window of the brake, less the time between a decision and its record.
const WINDOW_US: i64 = 23 * HOUR_US;

/// How many guests documents may touch within it.
const TOUCHED_MAX: usize = 1;

/// The longest downtime of a guest that should run, in hours: the longest wait between two tries, and a start.
const DOWN_MAX_H: u32 = 2;

/// A guest under the honest promise has a new backup at least this often: every six hours, plus an hour of waiting for
/// its guest agent, plus other work on it.
const BACKUP_WITHIN_H: u32 = 10;

/// The number of jobs in a report: those on record, and those that were turned away.
const JOBS_REPORTED_MAX: usize = 50 + 32;

pub struct Watch {
    /// Which day it is.
    pub day: u64,
    /// What does not hold.
    pub violations: Vec<Violation>,
    /// How much happened.
    pub figures: Figures,
    kept: BTreeSet<String>,
    strangers: BTreeMap<u32, Stranger>,
    diary: BTreeMap<u8, String>,
    rolled: BTreeMap<u8, usize>,
    down: BTreeMap<u8, u32>,
    heads: BTreeMap<u64, String>,
    operations: usize,
    checkins: u64,
    sizes: Option<Sizes>,
    copies: usize,
    backed_up: BTreeMap<u8, (String, u32)>,
}

/// A foreign guest: its configuration, its volumes, whether it runs.
type Stranger = (Option<String>, BTreeMap<String, Volume>, bool);

fn strangers(scene: &Scene) -> BTreeMap<u32, Stranger> {
    let of = |number: u32| -> Stranger {
        let theirs = scene.volumes.iter().filter(|(name, _)| Scene::owner(name) == Some(number));
        let theirs = theirs.map(|(name, volume)| (name.clone(), *volume)).collect();
        (scene.raw.get(&number).cloned(), theirs, scene.running.contains(&number))
    };
    FOREIGN.map(|number| (number, of(number))).into()
}

/// Snapshots expire; everything else of a customer's is kept.
fn lasting(scene: &Scene) -> impl Iterator<Item = &String> {
    scene.holdings().filter(|name| !name.contains('@'))
}

impl Watch {
    /// At the beginning.
    #[must_use]
    pub fn of(template: &Template) -> Self {
        Self {
            day: 0,
            violations: Vec::new(),
            figures: Figures::default(),
            kept: lasting(&template.scene).cloned().collect(),
            strangers: strangers(&template.scene),
            diary: BTreeMap::new(),
            rolled: BTreeMap::new(),
            down: BTreeMap::new(),
            heads: BTreeMap::new(),
            operations: 0,
            checkins: 0,
            sizes: None,
            copies: 0,
            backed_up: BTreeMap::new(),
        }
    }

    /// Something does not hold.
    pub fn wrong(&mut self, name: &'static str, what: String) {
        self.violations.push(Violation { name, what: format!("day {}: {what}", self.day) });
    }

    /// Whether anything was found.
    #[must_use]
    pub fn found(&self) -> bool {
        !self.violations.is_empty()
    }

    fn page(world: &World, n: u8) -> PathBuf {
        let vmid = target(n).vmid.number();
        world.state().join(format!("root/mnt/tank/images/{vmid}/vm-{vmid}-disk-0/tree/diary"))
    }

    /// Each guest writes down what day it is.
    pub fn diary(&mut self, world: &World, day: u64) {
        for n in 1..=2 {
            let (page, text) = (Self::page(world, n), format!("guest {n} on day {day}"));
            // A guest that was released writes nothing any more.
            if std::fs::write(&page, &text).is_ok() {
                self.diary.insert(n, text);
            } else {
                self.diary.remove(&n);
            }
        }
    }

    /// How large the three volumes of a guest are, in GiB; none when it is not there.
    #[must_use]
    pub fn sizes(&self, world: &World, n: u8) -> Option<[u64; 3]> {
        let vmid = target(n).vmid.number();
        let folder = world.state().join(format!("root/mnt/tank/images/{vmid}"));
        let size = |disk: u32| -> Option<u64> {
            let text = std::fs::read_to_string(folder.join(format!("vm-{vmid}-disk-{disk}/size"))).ok()?;
            Some(text.trim().parse::<u64>().ok()?.div_ceil(1 << 30))
        };
        Some([size(0)?, size(1)?, size(2)?])
    }

    /// The volumes of a guest, as an operator sees them.
    #[must_use]
    pub fn volumes(&self, world: &World, n: u8) -> BTreeSet<String> {
        let vmid = target(n).vmid.number();
        let folder = world.state().join(format!("root/mnt/tank/images/{vmid}"));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| !name.contains('@')).map(|name| format!("tank:{vmid}/{name}.raw")).collect()
    }

    /// A backup of a guest.
    #[must_use]
    pub fn archive_of(&self, world: &World, n: u8) -> Option<ArchiveText> {
        let vmid = target(n).vmid.number();
        let folder = world.state().join("root/mnt/backup2/dump");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .ok()?
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(&format!("vzdump-lxc-{vmid}-")) && name.ends_with(".tar.zst"))
            .collect();
        names.sort();
        format!("backup2:backup/{}", names.pop()?).try_into().ok()
    }

    /// The bootstrap tokens in guests' environments.
    #[must_use]
    pub fn tokens(&self, world: &World) -> Vec<String> {
        let line = |vmid: u32| Some(world.node.world().guests.get(vmid).ok()?.main.get("env")?.to_owned());
        let lines = world.node.power.all().into_iter().filter_map(line);
        lines.filter_map(|line| Some(line.strip_prefix(VARIABLE)?.strip_prefix('=')?.to_owned())).collect()
    }

    /// Every hour: checks that the guests run, and hold what they wrote.
    pub async fn glance(&mut self, world: &World, store: &Store, hub: &Mutex<Stolen>) {
        let intended = store.desired().await.unwrap();
        let intended = intended.as_ref().map(|desired| desired.guests().to_vec()).unwrap_or_default();
        for n in 1..=2 {
            self.holds_its_diary(world, n);
            self.is_up(world, &intended, hub, n);
            self.is_backed_up(world, n);
        }
        if store.refusal().is_some_and(|why| matches!(why, Refusal::Replaced { .. })) {
            self.wrong("order", "this box stands still for an order that was taken back".to_owned());
        }
        let (reported, checkins) = {
            let mut hub = hub.lock().unwrap();
            (std::mem::take(&mut hub.heard.reported), hub.heard.checkins)
        };
        for what in reported {
            self.wrong("I9", what);
        }
        let asked = checkins - std::mem::replace(&mut self.checkins, checkins);
        if asked > CHECKINS_PER_HOUR {
            self.wrong("bound", format!("the hub was asked {asked} times within an hour"));
        }
    }

    /// Whatever documents promise, backups go on.
    fn is_backed_up(&mut self, world: &World, n: u8) {
        let newest = self.archive_of(world, n).map(|archive| archive.as_str().to_owned());
        let (Some(newest), Some(_)) = (newest, self.sizes(world, n)) else {
            self.backed_up.remove(&n);
            return;
        };
        let (before, hours) = self.backed_up.entry(n).or_insert_with(|| (newest.clone(), 0));
        *hours += 1;
        if *before != newest {
            (*before, *hours) = (newest, 0);
        }
        if *hours == BACKUP_WITHIN_H + 1 {
            self.wrong("promise", format!("guest {n} has had no backup for {BACKUP_WITHIN_H} hours"));
        }
    }

    /// No two guests answer under one address, and none in the place of the agent or of the router.
    fn addresses_are_ones_own(&mut self, scene: &Scene) {
        let ours = scene.raw.iter().flat_map(|(vmid, text)| {
            plugged(text).map(move |line| (line.split('/').next().unwrap_or_default().to_owned(), *vmid))
        });
        let mut holders: BTreeMap<String, u32> = BTreeMap::new();
        for (address, vmid) in ours {
            if [LISTENER, ROUTER].contains(&address.as_str()) {
                self.wrong("address", format!("guest {vmid} has {address}, which root keeps"));
            }
            if let Some(other) = holders.insert(address.clone(), vmid) {
                self.wrong("address", format!("guests {other} and {vmid} both have {address}"));
            }
        }
    }

    fn rollbacks(world: &World, n: u8) -> usize {
        let vmid = target(n).vmid.to_string();
        let rolled = |task: &&TaskSpan| task.kind == "vzrollback" && task.id == vmid;
        world.log.tasks().iter().filter(rolled).count()
    }

    fn holds_its_diary(&mut self, world: &World, n: u8) {
        let Some(text) = self.diary.get(&n).cloned() else { return };
        let rolled = Self::rollbacks(world, n);
        let before = self.rolled.insert(n, rolled).unwrap_or(0);
        let found = std::fs::read_to_string(Self::page(world, n));
        if rolled > before {
            // Whether the rollback is allowed is checked by its signer elsewhere.
            self.diary.extend(found.ok().map(|found| (n, found)));
        } else if let Ok(found) = found
            && found != text
        {
            self.wrong("I1", format!("guest {n} wrote {text:?} and finds {found:?}"));
            self.diary.insert(n, found);
        }
    }

    fn is_up(&mut self, world: &World, intended: &[DesiredGuest], hub: &Mutex<Stolen>, n: u8) {
        let vmid = target(n).vmid.number();
        let wants = intended.iter().any(|goal| goal.uid == uid(n) && goal.run == RunState::Running);
        let free = {
            let hub = hub.lock().unwrap();
            let reports = hub.heard.sections.guests.as_deref().unwrap_or_default();
            reports.iter().any(|report| report.uid == Some(uid(n)) && report.conditions.is_empty())
        };
        if !wants || !free || world.node.power.all().contains(&vmid) {
            self.down.remove(&n);
            return;
        }
        let hours = self.down.entry(n).or_default();
        *hours += 1;
        if *hours == DOWN_MAX_H + 1 {
            let what = format!("guest {n} should run, nothing is said against it, and it is down for hours");
            self.wrong("I4", what);
        }
    }

    pub async fn evening(&mut self, world: &World, store: &Store, hub: &Mutex<Stolen>, desk: &Desk) {
        let scene = world.scene();
        let ended = |upid: &str| world.node.tasks.ended(upid).map_or(GONE.to_owned(), |ended| ended.status);
        let tasks: Vec<_> = world.log.tasks().into_iter().map(|task| (ended(&task.upid), task)).collect();
        let tasks: Vec<(TaskSpan, String)> = tasks.into_iter().map(|(end, task)| (task, end)).collect();
        self.nothing_is_gone(world, &scene, desk);
        self.strangers_are_untouched(&scene, &tasks);
        self.addresses_are_ones_own(&scene);
        self.only_what_was_signed(&tasks, desk);
        for what in signed::beyond(desk.ordered.values(), &world.log.effects()) {
            self.wrong("text", what);
        }
        let stood = still::longest(&world.windows.stood(), world.timeline.passed());
        if stood > still::BUDGET {
            self.wrong("standstill", format!("programs stood still for {} s within a day", stood.as_secs()));
        }
        self.growth_is_within_the_policy(world, &scene, desk);
        for what in one_task_at_a_time(&tasks) {
            self.wrong("I6", what);
        }
        for offence in world.node.guard.offences() {
            self.wrong("wire", offence.to_string());
        }
        if let Err(error) = store.verify_audit().await {
            self.wrong("I7", format!("the chain of the audit does not hold: {error}"));
        }
        let heads = std::mem::take(&mut hub.lock().unwrap().heard.heads);
        let path = world.agent_folder().join("agent.db");
        let books = Connection::open(path).unwrap();
        self.heads_are_in_the_books(&books, heads.into_iter().map(|head| (head.number, head.chain)));
        self.the_audit_is_right(&books, desk);
        self.the_brake_held(&books);
        let judges = [signed::in_the_books, signed::operations_beyond, signed::stopped_beyond];
        for what in judges.iter().flat_map(|judge| judge(&books, desk)) {
            self.wrong("text", what);
        }
        self.tables_are_bounded(&books, world.timeline.now().as_microsecond(), desk);
        let reported = store.job_reports().await.unwrap().len();
        if reported > JOBS_REPORTED_MAX {
            self.wrong("bound", format!("{reported} jobs are told of"));
        }
        let longest = hub.lock().unwrap().heard.longest;
        if longest > REPORT_MAX {
            self.wrong("bound", format!("a report of {longest} bytes"));
        }
    }

    /// The growth of guests since the evening before, and what is promised to them.
    fn growth_is_within_the_policy(&mut self, world: &World, scene: &Scene, desk: &Desk) {
        let sizes = Sizes::of(scene, &crate::db_reader::guests(&world.agent_folder()));
        // A copy that took its guest's place has disks of its own, which operators signed for; today, or tomorrow.
        let copying = |job: &&super::desk::Ordered| matches!(job.act.verb(), Verb::Restore | Verb::SwapGuest);
        let copies = desk.ordered.values().filter(copying).count();
        let quiet = copies == std::mem::replace(&mut self.copies, copies);
        let before = self.sizes.take().filter(|_| quiet);
        for what in sizes.too_much(before.as_ref()) {
            self.wrong("growth", what);
        }
        self.sizes = quiet.then_some(sizes);
    }

    /// I1: volumes and backups.
    fn nothing_is_gone(&mut self, world: &World, scene: &Scene, desk: &Desk) {
        let let_go = signed::let_go(desk);
        let now: BTreeSet<&String> = scene.holdings().collect();
        let may_go = |name: &String| let_go.contains(name);
        // The honest promise keeps the newest backup of each day; a denser one removes the others.
        let of_its_day = |name: &String| {
            let day = day_of(name).filter(|_| name.starts_with("backup2:"));
            day.is_some_and(|day| now.iter().any(|other| day_of(other) == Some(day)))
        };
        let gone = self.kept.iter().filter(|name| !now.contains(name) && !may_go(name) && !of_its_day(name));
        let gone: Vec<String> = gone.cloned().collect();
        for name in gone {
            self.wrong("I1", format!("{name} is gone"));
        }
        // A guest that was made meanwhile and is whole has an owner from now on; one that is being made may be taken
        // back.
        let made: BTreeSet<u32> = crate::db_reader::made(&world.agent_folder());
        let somebodys = |name: &&String| {
            Scene::owner(name).is_some_and(|owner| made.contains(&owner) || FOREIGN.contains(&owner))
        };
        self.kept.extend(lasting(scene).filter(somebodys).cloned());
    }

    fn strangers_are_untouched(&mut self, scene: &Scene, tasks: &[(TaskSpan, String)]) {
        if strangers(scene) != self.strangers {
            self.wrong("I15", "a guest of somebody else's was changed".to_owned());
        }
        for number in FOREIGN {
            let ours = |(task, _): &&(TaskSpan, String)| task.is_ours() && task.id == number.to_string();
            if let Some((task, status)) = tasks.iter().find(ours) {
                self.wrong("I15", format!("{} of ours worked on stranger {number}: {status}", task.kind));
            }
        }
    }

    /// I1, I2: destructive tasks run at most as often as they were signed.
    fn only_what_was_signed(&mut self, tasks: &[(TaskSpan, String)], desk: &Desk) {
        for n in 1..=2 {
            let vmid = target(n).vmid.to_string();
            for (kind, verb) in [("vzdestroy", Verb::DestroyGuest), ("vzrollback", Verb::Rollback)] {
                let signed = |verb: Verb| {
                    desk.ordered
                        .values()
                        .filter(|job| job.guest == Some(uid(n)) && job.act.verb() == verb)
                        .count()
                };
                let done = |(task, status): &&(TaskSpan, String)| {
                    task.kind == kind && task.id == vmid && (status == "OK" || status.starts_with("WARNINGS"))
                };
                let (done, signed) = (tasks.iter().filter(done).count(), signed(verb));
                if done > signed {
                    self.wrong("I2", format!("{kind} of guest {n} {done} times, and signed {signed} times"));
                }
            }
        }
    }
}

/// The guest and the day of a backup.
fn day_of(archive: &str) -> Option<&str> {
    archive.split_once("vzdump-lxc-")?.1.get(.."300-2026_11_21".len())
}
