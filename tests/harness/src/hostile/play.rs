//! The days of a hostile run.
//!
//! In: a seed and a length. Out: a verdict. Every hour the suite checks that the guests run and hold what they wrote.
//! Every evening it checks the books.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentd::model::addresses::ReservedAddresses;
use agentd::model::policy::{BrakeRule, Policy};
use agentd::model::request::Ask;
use agentd::model::view::HostSnapshot;
use agentd::port::host_replacement::HandOverFolder;
use agentd::port::hub::Contact;
use agentd::port::identity::IdentityFolder;
use agentd::port::store::Store;
use agentd::port::store::request::NewRequest;
use agentd::task::hub_sync::HubSync;
use agentd::task::observe::Observer;
use agentd::task::reconcile::{ObserveInterval, Reconcile};
use agentd::task::report::ReportTask;
use agentd::task::stop;
use agentd::task::upkeep::UpkeepTask;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{HostId, JobId, OperationId};
use holdfast_protocol::job::SignedJob;
use holdfast_protocol::job::act::{Sha256Text, args};
use holdfast_protocol::job::{Act, JobState, Target};
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::report::{GuestStatus, Running, Sections};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::desk::{Desk, Moment, seen};
use super::document::{LISTENER, ROUTER};
use super::hub::{Rule, Stolen};
use super::judge::Watch;
use super::mail::Captured;
use super::papers::Papers;
use super::{Figures, Length, Verdict};
use super::{promise, still};
use crate::controllers::{Speech, speak_every};
use crate::fake_hub::dial;
use crate::fixtures::{guest, uid};
use crate::invariant::Violation;
use crate::outside;
use crate::points::Conductor;
use crate::world::World;
use crate::world_template::Template;
use power_disk::dice::Dice;

/// How often the agent checks the host when nothing is new: rarely, which makes weeks fast. News wakes the loop at
/// once.
const LOOK_EVERY: Duration = Duration::from_secs(1_800);

/// How often controllers try: a guest that boots waits no longer, and weeks have few of these.
const SPEAK_EVERY: Duration = Duration::from_secs(30);

const HOUR: Duration = Duration::from_secs(3_600);

/// When the hub is honest again, all is well within this: a brake of a day, twice, and a retry.
const WELL_WITHIN_H: u64 = 72;

/// A signed job is done within this, after an hour without a check.
const DONE_WITHIN_H: u64 = 8;

/// How many texts that passed through the hub are kept.
const CAPTURED_MAX: usize = 300;

/// This host.
const HOST: u128 = 0x0190_6f3c_6b1f_7c1d_9d0a_2f6d_1c0b_7a02;

/// One guest in a day, so that two at once are seen.
const BRAKE: BrakeRule = BrakeRule { at_least: 1, share_percent: 20, window_h: 24 };

struct Game<'a> {
    world: &'a World,
    hub: Arc<Mutex<Stolen>>,
    store: Store,
    desk: Desk,
    dice: Dice,
    watch: Watch,
    copies: u32,
}

