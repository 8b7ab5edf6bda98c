//! The play of one schedule.
//!
//! In: a seed. Out: a verdict. Each life is the whole reconcile loop on the same folder; a kill drops it at its current
//! point.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use agentd::model::view::HostSnapshot;
use agentd::port::store::{OpenError, Refusal, Store};
use agentd::task::observe::Observer;
use agentd::task::reconcile::{ObserveInterval, Reconcile};
use agentd::task::stop;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{Desired, DesiredDocument, DesiredGuest, DesiredSchema};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::NodeName;
use pve_sim::fault::admin::Edit;
use pve_sim::fault::control::{Order, Outcome, obey};
use pve_sim::fault::mishap::{Mishap, Origin, Target, heal};
use tokio::sync::watch;

use super::judge::{Ending, judge};
use super::script::{Act, Script};
use super::witness::{Estranges, Witness};
use super::{Verdict, storage};
use crate::controllers::{Speech, speak_while};
use crate::db_reader::{Book, Line};
use crate::invariant::{GONE, Violation};
use crate::points::{Conductor, Kill};
use crate::world::World;
use crate::world_template::Template;
use power_disk::dice::Dice;

/// How often the agent observes the host when nothing is new.
const OBSERVES_EVERY: Duration = Duration::from_secs(60);

/// How often a story looks whether it has settled. Rare looks make schedules fast, and do not change what is done.
const EVERY: Duration = Duration::from_secs(900);

/// Nothing was changed for this long: it has settled. Longer than any wait between two tries.
const QUIET: Duration = Duration::from_secs(3_600 + 1_800);

/// When the faults are over it settles within this.
const SETTLES_WITHIN: Duration = Duration::from_secs(36 * 3_600);

/// A kill at a point that is never reached happens all the same, after this.
const KILL_BY_THEN: Duration = Duration::from_secs(900);

/// Why a life ended.
enum Ended {
    Killed,
    Settled(Box<HostSnapshot>),
    Never(Box<HostSnapshot>),
    Broke(String),
}

pub(super) struct Player<'a> {
    world: &'a World,
    pub witness: Witness,
    acts: VecDeque<Act>,
    story: Vec<String>,
    violations: Vec<Violation>,
    documents: Vec<Desired>,
    accepted: u64,
    written: u32,
    unacknowledged: u32,
    copied: Option<(tempfile::TempDir, u32)>,
    forgetful: bool,
    dead_for: Duration,
    speech: Rc<Cell<Speech>>,
}

/// Plays a seed.
pub async fn play(seed: u64, script: &Script, template: &Template) -> Verdict {
    // A schedule that broke on this thread may have left its fault.
    storage::heal();
    let world = template.world(seed);
    let before = Book::of(&world.agent_folder());
    let mut player = Player {
        world: &world,
        witness: Witness::of(&template.scene),
        acts: script.acts.iter().cloned().collect(),
        story: vec![format!("begins with {:?}", script.ground)],
        violations: Vec::new(),
        documents: Vec::new(),
        accepted: 0,
        written: before.events.values().sum(),
        unacknowledged: 0,
        copied: None,
        forgetful: false,
        dead_for: Duration::ZERO,
        speech: Rc::new(Cell::new(Speech::Hello)),
    };
    let mut last = before.clone();
    let view = loop {
        let ended = Box::pin(player.live()).await;
        last = player.between(last).await;
        match ended {
            Ended::Killed => tokio::time::sleep(player.dead_for).await,
            Ended::Settled(view) => break view,
            Ended::Never(view) => {
                player.wrong(
                    "I12",
                    format!("it has not settled within {} h", SETTLES_WITHIN.as_secs() / 3_600),
                );
                break view;
            }
            Ended::Broke(what) => {
                player.wrong("harness", what);
                break Box::default();
            }
        }
    };
    world.settle().await;
    let ended = |upid: &str| world.node.tasks.ended(upid).map_or(GONE.to_owned(), |ended| ended.status);
    let tasks: Vec<_> = world.log.tasks().into_iter().map(|task| (task.clone(), ended(&task.upid))).collect();
    let ending = Ending {
        scene: &world.scene(),
        view: &view,
        witness: &player.witness,
        tasks: &tasks,
        book: &last,
        intended: player.documents.last().map(Desired::guests).unwrap_or_default(),
        gentle: script.is_gentle(),
        forgetful: player.forgetful,
        offences: &world.node.guard.offences(),
    };
    let mut violations = std::mem::take(&mut player.violations);
    violations.extend(judge(&ending));
    if !violations.is_empty() {
        // The audit of the agent is printed for anyone who looks for the cause.
        let line = |line: &Line| {
            let Line { number, at, action, operation, detail } = line;
            format!(
                "   audit {number:>4} at {at} {action} {} {detail}",
                operation.get(..8).unwrap_or_default()
            )
        };
        player.story.extend(ending.book.audit.iter().map(line));
    }
    Verdict { seed, story: player.story, violations, hash: world.log.hash() }
}

