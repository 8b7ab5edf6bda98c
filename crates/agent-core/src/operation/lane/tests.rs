//! Tests of the lane table, admission and random walks.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::GuestUid;
use uuid::Uuid;

use super::super::spec::Reach;
use super::turn::{Arrival, Claim, Waiting, turns};
use super::*;

fn id(n: u64) -> OperationId {
    OperationId::new(Uuid::from_u128(u128::from(n)))
}

fn uid(n: u64) -> GuestUid {
    GuestUid::new(Uuid::from_u128(u128::from(n)))
}

fn entry(n: u64, work: OperationKind, subject: Subject) -> Entry {
    Entry { id: id(n), work, subject }
}

fn snapshot(name: &str) -> Subject {
    Subject::Snapshot(format!("snap-{name}").parse().unwrap())
}

fn lane(holds: Option<Entry>, waits: Vec<Entry>) -> Lane {
    let host_waits = waits.len();
    Lane { holds, waits, host_waits }
}

/// The documentation is the code's own print. On a difference the test shows what the page should say.
#[test]
fn the_page_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lanes.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(&table::page()), "docs/lanes.md should hold this table:\n{}", table::page());
    for (what, bound) in [
        ("requests that wait in one lane", limits::LANE_WAITING_MAX),
        ("requests that wait on a host", limits::HOST_WAITING_MAX),
        ("operations open on a host", limits::OPERATIONS_AT_ONCE),
        ("of these heavy ones", limits::HEAVY_OPEN_MAX),
        ("heavy steps at work", limits::HEAVY_AT_ONCE),
        ("of these backups", limits::BACKUPS_AT_ONCE),
        ("backups open on a host", limits::BACKUPS_AT_ONCE),
        ("storage works of the host", limits::STORAGE_AT_ONCE),
    ] {
        let line = format!("| {what} | {bound} |");
        assert!(text.contains(&line), "docs/lanes.md should say: {line}");
    }
    for why in Why::ALL {
        assert!(text.contains(why.sentence()), "docs/lanes.md should explain: {}", why.sentence());
    }
}

#[test]
fn what_is_under_way_is_never_cut_off() {
    for incoming in Incoming::all() {
        for there in OperationKind::ALL {
            for likeness in [Likeness::Same, Likeness::Other] {
                let met = meet(incoming, *there, At::Holds, likeness);
                assert_ne!(met, Meeting::Preempts, "{} cuts off {}", incoming.name(), there.as_str());
            }
        }
    }
}

#[test]
fn a_second_backup_joins_the_first() {
    let incoming = Incoming::Work(OperationKind::Backup);
    let running = lane(Some(entry(1, OperationKind::Backup, Subject::Guest)), Vec::new());
    assert_eq!(admit(&running, incoming, &Subject::Guest), Admission::Joins(id(1)));
    let queued = lane(
        Some(entry(1, OperationKind::Start, Subject::Guest)),
        vec![entry(2, OperationKind::Backup, Subject::Guest)],
    );
    assert_eq!(admit(&queued, incoming, &Subject::Guest), Admission::Joins(id(2)));
}

/// No request for a backup elsewhere is answered with one that stays here.
#[test]
fn an_off_site_backup_joins_no_local_one() {
    let incoming = Incoming::Work(OperationKind::Backup);
    let asked = Subject::of_ask(&Ask::Backup { tier: Some(Tier::OffSite) });
    let local = lane(Some(entry(1, OperationKind::Backup, Subject::Guest)), Vec::new());
    assert_eq!(admit(&local, incoming, &asked), Admission::Admitted { place: 1 });
    let off_site = lane(Some(entry(1, OperationKind::Backup, asked.clone())), Vec::new());
    assert_eq!(admit(&off_site, incoming, &asked), Admission::Joins(id(1)));
    let local = Subject::of_ask(&Ask::Backup { tier: Some(Tier::Local) });
    assert_eq!(admit(&off_site, incoming, &local), Admission::Admitted { place: 1 });
}

