//! An exhaustive walk over all states that events and crashes can reach.
//!
//! A world holds the stored state, the running program and what a reader cannot see from the state: which slots are
//! damaged, how often a build on trial was started, whether the machine was started since. Every action is tried in every world, a crash between two writes
//! among them. A counterexample is printed with the shortest way to it.

use std::collections::{BTreeSet, HashMap, VecDeque};

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::WithdrawalReason;
use jiff::Timestamp;

use crate::machine::{Event, Refusal, next};
use crate::start::{NoBuild, Program, Sound, Soundness, choose, choose_settled};
use crate::state::{Build, Content, FailReason, Moment, REBOOTS_MAX, Returning, STARTS, Slot, SlotsState};

/// A build that may be offered: its version, its bytes, its manifest.
type Offer = (u32, &'static [u8], &'static [u8]);

/// The second is the first signed anew; the third is newer; the fourth is older than both.
const OFFERS: [Offer; 4] =
    [(2, b"two", b"m2"), (2, b"two", b"m2 again"), (3, b"three", b"m3"), (1, b"one", b"m1")];

/// The machine's bound only counts down: two are walked for all.
const REBOOTS_WALKED: u8 = 2;

/// The oldest adds no world: nothing takes it.
const WALKED: usize = 3;

const PACKAGES: [u32; 3] = [1, 2, 3];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    state: SlotsState,
    packaged: u32,
    running: Option<Program>,
    damaged: BTreeSet<Slot>,
    /// Starts of the build on trial since it was copied.
    starts: u8,
    /// Those of them that the machine ended.
    cut: u8,
    /// Whether the machine was started since the last start of the agent.
    rebooted: bool,
    /// Whether a way back failed too, at any time.
    ways_back: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Offer(usize),
    CopyWhole,
    CopyBroken,
    Start,
    /// The disk is full: the state cannot be stored.
    StartUnstored,
    Crash,
    PowerCut,
    WindowOver,
    Deadline,
    EndedByPerson,
    /// The agent on trial says that this release was withdrawn.
    Withdraw(usize),
    Package(u32),
    Damage(Slot),
}

fn version(number: u32) -> VersionNumber {
    VersionNumber::new(number, 0, 0)
}

fn build((number, bytes, manifest): Offer) -> Build {
    Build { version: version(number), sha256: Sha256Text::of(bytes), manifest: Sha256Text::of(manifest) }
}

fn actions() -> Vec<Action> {
    let mut all: Vec<Action> = (0..WALKED).map(Action::Offer).collect();
    all.extend([
        Action::CopyWhole,
        Action::CopyBroken,
        Action::Start,
        Action::StartUnstored,
        Action::Crash,
        Action::PowerCut,
        Action::WindowOver,
        Action::Deadline,
        Action::EndedByPerson,
    ]);
    all.extend((0..WALKED).map(Action::Withdraw));
    all.extend(PACKAGES.map(Action::Package));
    all.extend(Slot::ALL.map(Action::Damage));
    all
}

impl World {
    fn new() -> Self {
        Self {
            state: SlotsState::default(),
            packaged: 1,
            running: None,
            damaged: BTreeSet::new(),
            starts: 0,
            cut: 0,
            rebooted: false,
            ways_back: 0,
        }
    }

    fn sound(&self) -> Sound {
        let mut sound = Sound::default();
        for slot in Slot::ALL {
            if self.state.content(slot).build().is_some() && !self.damaged.contains(&slot) {
                sound = sound.with(slot, Soundness::Checked);
            }
        }
        sound
    }

    fn version_of(&self, program: Program) -> VersionNumber {
        match program {
            Program::Packaged => version(self.packaged),
            Program::InSlot(slot) => self.state.content(slot).build().map(|build| build.version).unwrap(),
        }
    }

    fn runs_trial(&self) -> bool {
        self.state.trial.as_ref().is_some_and(|trial| self.running == Some(Program::InSlot(trial.slot)))
    }