impl Player<'_> {
    fn report(&mut self, text: impl Into<String>) {
        let at = self.world.timeline.passed();
        self.story.push(format!("{:>10.3} {}", at.as_secs_f64(), text.into()));
    }

    fn wrong(&mut self, name: &'static str, what: String) {
        self.report(format!("VIOLATION {name}: {what}"));
        self.violations.push(Violation { name, what });
    }

    /// One life, from start to death or to the end of the story.
    async fn live(&mut self) -> Ended {
        let world = self.world;
        let conductor = Conductor::new(Kill::Never, None);
        let ports = world.agent(&conductor).await;
        let store = ports.store.clone();
        let policy = world.kit.policy();
        let storages: BTreeSet<_> = [policy.storage.clone(), "backup2".parse().unwrap()].into();
        let node: NodeName = "pve1".parse().unwrap();
        let place = (node.clone(), policy.pool.clone());
        let eye = Observer::new(Arc::clone(&ports.pve), Arc::clone(&ports.clock), place, storages);
        let (sender, view) = watch::channel(Arc::new(HostSnapshot::default()));
        let (_stopper, stop) = stop::pair();
        let speech = Rc::clone(&self.speech);
        let reconcile = Reconcile {
            ports,
            eye,
            policy,
            node,
            interval: ObserveInterval::Every(OBSERVES_EVERY),
            view: sender,
            stop,
        };
        let ended = tokio::select! {
            biased;
            place = conductor.death() => {
                self.report(format!("killed at {place}"));
                Ended::Killed
            }
            () = reconcile.run() => Ended::Broke("the loop ended by itself".to_owned()),
            () = speak_while(world, &store, &speech) => Ended::Broke("the controllers ended".to_owned()),
            ended = self.acts(&store, &conductor, &view) => ended,
        };
        self.written += conductor.written();
        ended
    }

    /// Between two lives: the dead agent releases its folder, and the journal is compared with what was written (I7,
    /// I11).
    async fn between(&mut self, before: Book) -> Book {
        // Dropped tasks release the folder's lock when the runtime handles them.
        for _ in 0..50 {
            match Store::open_on_callers_thread(&self.world.agent_folder(), self.world.timeline.now()) {
                Ok(store) => {
                    drop(store);
                    break;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
        let book = Book::of(&self.world.agent_folder());
        let found: u32 = book.events.values().sum();
        if found < self.written || found > self.written + self.unacknowledged {
            let (written, perhaps) = (self.written, self.unacknowledged);
            self.wrong("I7", format!("{written} events were written, {perhaps} perhaps, {found} are there"));
        }
        self.written = found;
        self.unacknowledged = 0;
        for (name, was) in &before.counters {
            let fell = book.counters.get(name).is_none_or(|is| is < was);
            if fell && !name.starts_with("starts") {
                self.wrong("I11", format!("counter {name} was {was} and is {:?}", book.counters.get(name)));
            }
        }
        if book.audit.get(..before.audit.len()) != Some(&before.audit[..]) {
            self.wrong("I11", "lines of the audit were changed or lost".to_owned());
        }
        self.after_death(book)
    }

    /// What happens to a folder whose agent is dead.
    fn after_death(&mut self, book: Book) -> Book {
        match self.acts.front() {
            Some(Act::PutBack) => {
                self.acts.pop_front();
                let Some((copy, written)) = &self.copied else { return book };
                storage::replace(&self.world.agent_folder(), copy.path());
                self.written = *written;
                self.forgetful = true;
                self.report("its folder is put back from the copy");
                Book::of(&self.world.agent_folder())
            }
            Some(Act::TornTail(bytes)) => {
                let bytes = *bytes;
                self.acts.pop_front();
                storage::tear(&self.world.agent_folder(), bytes);
                self.report(format!("{bytes} bytes of a torn frame lie at the journal's end"));
                Book::of(&self.world.agent_folder())
            }
            _ => book,
        }
    }

    async fn acts(
        &mut self,
        store: &Store,
        conductor: &Conductor,
        view: &watch::Receiver<Arc<HostSnapshot>>,
    ) -> Ended {
        while let Some(act) = self.acts.pop_front() {
            self.witness.note_made(self.world, store).await;
            if !matches!(act, Act::Mishap(..)) {
                self.report(act.to_string());
            }
            match act {
                Act::Pass(time) => tokio::time::sleep(time).await,
                Act::Mishap(mishap, vmid, details) => self.mishap(mishap, vmid, details),
                Act::Heal => self.heal(),
                Act::Arm(fault) => self.world.node.faults.arm(fault),
                Act::Speech(speech) => self.speech.set(speech),
                Act::Kill(after, dead_for) => {
                    self.dead_for = dead_for;
                    conductor.kill_after(after);
                    tokio::time::sleep(KILL_BY_THEN).await;
                    self.report("killed at rest");
                    return Ended::Killed;
                }
                Act::Offer(guests) => self.offer(store, guests).await,
                Act::OfferOld => self.offer_old(store).await,
                Act::SecondAgent => self.second_agent(),
                Act::Copy => {
                    let written = Book::of(&self.world.agent_folder()).events.values().sum();
                    self.copied = Some((storage::copy(&self.world.agent_folder()), written));
                }
                Act::PutBack | Act::TornTail(_) => {
                    self.dead_for = Duration::ZERO;
                    self.acts.push_front(act);
                    return Ended::Killed;
                }
                Act::Disk(disk) => self.unacknowledged += storage::fail(disk),
                Act::Clock(ahead_s) => self.set_clock(ahead_s),
            }
        }
        self.settle(store, view).await
    }

    /// The faults stop.
    async fn settle(&mut self, store: &Store, view: &watch::Receiver<Arc<HostSnapshot>>) -> Ended {
        self.heal();
        storage::heal();
        let (begun, mut since, mut count) =
            (self.world.timeline.passed(), self.world.timeline.passed(), self.world.log.effects().len());
        loop {
            // The hub sends its document again, until it is taken.
            if let Some(newest) = self.documents.last().cloned() {
                drop(store.offer_desired(newest, self.world.timeline.now()).await);
            }
            tokio::time::sleep(EVERY).await;
            if let Some(Refusal::Broken { .. }) = store.refusal() {
                return self.mended(&view.borrow());
            }
            self.witness.note_made(self.world, store).await;
            let (now, effects) = (self.world.timeline.passed(), self.world.log.effects().len());
            let open = store.open_operations().await.map_or(1, |open| open.len());
            if effects != count || open > 0 {
                (since, count) = (now, effects);
            }
            if now - since > QUIET {
                return Ended::Settled(Box::new(HostSnapshot::clone(&view.borrow())));
            }
            if now - begun > SETTLES_WITHIN {
                return Ended::Never(Box::new(HostSnapshot::clone(&view.borrow())));
            }
        }
    }

    /// Records that broke under the agent stay broken until an operator, who was notified, has repaired the disk and
    /// starts it anew.
    fn mended(&mut self, view: &HostSnapshot) -> Ended {
        if !view.problems.iter().any(|problem| problem.code == ErrorCode::RecordsBroken) {
            self.wrong("I12", "the agent's records are broken, and nobody says so".to_owned());
        }
        self.report("the disk is mended, and the agent is started anew");
        self.dead_for = Duration::ZERO;
        Ended::Killed
    }

    fn set_clock(&self, ahead_s: i64) {
        self.world.box_clock.set_ahead_s(ahead_s);
        let order = Order::Edit(Edit::Clock { ahead_s });
        assert_eq!(obey(&self.world.node, &order), Outcome::Done);
    }

    fn heal(&mut self) {
        self.speech.set(Speech::Hello);
        self.set_clock(0);
        for vmid in 300..303 {
            for order in heal(&target(vmid, 0)) {
                assert_eq!(obey(&self.world.node, &order), Outcome::Done);
            }
        }
        for token in 1..3 {
            for order in heal(&target(300, token)) {
                assert_eq!(obey(&self.world.node, &order), Outcome::Done);
            }
        }
    }

    fn mishap(&mut self, mishap: Mishap, vmid: u32, details: u64) {
        let mut dice = Dice::of(details);
        let target = target(vmid, details);
        let orders = mishap.orders(&target, &mut || dice.throw());
        let by_hand = mishap.origin() == Origin::Hand;
        if by_hand && !self.may_touch(vmid) {
            return;
        }
        let before = by_hand.then(|| self.world.scene());
        for order in orders {
            self.report(format!("{}: {}", mishap.text(), serde_json::to_string(&order).unwrap()));
            // The agent lives on that node: both have one clock.
            if let Order::Edit(Edit::Clock { ahead_s }) = &order {
                self.world.box_clock.set_ahead_s(*ahead_s);
            }
            if let Outcome::Failed(why) = obey(&self.world.node, &order) {
                self.report(format!("which could not be done: {why}"));
            }
            if matches!(&order, Order::Edit(Edit::Unset { key, .. }) if key == "protection") {
                self.witness.unprotected.insert(vmid);
            }
        }
        if let Some(before) = before {
            let gone = matches!(mishap, Mishap::Reuse | Mishap::Impostor | Mishap::Unmark);
            let estranges = if gone { Estranges::Yes } else { Estranges::No };
            self.witness.hand(self.world, vmid, &before, estranges);
        } else {
            self.witness.disturbed.insert(vmid);
        }
    }

    /// A person does not touch a guest that a task works on, as Proxmox's own tools do, nor strangers.
    fn may_touch(&self, vmid: u32) -> bool {
        let held = self.world.node.world();
        let unlocked = held.guests.get(vmid).is_ok_and(|config| config.lock().is_none());
        let (running, _) = self.world.node.tasks.all();
        unlocked
            && !self.witness.strangers.contains_key(&vmid)
            && !running.iter().any(|task| task.id == vmid.to_string())
    }

    async fn offer(&mut self, store: &Store, guests: Vec<DesiredGuest>) {
        let generation = self.documents.len() as u64 + 1;
        let document = DesiredDocument {
            schema: DesiredSchema::V1,
            generation: Generation::new(generation),
            // The rarest allowed check: it makes schedules fast, and does not change what is done.
            poll_interval_s: 60.try_into().unwrap(),
            observe_interval_s: None,
            levels: None,
            overcommit: None,
            customer_limits: Vec::new(),
            alarm_after_s: None,
            policies: Vec::new(),
            storage: Vec::new(),
            guests,
        };
        let desired = Desired::check(document).expect("a document that can be asked for");
        self.documents.push(desired.clone());
        match store.offer_desired(desired, self.world.timeline.now()).await {
            Ok(_) => self.accepted = self.accepted.max(generation),
            Err(error) => self.report(format!("which was not taken: {error}")),
        }
    }

    /// I11: an older document is refused, and the newer one stays.
    async fn offer_old(&mut self, store: &Store) {
        let Some(old) = self.documents.len().checked_sub(2).and_then(|at| self.documents.get(at)).cloned()
        else {
            return;
        };
        let taken = store.offer_desired(old, self.world.timeline.now()).await.is_ok();
        let held = store.desired_section().await.map(|section| section.held.number()).unwrap_or_default();
        if !self.forgetful && (taken || held < self.accepted) {
            let accepted = self.accepted;
            self.wrong(
                "I11",
                format!("document {accepted} was held, an older one came, and now it is {held}"),
            );
        }
    }

    fn second_agent(&mut self) {
        match Store::open_on_callers_thread(&self.world.agent_folder(), self.world.timeline.now()) {
            Err(OpenError::Held(_)) => {}
            Err(error) => self.wrong("I6", format!("a second agent is refused with {error}")),
            Ok(_) => self.wrong("I6", "a second agent may open the folder".to_owned()),
        }
    }
}

/// The target of a mishap.
fn target(vmid: u32, details: u64) -> Target {
    let tokens = ["observe", "operate", "allocate"];
    let token = tokens[usize::try_from(details % 3).unwrap()];
    Target {
        vmid,
        storage: "tank".to_owned(),
        backups: "backup2".to_owned(),
        token: format!("hf@pve!{token}"),
    }
}
