//! Decisions about what to read of each guest.
//!
//! In: what is remembered of a guest, its row in Proxmox's list, and the time. Out: whether its configuration is read,
//! and whether its power state is asked for singly. Proxmox's list costs it 5 ms whatever the number of guests, but who
//! runs is up to ten seconds old there. A configuration costs 1 ms, a power state 37 ms. Deliberately absent: calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_protocol::id::Vmid;

use crate::model::limits;
use crate::port::pve::read::Power;
use crate::port::pve::resources::{GuestResource, TemplateFlag};

/// All configurations are read once within this time: none gets older than it and one interval.
const CONFIG_PERIOD: Duration = Duration::from_secs(limits::CONFIGURATION_S as u64);

/// A setting of the firewall is read again at this age: two or three calls, and no operation of ours depends on it.
pub(super) const FILTER_OLD: Duration = Duration::from_secs(600);

/// Longer than two of Proxmox's rounds: until then the list may show a guest as it was before it was touched.
const SETTLES: Duration = Duration::from_secs(25);

/// A guest whose row says nothing is asked again after this.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Power states asked for in one observation: a second of Proxmox's time.
const ASKED_AT_ONCE: usize = 32;

/// What of a guest's row would not change by itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    name: Option<String>,
    pool: Option<String>,
    lock: Option<String>,
    tags: Vec<String>,
    template: TemplateFlag,
    memory_max: u64,
    cpus: Option<f64>,
    disk_max: u64,
}

impl Line {
    pub(super) fn of(row: &GuestResource) -> Self {
        Self {
            name: row.name.clone(),
            pool: row.pool.clone(),
            lock: row.lock.clone(),
            tags: row.tags.clone(),
            template: row.template,
            memory_max: row.memory_max,
            cpus: row.cpus,
            disk_max: row.disk_max,
        }
    }
}

/// Whether Proxmox's status daemon goes its rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    Going,
    /// Its figures stand still: rows say who ran at some time before.
    Stalled,
}

/// A power state that was asked for singly.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AskedPower {
    pub(super) power: Power,
    pub(super) uptime_s: u64,
    pub(super) at: Duration,
}

/// What is remembered of one guest's power.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PowerMemory {
    /// What was last concluded.
    pub(super) concluded: Option<Power>,
    pub(super) asked: Option<AskedPower>,
    /// When something last happened to the guest that its row may not show yet.
    pub(super) touched: Option<Duration>,
}

/// Proxmox's rounds, and the node's uptime in seconds as its list shows it.
pub(super) type RoundsSeen = (Rounds, Option<u64>);

impl PowerMemory {
    /// Whether the power state is asked for singly.
    pub(super) fn is_asked(
        &self,
        row: &GuestResource,
        (rounds, node_uptime_s): RoundsSeen,
        now: Duration,
    ) -> bool {
        let within = |at: Duration, limit: Duration| now.saturating_sub(at) < limit;
        if self.touched.is_some_and(|at| within(at, SETTLES)) {
            return true;
        }
        if is_blind(row, rounds) {
            return !self.asked.as_ref().is_some_and(|asked| within(asked.at, ASK_AGAIN));
        }
        // A row of a guest that has just started can show the node's own uptime.
        let has_nodes_uptime =
            row.power == Power::Running && node_uptime_s.is_some_and(|uptime_s| row.uptime_s >= uptime_s);
        has_nodes_uptime || self.concluded.as_ref().is_some_and(|concluded| *concluded != row.power)
    }