    /// The world after an action; none where it cannot happen, or changes nothing.
    fn after(&self, action: Action) -> Option<Self> {
        let mut to = self.clone();
        let event = match action {
            Action::Offer(which) => Event::Take {
                build: build(OFFERS[which]),
                issued_at: Timestamp::UNIX_EPOCH,
                packaged: version(self.packaged),
            },
            Action::CopyWhole => Event::Copied,
            Action::CopyBroken => Event::CopyFailed,
            Action::Start => return Some(self.started()),
            Action::StartUnstored => {
                to.running = choose_settled(&self.state, version(self.packaged), self.sound()).ok();
                return Some(to);
            }
            Action::PowerCut => {
                if self.runs_trial() {
                    to.cut += 1;
                }
                (to.running, to.rebooted) = (None, self.state.is_watched());
                return Some(to);
            }
            Action::Crash => {
                to.running = None;
                return Some(to);
            }
            // What the watch may say follows from what runs.
            Action::WindowOver if self.runs_trial() => Event::Confirmed,
            Action::WindowOver if self.running.is_some() && self.state.trial.is_none() => Event::BackHealthy,
            Action::WindowOver => return None,
            Action::Deadline if self.state.trial.is_some() => {
                Event::Failed { reason: FailReason::NotHealthy { detail: String::new() }, at: None }
            }
            Action::Deadline => Event::BackFailed(FailReason::NotHealthy { detail: String::new() }),
            Action::EndedByPerson => Event::Failed { reason: FailReason::Ended, at: None },
            // Only the build on trial is asked, and only while it runs.
            Action::Withdraw(_) if !self.runs_trial() => return None,
            Action::Withdraw(which) => Event::Withdrawn {
                manifest: build(OFFERS[which]).manifest,
                reason: WithdrawalReason::Held,
                at: None,
            },
            Action::Package(number) => {
                to.packaged = number;
                to.running = None;
                return Some(to);
            }
            Action::Damage(slot) => {
                to.state.content(slot).build()?;
                to.damaged.insert(slot);
                return Some(to);
            }
        };
        to.state = next(&self.state, event).ok()?;
        match action {
            Action::CopyWhole => {
                (to.starts, to.cut) = (0, 0);
                if let Some(trial) = &mut to.state.trial {
                    trial.reboots_left = REBOOTS_WALKED;
                }
                to.damaged.remove(&self.state.free_slot());
            }
            // The gate restarts the agent after a verdict against it.
            Action::Deadline | Action::EndedByPerson | Action::Withdraw(_) => to.running = None,
            Action::Offer(_)
            | Action::CopyBroken
            | Action::Start
            | Action::StartUnstored
            | Action::Crash
            | Action::PowerCut
            | Action::WindowOver
            | Action::Package(_)
            | Action::Damage(_) => {}
        }
        to.damaged.retain(|slot| to.state.content(*slot).build().is_some());
        to.forget_words();
        Some(to)
    }

    fn started(&self) -> Self {
        let mut to = self.clone();
        let boot = if self.rebooted { "2" } else { "1" };
        let now = Moment { boot: boot.to_owned(), seconds: 1 };
        let packaged = version(self.packaged);
        to.state = next(&self.state, Event::Start { packaged, sound: self.sound(), now, at: None }).unwrap();
        to.damaged.retain(|slot| to.state.content(*slot).build().is_some());
        to.running = choose(&to.state, packaged, to.sound()).ok();
        if to.runs_trial() {
            to.starts += 1;
        }
        // The present boot is always the first one.
        to.rebooted = false;
        let returning = match &mut to.state.returning {
            Returning::Watched { began } => began.as_mut(),
            Returning::No => None,
        };
        let trial = to.state.trial.as_mut().and_then(|trial| trial.began.as_mut());
        for began in trial.into_iter().chain(returning) {
            "1".clone_into(&mut began.boot);
        }
        to.forget_words();
        to
    }