/// Plays a seed.
pub async fn play(seed: u64, length: Length, template: &Template) -> Verdict {
    let world = template.world(seed).patient();
    let papers = Papers::new(HostId::new(uuid::Uuid::from_u128(HOST)));
    let identity = papers.identity(world.timeline.now());
    let mut stolen = Stolen::new(seed, length.moves, papers, world.timeline.now());
    stolen.secrets = tokens(&world);
    let hub = Arc::new(Mutex::new(stolen));
    let conductor = Conductor::undisturbed();
    let ports = world.agent(&conductor).await;
    let store = ports.store.clone();
    let desk = Desk::default();
    store.lay_down(desk.laid_down(), world.timeline.now()).await.unwrap();
    let kept = ReservedAddresses {
        listeners: [LISTENER.parse().unwrap()].into(),
        ranges: vec![ROUTER.parse().unwrap()],
    };
    let policy = Policy { brake: BRAKE, kept, ..world.kit.policy() };
    let (view, seen) = watch::channel(Arc::new(HostSnapshot::default()));
    let (sections, report) = watch::channel(Arc::new(Sections::default()));
    let (_storage, targets) = watch::channel(Arc::default());
    let (_hardware, hardware) = watch::channel(Arc::default());
    let (_levels, levels) = watch::channel(Arc::default());
    let (_way, break_glass) = watch::channel(Arc::default());
    let (_tunnels, tunnels) = watch::channel(Arc::default());
    let (_stopper, stop) = stop::pair();
    let at_start =
        Contact { reached_at: None, problem: None, certificate_ends_at: identity.enrolled.not_after };
    let (contact, contact_now) = watch::channel(at_start);
    let eye: Observer = world.eye(&ports);
    let sync = HubSync {
        folder: IdentityFolder::open(&world.agent_folder()).unwrap(),
        own: crate::mailbox::own(),
        identity,
        handed: HandOverFolder::of(&world.agent_folder()),
        store: store.clone(),
        sections: report,
        usage: Default::default(),
        contact,
        clock: Arc::clone(&ports.clock),
        dial: dial(&hub, world.timeline),
        dial_without: dial(&hub, world.timeline),
        failpoints: Arc::clone(&ports.failpoints),
        spread: || u32::MAX / 2,
    };
    let teller = ReportTask {
        store: store.clone(),
        view: seen,
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
        contact: contact_now,
        token_ages: Arc::new(Vec::new),
    };
    let node = "pve1".parse().unwrap();
    let clock = Arc::clone(&ports.clock);
    let reconcile = Reconcile {
        ports,
        eye,
        policy,
        node,
        interval: ObserveInterval::Every(LOOK_EVERY),
        view,
        stop: stop.clone(),
    };
    let upkeep = UpkeepTask { store: store.clone(), clock: Arc::clone(&clock), audit_months: 12 };
    let watch = Watch::of(template);
    let (dice, speech) = (Dice::of(!seed), Cell::new(Speech::Hello));
    let mut game = Game { world: &world, hub, store: store.clone(), desk, dice, watch, copies: 0 };
    tokio::select! {
        biased;
        () = game.days(length.days) => {}
        () = reconcile.run() => game.watch.wrong("harness", "the reconcile loop ended".to_owned()),
        () = sync.run(stop.clone()) => game.watch.wrong("harness", "the exchange ended".to_owned()),
        () = teller.run(stop.clone()) => game.watch.wrong("harness", "the report ended".to_owned()),
        () = upkeep.run(stop) => game.watch.wrong("harness", "the upkeep ended".to_owned()),
        () = still::play(&world, &store, &conductor) => game.watch.wrong("harness", "nobody asks".to_owned()),
        () = speak_every(SPEAK_EVERY, &world, &store, &speech) => game.watch.wrong("harness", "nobody speaks".to_owned()),
    }
    game.verdict(seed)
}

/// The secrets of Proxmox's tokens.
fn tokens(world: &World) -> BTreeSet<String> {
    world.node.world().secrets.tokens.values().cloned().collect()
}