#[test]
fn a_rollback_never_stands_behind_a_backup() {
    let back = Incoming::Work(OperationKind::RollBack);
    let running = lane(Some(entry(1, OperationKind::Backup, Subject::Guest)), Vec::new());
    assert_eq!(admit(&running, back, &snapshot("a")), Admission::Refused(Why::BackupFirst));
    let free = lane(None, Vec::new());
    assert_eq!(admit(&free, back, &snapshot("a")), Admission::Admitted { place: 0 });
    let deleting = lane(None, vec![entry(1, OperationKind::ExpireSnapshot, snapshot("a"))]);
    assert_eq!(admit(&deleting, back, &snapshot("a")), Admission::Refused(Why::SnapshotGoes));
    assert_eq!(admit(&deleting, back, &snapshot("b")), Admission::Admitted { place: 1 });
    let rolling = lane(Some(entry(1, OperationKind::RollBack, snapshot("a"))), Vec::new());
    let delete = Incoming::Work(OperationKind::ExpireSnapshot);
    assert_eq!(admit(&rolling, delete, &snapshot("a")), Admission::Refused(Why::RollBackNeedsIt));
}

#[test]
fn a_stop_ends_queued_snapshots_and_waits_for_the_backup() {
    let lane = lane(
        Some(entry(1, OperationKind::Backup, Subject::Guest)),
        vec![
            entry(2, OperationKind::Snapshot, snapshot("a")),
            entry(3, OperationKind::ExpireSnapshot, snapshot("b")),
            entry(4, OperationKind::Snapshot, snapshot("c")),
        ],
    );
    let admission = admit(&lane, Incoming::Work(OperationKind::Stop), &Subject::Guest);
    assert_eq!(admission, Admission::Preempts { ended: vec![id(2), id(4)], place: 2 });
}

#[test]
fn a_full_lane_says_when_to_ask_again_and_what_goes_first_needs_no_place() {
    let waits = (0..limits::LANE_WAITING_MAX as u64)
        .map(|n| entry(n, OperationKind::Snapshot, snapshot(&n.to_string())));
    let waits: Vec<Entry> = waits.collect();
    let full = lane(Some(entry(90, OperationKind::Backup, Subject::Guest)), waits);
    let more = Incoming::Work(OperationKind::Snapshot);
    assert_eq!(admit(&full, more, &snapshot("x")), Admission::Busy { retry_after_s: limits::BUSY_HEAVY_S });
    assert_eq!(admit(&full, more, &snapshot("3")), Admission::Joins(id(3)), "joining needs no place");
    let first = Admission::Admitted { place: 0 };
    assert_eq!(admit(&full, Incoming::Cancel, &Subject::Guest), first);
    assert_eq!(admit(&full, Incoming::Release, &Subject::Guest), first);
    let crowded = Lane { host_waits: limits::HOST_WAITING_MAX, ..Lane::default() };
    assert_eq!(
        admit(&crowded, more, &snapshot("x")),
        Admission::Busy { retry_after_s: limits::BUSY_LIGHT_S }
    );
}

/// A seeded sequence; which numbers it gives does not matter, only that a failure comes again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A host of four guests whose lanes are worked off by the rules alone.
#[derive(Default)]
struct Host {
    serial: u64,
    open: BTreeMap<u64, (Claim, Subject)>,
    waits: Vec<(u64, Waiting, Subject)>,
    seen: BTreeMap<&'static str, u32>,
}

const GUESTS: u64 = 4;