    /// What is counted of a trial is forgotten with it, and a boot once nothing is watched.
    fn forget_trial(&mut self) {
        if self.state.trial.is_none() {
            (self.starts, self.cut) = (0, 0);
        }
        self.rebooted &= self.state.is_watched();
    }

    /// Of a failure only its build and whether that is to blame steer anything; of the way back, nothing. Worlds that
    /// differ in the rest are one world.
    fn forget_words(&mut self) {
        for failure in &mut self.state.failures {
            failure.reason =
                if failure.reason.blames_build() { FailReason::StartsUsed } else { FailReason::Damaged };
            if failure.way_back.take().is_some() {
                self.ways_back = 1;
            }
        }
        self.forget_trial();
        self.state.failures.sort_by(|one, other| one.build.manifest.cmp(&other.build.manifest));
    }

    /// What must hold of every world that can be reached.
    fn judge(&self, before: Option<(&Self, Action)>) -> Result<(), String> {
        let say = |text: &str| Err(text.to_owned());
        // Always a working agent, unless the last one that may run was damaged by somebody else.
        let choice = self.started().running;
        let confirmed_damaged = self.state.confirmed.is_some_and(|slot| self.damaged.contains(&slot));
        if choice.is_none() && !confirmed_damaged {
            return say("a start finds no build");
        }
        if let Some(program) = self.running {
            if self.state.floor.is_some_and(|floor| self.version_of(program) < floor) {
                return say("a build below the floor runs");
            }
            if matches!(program, Program::InSlot(slot) if self.state.content(slot).build().is_none()) {
                return say("an empty slot runs");
            }
        }
        if self.starts > STARTS + REBOOTS_WALKED {
            return say("a build on trial is started too often");
        }
        if let (Some(slot), Some(trial)) = (self.state.confirmed, &self.state.trial)
            && slot == trial.slot
        {
            return say("the confirmed slot is on trial");
        }
        self.ends_by_itself()?;
        let Some((old, action)) = before else { return Ok(()) };
        if old.state.floor > self.state.floor {
            return say("the floor fell");
        }
        if old.state.confirmed_build() != self.state.confirmed_build() && action != Action::WindowOver {
            return say("the confirmed build changed without a window");
        }
        if old.state.floor != self.state.floor && !old.runs_trial() {
            return say("the floor rose without a build on trial that ran");
        }
        if let (Action::Start, Some(trial), None) = (action, &old.state.trial, &self.state.trial)
            && let Some(build) = old.state.content(trial.slot).build()
            && self.state.failures.iter().any(|now| now.build == *build && now.reason.blames_build())
            && old.starts - old.cut < STARTS
            && trial.reboots_left > 0
        {
            return say("a build was taken back for starts that ended with the machine");
        }
        if let Action::Withdraw(which) = action {
            let named = build(OFFERS[which]);
            if old.state.trial_build() != Some(&named) {
                return say("a trial was ended for a release that was not on trial");
            }
            if self.state.trial.is_some() || self.state.confirmed != old.state.confirmed {
                return say("a withdrawal did more than end the trial");
            }
            let blamed = |world: &Self| {
                let blamed = world.state.failures.iter().filter(|failure| failure.reason.blames_build());
                blamed.map(|failure| failure.build.clone()).collect::<Vec<_>>()
            };
            if blamed(old) != blamed(self) {
                return say("a withdrawal blamed a build, or excused one");
            }
        }
        if let Action::Offer(which) = action {
            let offered = build(OFFERS[which]);
            let failed = |reason: &FailReason| reason.blames_build();
            if old.state.failures.iter().any(|old| old.build == offered && failed(&old.reason)) {
                return say("a build that failed was taken again without a new signature");
            }
            if Some(offered.version) <= old.state.floor || offered.version <= version(old.packaged) {
                return say("an older build was taken");
            }
        }
        Ok(())
    }