    /// Whether the guest runs and for how long, in seconds, out of its row and what was asked; remembered.
    pub(super) fn conclude(
        &mut self,
        row: &GuestResource,
        rounds: RoundsSeen,
        now: Duration,
    ) -> (Power, u64) {
        let is_blind = is_blind(row, rounds.0);
        let found = match &self.asked {
            Some(asked) if asked.at == now => (asked.power.clone(), asked.uptime_s),
            // It should have been asked for and was not, or Proxmox did not answer.
            Some(_) | None if self.is_asked(row, rounds, now) => (Power::Unknown(String::new()), 0),
            Some(asked) if is_blind => {
                let since_s = match asked.power {
                    Power::Running => now.saturating_sub(asked.at).as_secs(),
                    Power::Stopped | Power::Unknown(_) => 0,
                };
                (asked.power.clone(), asked.uptime_s.saturating_add(since_s))
            }
            Some(_) | None => (row.power.clone(), row.uptime_s),
        };
        // A row that is newer than an answer makes that answer old.
        if !is_blind && self.asked.as_ref().is_some_and(|asked| asked.at != now) {
            self.asked = None;
        }
        match &found.0 {
            Power::Running | Power::Stopped => self.concluded = Some(found.0.clone()),
            Power::Unknown(_) => {}
        }
        found
    }
}

/// Whether the row says nothing about now.
fn is_blind(row: &GuestResource, rounds: Rounds) -> bool {
    matches!(row.power, Power::Unknown(_)) || rounds == Rounds::Stalled
}

/// The guests that are asked in one observation, those first that were asked longest ago or never.
pub(super) fn first_asked(mut due: Vec<(Option<Duration>, Vmid)>) -> Vec<Vmid> {
    due.sort_unstable();
    due.into_iter().take(ASKED_AT_ONCE).map(|(_, vmid)| vmid).collect()
}

/// The configurations that are read again without any other reason: evenly, the oldest first.
#[derive(Default)]
pub(super) struct Rotation {
    /// Guests times milliseconds that passed and were not spent on a configuration yet.
    credit: u128,
}