impl Host {
    fn lane(&self, guest: GuestUid) -> Lane {
        let of = |claim: &Claim| claim.guests.contains(&guest);
        let holds = self.open.iter().find(|(_, (claim, _))| of(claim));
        let waits = self.waits.iter().filter(|(_, goal, _)| of(&goal.claim));
        Lane {
            holds: holds.map(|(n, (claim, subject))| entry(*n, claim.work, subject.clone())),
            waits: waits.map(|(n, goal, subject)| entry(*n, goal.claim.work, subject.clone())).collect(),
            host_waits: self.waits.len(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn arrive(&mut self, dice: &mut Dice) {
        let work = OperationKind::ALL[usize::try_from(dice.roll(OperationKind::ALL.len() as u64)).unwrap()];
        if work == OperationKind::Destroy && dice.roll(8) > 0 {
            return;
        }
        let subject = match work {
            OperationKind::Snapshot | OperationKind::ExpireSnapshot | OperationKind::RollBack => {
                snapshot(&dice.roll(6).to_string())
            }
            _ => Subject::Guest,
        };
        let first = dice.roll(GUESTS);
        let mut guests = vec![uid(first)];
        if work == OperationKind::ReassignVolume {
            guests.push(uid((first + 1 + dice.roll(GUESTS - 1)) % GUESTS));
        }
        self.serial += 1;
        let goal = Waiting { claim: Claim { guests, work }, arrival: Arrival::of_request(self.serial) };
        match admit(&self.lane(uid(first)), Incoming::Work(work), &subject) {
            Admission::Admitted { .. } => {
                self.count("admitted");
                self.waits.push((self.serial, goal, subject));
            }
            Admission::Preempts { ended, .. } => {
                self.count("pre-empted");
                self.waits.retain(|(n, ..)| !ended.contains(&id(*n)));
                self.waits.push((self.serial, goal, subject));
            }
            Admission::Joins(_) => self.count("joined"),
            Admission::Refused(_) => self.count("refused"),
            Admission::Busy { .. } => self.count("busy"),
        }
    }

    fn begin(&mut self) {
        let open: Vec<Claim> = self.open.values().map(|(claim, _)| claim.clone()).collect();
        let goals: Vec<Waiting> = self.waits.iter().map(|(_, goal, _)| goal.clone()).collect();
        let begun = turns(&open, &goals);
        for place in &begun {
            let goal = &goals[*place];
            let overtaken = self.waits.iter().any(|(n, other, _)| {
                let shares = other.claim.guests.iter().any(|guest| goal.claim.guests.contains(guest));
                let stays = !begun.iter().any(|place| self.waits[*place].0 == *n);
                // A backup that waits for the others' backups delays no other operation.
                let for_backups = rules(other.claim.work).weight.is_backup() && self.backups(&begun) > 0;
                shares && stays && !for_backups && other.arrival < goal.arrival
            });
            assert!(!overtaken, "{goal:?} overtook in its lane");
        }
        for place in &begun {
            let (n, goal, subject) = self.waits[*place].clone();
            self.open.insert(n, (goal.claim, subject));
        }
        let open = &self.open;
        self.waits.retain(|(n, ..)| !open.contains_key(n));
    }

    /// How many are open, with those that begin.
    fn backups(&self, begun: &[usize]) -> usize {
        let open = self.open.values().map(|(claim, _)| claim);
        let begin = begun.iter().map(|place| &self.waits[*place].1.claim);
        open.chain(begin).filter(|claim| rules(claim.work).weight.is_backup()).count()
    }

    fn end_one(&mut self, dice: &mut Dice) {
        let count = self.open.len() as u64;
        if count > 0 {
            let place = usize::try_from(dice.roll(count)).unwrap();
            let n = *self.open.keys().nth(place).unwrap();
            self.open.remove(&n);
        }
    }

    fn check(&self) {
        let mut held = BTreeSet::new();
        for guest in self.open.values().flat_map(|(claim, _)| &claim.guests) {
            assert!(held.insert(*guest), "two mutating operations on {guest}");
        }
        let of =
            |is: fn(OperationKind) -> bool| self.open.values().filter(|(claim, _)| is(claim.work)).count();
        assert!(self.open.len() <= limits::OPERATIONS_AT_ONCE);
        assert!(of(|work| rules(work).weight.is_heavy()) <= limits::HEAVY_OPEN_MAX);
        assert!(of(|work| rules(work).weight.is_backup()) <= limits::BACKUPS_AT_ONCE);
        assert!(of(|work| rules(work).reach == Reach::HostStorage) <= limits::STORAGE_AT_ONCE);
        assert!(self.waits.len() <= limits::HOST_WAITING_MAX);
        for guest in 0..GUESTS {
            let first = |goal: &Waiting| goal.claim.guests.first() == Some(&uid(guest));
            let asked = self.waits.iter().filter(|(_, goal, _)| first(goal)).count();
            assert!(asked <= limits::LANE_WAITING_MAX, "{asked} wait in one lane");
        }
    }
}

#[test]
fn a_long_walk_keeps_every_lane_in_order_and_everybody_gets_their_turn() {
    let mut seen: BTreeMap<&'static str, u32> = BTreeMap::new();
    for seed in 1..=40_u64 {
        let (mut host, mut dice) = (Host::default(), Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for _ in 0..600 {
            match dice.roll(5) {
                0..=2 => host.arrive(&mut dice),
                _ => host.end_one(&mut dice),
            }
            host.begin();
            host.check();
        }
        // Nothing arrives any more: each waiting operation begins once as many have ended as there were.
        let bound = host.open.len() + host.waits.len();
        for _ in 0..bound {
            host.end_one(&mut dice);
            host.begin();
            host.check();
        }
        assert!(host.waits.is_empty() && host.open.is_empty(), "seed {seed}: somebody waits for ever");
        for (what, count) in host.seen {
            *seen.entry(what).or_default() += count;
        }
    }
    // A walk that never came to one of these would prove nothing about it.
    for what in ["admitted", "pre-empted", "joined", "refused", "busy"] {
        assert!(seen.get(what).is_some_and(|count| *count > 20), "{what}: {seen:?}");
    }
}

/// Many guests, all lost: light work of a guest that is there still begins.
#[test]
fn heavy_work_leaves_places_for_light_work() {
    let claim = |n: u64, work| Claim { guests: vec![uid(n)], work };
    let restore =
        |n: u64| Waiting { claim: claim(n, OperationKind::Provision), arrival: Arrival::of_request(n) };
    let mut goals: Vec<Waiting> = (1..=40).map(restore).collect();
    goals.push(Waiting { claim: claim(99, OperationKind::Start), arrival: Arrival::of_request(99) });
    let begun = turns(&[], &goals);
    assert_eq!(begun.len(), limits::HEAVY_OPEN_MAX + 1);
    assert_eq!(begun.last(), Some(&40), "the start, last to come, begins");
    let heavy: Vec<usize> = (0..limits::HEAVY_OPEN_MAX).collect();
    assert_eq!(begun[..limits::HEAVY_OPEN_MAX], heavy[..], "restores by arrival");
}

/// A night of backups, of which one is at work: those that wait keep neither a restore waiting nor anything of their own
/// guests, and begin one after the other.
#[test]
fn one_backup_is_open_and_those_that_wait_hold_no_one_up() {
    let claim = |n: u64, work| Claim { guests: vec![uid(n)], work };
    let goal = |n: u64, work, at| Waiting { claim: claim(n, work), arrival: Arrival::of_request(at) };
    let mut goals: Vec<Waiting> = (1..=40).map(|n| goal(n, OperationKind::QuiescedBackup, n)).collect();
    goals.push(goal(50, OperationKind::Provision, 50));
    goals.push(goal(7, OperationKind::Stop, 51));
    goals.push(goal(1, OperationKind::Stop, 52));
    assert_eq!(turns(&[], &goals), [0, 40, 41], "the first backup, the restore, the stop of another guest");
    let hangs = claim(1, OperationKind::Backup);
    assert_eq!(turns(std::slice::from_ref(&hangs), &goals), [40, 41], "whatever the one at work does");
    // Its place is free, its guest is not: what came later to that guest stays behind it.
    let busy = claim(2, OperationKind::Snapshot);
    let waits = [
        goal(2, OperationKind::Backup, 1),
        goal(2, OperationKind::Stop, 2),
        goal(3, OperationKind::Backup, 3),
    ];
    assert_eq!(turns(&[busy], &waits), [2]);
}

/// A request of the document is queued behind the requests that were there when it was first seen, and before all later
/// ones.
#[test]
fn a_goal_of_the_document_has_its_place() {
    let goal =
        |arrival| Waiting { claim: Claim { guests: vec![uid(1)], work: OperationKind::Start }, arrival };
    let goals = [goal(Arrival::of_request(8)), goal(Arrival::after_request(7)), goal(Arrival::of_request(7))];
    assert_eq!(turns(&[], &goals), [2]);
    assert_eq!(turns(&[], &goals[..2]), [1]);
}