    /// A watched world comes to rest by starts and deadlines alone.
    fn ends_by_itself(&self) -> Result<(), String> {
        let mut world = self.started();
        for _ in 0..3 {
            if !world.state.is_watched() {
                return Ok(());
            }
            let Some(after) = world.after(Action::Deadline) else {
                return Err("the deadline does not fit a watched state".to_owned());
            };
            world = after.started();
        }
        Err("it is watched for ever".to_owned())
    }
}

#[test]
fn no_order_of_events_and_crashes_leaves_a_host_without_an_agent() {
    let first = World::new();
    let mut way: HashMap<World, Option<(World, Action)>> = HashMap::from([(first.clone(), None)]);
    let mut queue = VecDeque::from([first]);
    let all = actions();
    let (mut steps, mut confirmed, mut both_failed) = (0_u64, 0_u64, 0_u64);
    let (mut withdrawn, mut tried_again) = (0_u64, 0_u64);
    while let Some(world) = queue.pop_front() {
        for action in &all {
            let Some(after) = world.after(*action) else { continue };
            steps += 1;
            if let Err(what) = after.judge(Some((&world, *action))) {
                let mut path = vec![*action];
                let mut at = world.clone();
                while let Some(Some((before, how))) = way.get(&at).cloned() {
                    path.push(how);
                    at = before;
                }
                path.reverse();
                panic!("{what}\nafter {path:?}\nin {after:#?}");
            }
            confirmed += u64::from(after.state.floor.is_some());
            both_failed += u64::from(after.ways_back);
            withdrawn += u64::from(matches!(action, Action::Withdraw(_)));
            if let Action::Offer(which) = action {
                // No reason is left in a world but the one that blames, so this is what was withdrawn or damaged.
                let ended = build(OFFERS[*which]);
                tried_again += u64::from(world.state.failures.iter().any(|failure| failure.build == ended));
            }
            if !way.contains_key(&after) {
                way.insert(after.clone(), Some((world.clone(), *action)));
                queue.push_back(after);
            }
        }
    }
    println!(
        "{} worlds, {steps} steps; floor raised in {confirmed}, both failed in {both_failed}, withdrawn in {withdrawn}, \
         tried again in {tried_again}",
        way.len()
    );
    assert!(withdrawn > 0 && tried_again > 0);
    // A walk that stops early would prove nothing.
    assert!(way.len() > 30_000 && confirmed > 0 && both_failed > 0, "{} worlds", way.len());
}

