//! What a seed chooses: the ground, and acts in order.
//!
//! In: a seed. Out: a [`Script`], the same for the same seed. Its documents grow out of each other as an operator's would.

use std::fmt;
use std::time::Duration;

use holdfast_protocol::desired::{DesiredGuest, RunState};
use pve_sim::fault::Fault;
use pve_sim::fault::mishap::Mishap;

use crate::controllers::Speech;
use crate::fixtures::guest;
use crate::ground::Ground;
use power_disk::dice::Dice;

/// How the agent's own disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// The next writes, this many, find no space.
    Full(u32),
    /// The next write is on disk, and the answer is an error.
    SyncFails,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Act {
    Pass(Duration),
    /// This mishap at a guest's number; the last value is the seed of its details.
    Mishap(Mishap, u32, u64),
    /// Exactly this fault, once.
    Arm(Fault),
    /// Controllers become silent, or speak again.
    Speech(Speech),
    /// Lasting faults are repaired, and controllers speak.
    Heal,
    /// The agent dies at this many points from here, and returns after a while.
    Kill(usize, Duration),
    /// The next document.
    Offer(Vec<DesiredGuest>),
    /// The document before the newest comes again.
    OfferOld,
    /// A second agent is started on the same folder.
    SecondAgent,
    /// The agent's folder is copied.
    Copy,
    /// The agent dies, and its folder is replaced by the copy.
    PutBack,
    /// The agent dies in a write that was not acknowledged: half a frame is left at the journal's end.
    TornTail(usize),
    /// Its disk fails.
    Disk(Disk),
    /// The clock of the whole host, Proxmox's and the agent's, is set this many seconds ahead of the right time.
    Clock(i64),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass(time) => write!(f, "{} s pass", time.as_secs_f32()),
            Self::Mishap(mishap, vmid, details) => {
                write!(f, "{} ({mishap:?} at {vmid}, {details})", mishap.text())
            }
            Self::Arm(fault) => write!(f, "{fault:?}"),
            Self::Speech(Speech::Hello) => f.write_str("controllers speak"),
            Self::Speech(Speech::Breaks) => f.write_str("controllers break when they are exchanged"),
            Self::Speech(Speech::Returns) => f.write_str("controllers return when they are exchanged"),
            Self::Speech(Speech::Unwell) => f.write_str("controllers are not well when they are exchanged"),
            Self::Speech(Speech::Refuses) => f.write_str("controllers throw away what they fetch"),
            Self::Speech(Speech::Silence) => f.write_str("controllers fall silent"),
            Self::Heal => f.write_str("the node is put right"),
            Self::Kill(after, dead) => write!(f, "killed {after} points on, dead for {} s", dead.as_secs()),
            Self::Offer(guests) => {
                let words: Vec<String> = guests.iter().map(goal).collect();
                write!(f, "a document: {}", words.join(", "))
            }
            Self::OfferOld => f.write_str("the document before comes again"),
            Self::SecondAgent => f.write_str("a second agent is started"),
            Self::Copy => f.write_str("the agent's folder is copied"),
            Self::PutBack => f.write_str("killed, and the folder put back from the copy"),
            Self::TornTail(bytes) => write!(f, "killed, {bytes} bytes of a torn frame at the journal's end"),
            Self::Disk(disk) => write!(f, "the agent's disk fails: {disk:?}"),
            Self::Clock(ahead_s) => write!(f, "the box's clock is {ahead_s} s ahead of what is right"),
        }
    }
}

fn goal(guest: &DesiredGuest) -> String {
    let size = &guest.size;
    format!("{} {:?} {} MiB {} GiB", guest.name, guest.run, size.memory_mib.get(), size.rootfs_gib.get())
}

/// The choices of a seed.
#[derive(Clone, Debug)]
pub struct Script {
    /// What there is before.
    pub ground: Ground,
    pub acts: Vec<Act>,
}