impl Rotation {
    /// Whose turn it is. `elapsed` is the time since the last observation.
    pub(super) fn turn(&mut self, read_at: &BTreeMap<Vmid, Duration>, elapsed: Duration) -> BTreeSet<Vmid> {
        let guests = read_at.len() as u128;
        let one = CONFIG_PERIOD.as_millis();
        // After a long pause each is read once.
        self.credit = self.credit.saturating_add(guests * elapsed.as_millis()).min(guests * one);
        let due = self.credit / one;
        self.credit -= due * one;
        let mut oldest: Vec<(Duration, Vmid)> = read_at.iter().map(|(vmid, at)| (*at, *vmid)).collect();
        oldest.sort_unstable();
        oldest.truncate(usize::try_from(due).unwrap_or(usize::MAX));
        oldest.into_iter().map(|(_, vmid)| vmid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::pve::resources::{GuestKind, UseFigures};

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn row(power: Power, uptime_s: u64) -> GuestResource {
        GuestResource {
            vmid: vmid(300),
            kind: GuestKind::Lxc,
            node: "pve1".to_owned(),
            name: Some("web".to_owned()),
            power,
            pool: Some("holdfast".to_owned()),
            tags: Vec::new(),
            lock: None,
            template: TemplateFlag::NotSet,
            uptime_s,
            memory_max: 512 << 20,
            cpus: Some(1.0),
            disk_max: 4 << 30,
            use_figures: UseFigures::default(),
            unreadable: None,
        }
    }

    fn vmid(number: u32) -> Vmid {
        Vmid::try_from(number).unwrap()
    }

    fn runs(asked_at: Option<u64>, touched_at: Option<u64>) -> PowerMemory {
        let asked = |at| AskedPower { power: Power::Running, uptime_s: 50, at: s(at) };
        PowerMemory {
            concluded: Some(Power::Running),
            asked: asked_at.map(asked),
            touched: touched_at.map(s),
        }
    }

    #[test]
    fn a_guest_at_rest_is_not_asked_and_one_that_changed_is() {
        let unknown = || Power::Unknown("unknown".to_owned());
        let going = (Rounds::Going, Some(9_000));
        let cases = [
            ("at rest", runs(None, None), row(Power::Running, 100), going, false),
            ("never seen", PowerMemory::default(), row(Power::Stopped, 0), going, false),
            ("stopped by somebody", runs(None, None), row(Power::Stopped, 0), going, true),
            ("touched by us", runs(None, Some(1_000)), row(Power::Running, 100), going, true),
            ("touched long ago", runs(None, Some(900)), row(Power::Running, 100), going, false),
            ("made since the round", PowerMemory::default(), row(unknown(), 0), going, true),
            ("no status, asked lately", runs(Some(990), None), row(unknown(), 0), going, false),
            ("no status, asked long ago", runs(Some(900), None), row(unknown(), 0), going, true),
            ("up as long as the node", runs(None, None), row(Power::Running, 9_000), going, true),
            ("rows stand still", runs(None, None), row(Power::Running, 100), (Rounds::Stalled, None), true),
        ];
        for (what, memory, row, rounds, due) in cases {
            assert_eq!(memory.is_asked(&row, rounds, s(1_010)), due, "{what}");
        }
    }

    #[test]
    fn the_answer_counts_and_what_contradicts_itself_is_unknown() {
        let unknown = Power::Unknown(String::new());
        let now = s(1_000);
        let conclude = |memory: &PowerMemory, power, rounds| {
            let row = row(power, 77);
            memory.clone().conclude(&row, (rounds, Some(9_000)), now)
        };
        let (going, stalled) = (Rounds::Going, Rounds::Stalled);
        let (running, stopped) = (Power::Running, Power::Stopped);
        assert_eq!(conclude(&runs(None, None), running.clone(), going), (running.clone(), 77));
        assert_eq!(conclude(&runs(Some(1_000), None), stopped.clone(), going), (running.clone(), 50));
        assert_eq!(conclude(&runs(None, None), stopped.clone(), going), (unknown.clone(), 0));
        assert_eq!(conclude(&runs(Some(970), None), unknown.clone(), going), (running.clone(), 80));
        assert_eq!(conclude(&runs(Some(970), None), stopped, stalled), (running.clone(), 80));
        assert_eq!(conclude(&runs(Some(930), None), running, stalled), (unknown, 0));
    }

    #[test]
    fn an_answer_does_not_outlive_a_newer_row() {
        let mut memory = runs(Some(970), None);
        let going = (Rounds::Going, Some(9_000));
        memory.concluded = Some(Power::Stopped);
        assert_eq!(memory.conclude(&row(Power::Stopped, 0), going, s(980)), (Power::Stopped, 0));
        // Now the rounds stand still: what ran before the row is not said again.
        let stalled = (Rounds::Stalled, Some(9_000));
        assert!(memory.is_asked(&row(Power::Stopped, 0), stalled, s(990)));
        let unknown = (Power::Unknown(String::new()), 0);
        assert_eq!(memory.conclude(&row(Power::Stopped, 0), stalled, s(990)), unknown);
    }

    #[test]
    fn however_many_are_due_each_has_its_turn() {
        let mut asked: BTreeMap<Vmid, Option<Duration>> = (0..300).map(|n| (vmid(300 + n), None)).collect();
        for now in 1..=10 {
            let due = asked.iter().map(|(vmid, at)| (*at, *vmid)).collect();
            for vmid in first_asked(due) {
                asked.insert(vmid, Some(s(now)));
            }
        }
        assert!(asked.values().all(Option::is_some));
    }

    #[test]
    fn no_configuration_gets_older_than_two_minutes() {
        for (guests, every) in [(1_u32, 10), (30, 10), (30, 5), (100, 10), (100, 60), (1_000, 10)] {
            let mut read_at: BTreeMap<Vmid, Duration> =
                (0..guests).map(|n| (vmid(300 + n), Duration::ZERO)).collect();
            let (mut now, mut most, mut reads, mut rotation) = (0, 0, 0, Rotation::default());
            while now < 3_600 {
                now += every;
                let oldest = read_at.values().min().unwrap();
                most = most.max((s(now) - *oldest).as_secs());
                for vmid in rotation.turn(&read_at, s(every)) {
                    read_at.insert(vmid, s(now));
                    reads += 1;
                }
            }
            assert!(most <= 120 + every, "{guests} guests every {every} s: {most} s");
            assert!(reads <= guests * 30, "{guests} guests every {every} s: {reads} reads in an hour");
        }
    }
}