impl Game<'_> {
    fn hub(&self) -> std::sync::MutexGuard<'_, Stolen> {
        self.hub.lock().unwrap()
    }

    fn report(&self, text: &str) {
        self.hub().report(self.world.timeline.passed(), text);
    }

    async fn days(&mut self, days: u64) {
        // The first document is the honest one: there is something to be lost.
        self.hub().rule = Rule::Honest { guests: self.intended(), mail: Vec::new() };
        self.until_well(6).await;
        self.order_and_withdraw().await;
        self.hub().rule = Rule::Stolen;
        for day in 1..=days {
            self.watch.day = day;
            self.morning(day).await;
            for hour in 0..24 {
                self.secrets();
                self.hours(HOUR).await;
                if self.dice.below(6) == 0 {
                    self.order(day == days * 2 / 3 && hour > 11).await;
                }
            }
            self.watch.evening(self.world, &self.store, &self.hub, &self.desk).await;
            if self.watch.found() {
                return;
            }
        }
        self.given_back().await;
        self.watch.evening(self.world, &self.store, &self.hub, &self.desk).await;
    }

    /// Operators order this host restored and withdraw the order, and this host receives both. The thief has the order
    /// alone.
    async fn order_and_withdraw(&mut self) {
        let moment = self.moment().await;
        let new_key = Some(Pin::of(PinKind::Spki, b"new"));
        let order = Act::RestoreHost(args::RestoreHost { new_key });
        let (id, order) = self.desk.order(moment, order, Target::Host {});
        self.captured("an order that was taken back", id, order.clone());
        let named = Sha256Text::of(&SignedJob::parse(order.as_bytes()).unwrap().payload);
        let back = Act::WithdrawRestore(args::WithdrawRestore { order: named.clone() });
        let mail = self.desk.order(moment, back, Target::Host {});
        self.captured("a withdrawal", mail.0, mail.1.clone());
        self.hub().withdrawn = Some(order);
        self.hub().rule = Rule::Honest { guests: self.intended(), mail: vec![mail] };
        for _ in 0..DONE_WITHIN_H {
            self.hours(HOUR).await;
            if self.store.withdrawn(named.clone()).await.unwrap().is_some() {
                return;
            }
        }
        self.watch.wrong("I8", "a withdrawal was not taken".to_owned());
    }

    async fn hours(&mut self, length: Duration) {
        tokio::time::sleep(length).await;
        outside::meddle(&self.world.agent_folder());
        self.watch.glance(self.world, &self.store, &self.hub).await;
    }

    /// Guests write down the day, and one of them requests a snapshot.
    async fn morning(&mut self, day: u64) {
        self.watch.diary(self.world, day);
        let n = u8::try_from(1 + day % 2).unwrap();
        let asked = NewRequest {
            id: OperationId::new(uuid::Uuid::from_u128((7 << 64) | u128::from(day))),
            guest: uid(n),
            ask: Ask::Snapshot { name: format!("d{day}").parse().unwrap(), keep_s: Some(50 * 3_600) },
            key: None,
            correlation: None,
            at: self.world.timeline.now(),
        };
        if let Err(error) = self.store.ask(asked).await {
            self.report(&format!("guest {n} may not make a snapshot: {error}"));
        }
        let moment = self.moment().await;
        for (what, id, text) in self.desk.worthless(moment) {
            self.captured(what, id, text);
        }
    }

    async fn moment(&self) -> Moment {
        let epoch = self.store.trust_state().await.unwrap().epoch;
        Moment { host: HostId::new(uuid::Uuid::from_u128(HOST)), epoch, at: self.world.timeline.now() }
    }

    fn captured(&self, what: &'static str, id: JobId, text: String) {
        let mut hub = self.hub();
        hub.captured.push(Captured { id, text, what });
        let surplus = hub.captured.len().saturating_sub(CAPTURED_MAX);
        hub.captured.drain(..surplus);
    }

    /// Operators sign something; the thief gets it and may misuse it.
    async fn order(&mut self, may_destroy: bool) {
        let day = self.watch.day;
        let n = u8::try_from(1 + self.dice.below(2)).unwrap();
        // The guest whose snapshot is the newest.
        let newest = u8::try_from(1 + day % 2).unwrap();
        let target = |n: u8| seen(n, self.watch.volumes(self.world, n));
        let (what, act, target) = match self.dice.below(10) {
            0..3 => ("a backup", Act::BackupNow(args::BackupNow { tier: None }), target(n)),
            3..6 => {
                let snapshot = format!("d{day}").parse().unwrap();
                ("a rollback", Act::Rollback(args::Rollback { snapshot }), target(newest))
            }
            6 => ("a policy", self.desk.next_policy(), Target::Host {}),
            7 => match self.desk.ordered.keys().next_back() {
                Some(job) => ("a cancel", Act::Cancel(args::Cancel { job: *job }), Target::Host {}),
                None => return,
            },
            8 if self.copies < 2 => match self.watch.archive_of(self.world, n) {
                Some(archive) => {
                    self.copies += 1;
                    ("a restore", Act::Restore(args::Restore { archive }), target(n))
                }
                None => return,
            },
            _ if may_destroy => ("a destroy", Act::DestroyGuest(args::DestroyGuest {}), target(2)),
            // For the number that the thief's next document will have.
            _ => {
                let next = Generation::new(self.hub().heard.held).next();
                ("a release of the brake", self.desk.release(next), Target::Host {})
            }
        };
        let moment = self.moment().await;
        let (id, text) = self.desk.order(moment, act, target);
        self.report(&format!("operators sign {what}: {id}"));
        self.captured(what, id, text);
    }

    /// Today's secrets that must not be reported: the keys in the identity's folder.
    fn secrets(&mut self) {
        let folder = self.world.agent_folder().join("identity");
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default().replace("\\n", "\n");
            let keys = text.split("-----BEGIN PRIVATE KEY-----").skip(1);
            // The first line of a key is the same in every key.
            found.extend(keys.filter_map(|key| key.trim_start().lines().nth(1).map(str::to_owned)));
        }
        found.extend(self.watch.tokens(self.world));
        self.hub().secrets.extend(found.into_iter().filter(|secret| secret.len() > 12));
    }

    /// The operators' document: the guests that were not released, no smaller than they are by now.
    fn intended(&self) -> Value {
        let mut goals = Vec::new();
        for n in 1..=2 {
            let Some(sizes) = self.watch.sizes(self.world, n) else { continue };
            let mut goal = json!(guest(n));
            goal["size"]["rootfs_gib"] = json!(sizes[0].max(2));
            for (volume, size) in sizes[1..].iter().enumerate().take(2) {
                goal["volumes"][volume]["size_gib"] = json!((*size).max(1));
            }
            goals.push(goal);
        }
        promise::under(&mut goals);
        json!(goals)
    }

    /// Whether the hub received a report that all is as the operators want it.
    fn is_well(&self) -> bool {
        let hub = self.hub();
        let reports = hub.heard.sections.guests.as_deref().unwrap_or_default();
        let well = |n: u8| {
            reports.iter().any(|report| {
                report.uid == Some(uid(n))
                    && report.status == GuestStatus::Managed
                    && report.run == Running::Running
                    && report.size.is_some_and(|size| size.memory_mib == guest(n).size.memory_mib)
            })
        };
        let here = (1..=2).filter(|n| self.watch.sizes(self.world, *n).is_some());
        hub.generation == Some(hub.heard.held) && here.into_iter().all(well)
    }

    async fn until_well(&mut self, hours: u64) -> bool {
        for _ in 0..hours {
            self.hours(HOUR).await;
            if self.is_well() && self.store.open_operations().await.unwrap().is_empty() {
                return true;
            }
        }
        let (reports, held) = {
            let hub = self.hub();
            (format!("{:#?}", hub.heard.sections.guests), (hub.generation, hub.heard.held))
        };
        self.watch
            .wrong("I12", format!("an honest document {held:?} is not met within {hours} h: {reports}"));
        false
    }

    /// The hub is honest again: the next document is taken and met, and the next job is done.
    async fn given_back(&mut self) {
        let guests = self.intended();
        {
            let mut hub = self.hub();
            hub.generation = None;
            hub.rule = Rule::Honest { guests: guests.clone(), mail: Vec::new() };
        }
        self.report("the hub is honest again");
        if !self.until_well(WELL_WITHIN_H).await {
            return;
        }
        let moment = self.moment().await;
        let act = Act::BackupNow(args::BackupNow { tier: None });
        let (id, text) = self.desk.order(moment, act, seen(1, self.watch.volumes(self.world, 1)));
        self.hub().rule = Rule::Honest { guests, mail: vec![(id, text)] };
        for _ in 0..DONE_WITHIN_H {
            self.hours(HOUR).await;
            let jobs = self.store.job_reports().await.unwrap();
            if jobs.iter().any(|job| job.id == id && job.state == JobState::Done) {
                return;
            }
        }
        let jobs = self.store.job_reports().await.unwrap();
        let became = jobs.iter().find(|job| job.id == id).cloned();
        self.watch.wrong("I8", format!("a right job is not done in {DONE_WITHIN_H} h: {became:#?}"));
    }

    fn verdict(mut self, seed: u64) -> Verdict {
        let hub = self.hub.lock().unwrap();
        let figures = Figures { moves: hub.moves, checkins: hub.heard.checkins, ..self.watch.figures };
        let violations: Vec<Violation> = std::mem::take(&mut self.watch.violations);
        Verdict { seed, day: self.watch.day, story: hub.story.clone(), violations, figures }
    }
}