impl Script {
    /// Of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::of(seed);
        let ground = *dice.of_these(&[Ground::Empty, Ground::Empty, Ground::GuestRuns, Ground::TwoGuests]);
        let mut goals: Vec<DesiredGuest> = match ground {
            Ground::TwoGuests => vec![guest(1), guest(2)],
            _ => vec![guest(1)],
        };
        // A third of the seeds has no changes by hand: then all must be well in the end.
        let hands = dice.below(3) > 0;
        let mut acts = vec![Act::Offer(goals.clone())];
        for _ in 0..4 + dice.below(10) {
            acts.push(act(&mut dice, &mut goals, hands));
        }
        Self { ground, acts }
    }

    /// Whether no act is allowed to leave a guest in another state than requested.
    #[must_use]
    pub fn is_gentle(&self) -> bool {
        use pve_sim::fault::mishap::Origin;
        self.acts.iter().all(|act| match act {
            Act::Mishap(mishap, ..) => mishap.origin() == Origin::Wire,
            Act::PutBack | Act::Arm(_) | Act::Speech(_) => false,
            _ => true,
        })
    }

    #[must_use]
    pub fn reported(&self) -> Vec<String> {
        let begins = format!("begins with {:?}", self.ground);
        std::iter::once(begins).chain(self.acts.iter().map(ToString::to_string)).collect()
    }
}

fn act(dice: &mut Dice, goals: &mut Vec<DesiredGuest>, hands: bool) -> Act {
    match dice.below(100) {
        0..28 => Act::Pass(Duration::from_millis(*dice.of_these(&[20, 120, 700, 3_000, 20_000, 400_000]))),
        28..61 => mishap(dice, hands),
        61 => Act::Speech(*dice.of_these(&[Speech::Silence, Speech::Hello])),
        62..78 => {
            let dead_s = *dice.of_these(&[0, 1, 30, 900, 7_200]);
            let after = usize::try_from(1 + dice.below(60)).unwrap();
            Act::Kill(after, Duration::from_secs(dead_s))
        }
        78..90 => {
            change(dice, goals);
            Act::Offer(goals.clone())
        }
        90..92 => Act::OfferOld,
        92..93 => Act::SecondAgent,
        93..95 => Act::Copy,
        95..96 => Act::PutBack,
        96..97 => Act::TornTail(usize::try_from(1 + dice.below(4_000)).unwrap()),
        97..98 => Act::Disk(Disk::Full(u32::try_from(1 + dice.below(4)).unwrap())),
        98..99 => Act::Disk(Disk::SyncFails),
        _ => Act::Heal,
    }
}

fn mishap(dice: &mut Dice, hands: bool) -> Act {
    use pve_sim::fault::mishap::Origin;
    let vmid = 300 + u32::try_from(dice.below(3)).unwrap();
    loop {
        let mishap = *dice.of_these(Mishap::ALL);
        if hands || mishap.origin() == Origin::Wire {
            return Act::Mishap(mishap, vmid, dice.throw() >> 32);
        }
    }
}

/// As an operator would: one thing at a time.
fn change(dice: &mut Dice, goals: &mut Vec<DesiredGuest>) {
    let next = 1 + u8::try_from(goals.len()).unwrap();
    match dice.below(8) {
        0..3 if next <= 3 => goals.push(guest(next)),
        3 if goals.len() > 1 => drop(goals.pop()),
        what => {
            let at = usize::try_from(dice.below(goals.len() as u64)).unwrap();
            let goal = &mut goals[at];
            match what % 4 {
                0 => goal.size.memory_mib = (*dice.of_these(&[128, 256, 512])).try_into().unwrap(),
                1 => goal.size.rootfs_gib = 3.try_into().unwrap(),
                2 => goal.volumes[0].size_gib = 2.try_into().unwrap(),
                _ if goal.run == RunState::Running => goal.run = RunState::Stopped,
                _ => goal.run = RunState::Running,
            }
        }
    }
}