#[test]
fn each_state_takes_the_events_that_fit_it() {
    let packaged = version(1);
    let take = |number: usize| Event::Take {
        build: build(OFFERS[number]),
        issued_at: Timestamp::UNIX_EPOCH,
        packaged,
    };
    let now = || Moment { boot: "b".to_owned(), seconds: 7 };
    let sound = Sound::default().with(Slot::A, Soundness::Checked);
    let start = |sound| Event::Start { packaged, sound, now: now(), at: None };
    let rest = SlotsState::default();
    assert_eq!(choose(&rest, packaged, Sound::default()), Ok(Program::Packaged));
    for event in [Event::Copied, Event::CopyFailed] {
        assert_eq!(next(&rest, event), Err(Refusal::NotFilling));
    }
    assert_eq!(next(&rest, Event::Confirmed), Err(Refusal::NoTrial));
    assert_eq!(next(&rest, Event::BackHealthy), Err(Refusal::NotReturning));
    assert!(matches!(next(&rest, take(3)), Err(Refusal::NotNewer { .. })));

    let filling = next(&rest, take(0)).unwrap();
    assert!(matches!(filling.a, Content::Filling(_)));
    assert_eq!(next(&filling, start(sound)).unwrap().a, Content::Empty, "a crash in the copy");
    let trial = next(&filling, Event::Copied).unwrap();
    assert!(matches!(next(&trial, take(2)), Err(Refusal::OnTrial { .. })));
    let mut started = next(&trial, start(sound)).unwrap();
    assert_eq!(choose(&started, packaged, sound), Ok(Program::InSlot(Slot::A)));
    assert_eq!(choose_settled(&started, packaged, sound), Ok(Program::Packaged));
    assert_eq!(started.watched_since(), Some(&now()));

    let good = next(&started, Event::Confirmed).unwrap();
    assert_eq!((good.floor, good.confirmed), (Some(version(2)), Some(Slot::A)));
    assert_eq!(choose(&good, packaged, sound), Ok(Program::InSlot(Slot::A)));
    assert_eq!(choose(&good, version(3), sound), Ok(Program::Packaged), "a newer package");
    assert_eq!(
        choose(&good, packaged, Sound::default()),
        Err(NoBuild { packaged, floor: version(2) }),
        "damaged, and the package is too old"
    );
    assert!(matches!(next(&good, take(1)), Err(Refusal::NotNewer { .. })));
    assert!(matches!(next(&good, take(3)), Err(Refusal::BelowFloor { .. })));

    assert!(next(&trial, start(Sound::default())).unwrap().failures[0].reason == FailReason::Damaged);
    for _ in 1..STARTS {
        started = next(&started, start(sound)).unwrap();
    }
    let back = next(&started, start(sound)).unwrap();
    assert_eq!((back.failures[0].reason.clone(), &back.trial), (FailReason::StartsUsed, &None));
    assert_eq!(back.returning, Returning::Watched { began: Some(now()) });
    assert_eq!(next(&back, take(2)), Err(Refusal::Returning));
    let again = next(&back, Event::BackFailed(FailReason::Damaged)).unwrap();
    assert_eq!(again.failures[0].way_back, Some(FailReason::Damaged));
    assert!(matches!(next(&again, take(0)), Err(Refusal::FailedBefore { .. })));
    assert!(next(&again, take(1)).is_ok(), "signed anew");
}

/// Each start but the last one of a boot ended by itself.
#[test]
fn power_cuts_take_back_no_build_until_there_were_too_many() {
    let sound = Sound::default().with(Slot::A, Soundness::Checked);
    let started = |state: &SlotsState, boot: u8| {
        let now = Moment { boot: boot.to_string(), seconds: 1 };
        next(state, Event::Start { packaged: version(1), sound, now, at: None }).unwrap()
    };
    let take =
        Event::Take { build: build(OFFERS[0]), issued_at: Timestamp::UNIX_EPOCH, packaged: version(1) };
    let trial = next(&next(&SlotsState::default(), take).unwrap(), Event::Copied).unwrap();
    let left = |state: &SlotsState| state.trial.as_ref().map(|trial| (trial.starts_left, trial.reboots_left));
    let mut state = started(&trial, 0);
    assert_eq!(left(&state), Some((STARTS - 1, REBOOTS_MAX)));
    for boot in 1..=REBOOTS_MAX {
        state = started(&state, boot);
        assert_eq!(left(&state), Some((STARTS - 1, REBOOTS_MAX - boot)));
    }
    // A build that brings its machine down ends so.
    let mut boot = REBOOTS_MAX;
    for used in 2..=STARTS {
        boot += 1;
        state = started(&state, boot);
        assert_eq!(left(&state), Some((STARTS - used, 0)));
    }
    let back = started(&state, boot + 1);
    assert_eq!(back.failures[0].reason, FailReason::StartsUsed);
    // One that ends by itself is taken back within its boot, as ever; the last of its starts may be cut off, too.
    let third = started(&started(&started(&trial, 0), 0), 0);
    assert_eq!(left(&third), Some((0, REBOOTS_MAX)));
    assert_eq!(left(&started(&third, 1)), Some((0, REBOOTS_MAX - 1)));
    assert_eq!(started(&started(&third, 1), 1).failures[0].reason, FailReason::StartsUsed);
}

/// A gate of before must read the state, so what it does not know of lies next to it.
#[test]
fn reboots_are_stored_next_to_the_state_and_for_their_build_alone() {
    let take = |offer: Offer| Event::Take {
        build: build(offer),
        issued_at: Timestamp::UNIX_EPOCH,
        packaged: version(1),
    };
    let of = |offer: Offer| next(&next(&SlotsState::default(), take(offer)).unwrap(), Event::Copied).unwrap();
    let mut state = of(OFFERS[0]);
    assert_eq!(state.trial_reboots(), None);
    state.trial.as_mut().unwrap().reboots_left = 7;
    let next_to = state.trial_reboots().unwrap();
    let text = serde_json::to_string(&state).unwrap();
    assert!(!text.contains("reboots"), "{text}");
    let read: SlotsState = serde_json::from_str(&text).unwrap();
    assert_eq!(read.trial.as_ref().unwrap().reboots_left, REBOOTS_MAX, "a lost file costs nothing");
    assert_eq!(read.with_reboots(Some(next_to.clone())), state);
    let again = of(OFFERS[1]);
    assert_eq!(again.clone().with_reboots(Some(next_to)), again, "of another manifest");
}

/// What was withdrawn is tried again when it is offered again; what failed is not, however many were withdrawn since.
#[test]
fn a_withdrawn_build_is_not_a_bad_one() {
    let packaged = version(1);
    let take = |build: Build| Event::Take { build, issued_at: Timestamp::UNIX_EPOCH, packaged };
    let tried =
        |state: &SlotsState, build: Build| next(&next(state, take(build)).unwrap(), Event::Copied).unwrap();
    let withdrawn = |manifest: &Build| Event::Withdrawn {
        manifest: manifest.manifest.clone(),
        reason: WithdrawalReason::Aborted,
        at: None,
    };
    let (two, three) = (build(OFFERS[0]), build(OFFERS[2]));
    assert_eq!(next(&SlotsState::default(), withdrawn(&two)), Err(Refusal::NoTrial));
    let trial = tried(&SlotsState::default(), two.clone());
    assert_eq!(next(&trial, withdrawn(&three)), Err(Refusal::OtherTrial { version: version(2) }));
    let back = next(&trial, withdrawn(&two)).unwrap();
    assert_eq!(back.failures[0].reason, FailReason::Withdrawn { reason: WithdrawalReason::Aborted });
    assert!(matches!(back.returning, Returning::Watched { .. }), "what was put back is watched");
    let rest = next(&back, Event::BackHealthy).unwrap();
    let good = next(&tried(&rest, two.clone()), Event::Confirmed).unwrap();
    assert_eq!(good.floor, Some(version(2)));
    assert_eq!(next(&good, withdrawn(&two)), Err(Refusal::NoTrial), "what is good stays");

    let failed = next(&trial, Event::Failed { reason: FailReason::StartsUsed, at: None }).unwrap();
    let mut state = next(&failed, Event::BackHealthy).unwrap();
    for number in 10..40 {
        let other = build((number, b"other", b"m"));
        let other = Build { manifest: Sha256Text::of(&number.to_be_bytes()), ..other };
        let ended = next(&tried(&state, other.clone()), withdrawn(&other)).unwrap();
        state = next(&ended, Event::BackHealthy).unwrap();
    }
    assert_eq!(next(&state, take(two)), Err(Refusal::FailedBefore { version: version(2) }));
}

#[test]
fn the_state_is_read_as_it_was_written() {
    let state = next(
        &SlotsState::default(),
        Event::Take { build: build(OFFERS[2]), issued_at: Timestamp::UNIX_EPOCH, packaged: version(1) },
    )
    .unwrap();
    let state = next(&state, Event::Copied).unwrap();
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<SlotsState>(&text).unwrap(), state, "{text}");
}
