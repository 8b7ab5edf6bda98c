//! Plots: schedules with a fixed story.
//!
//! In: a seed. Out: a [`Script`]. Random schedules hit some events once in many thousand runs, such as a change by hand
//! at just the wrong moment. A plot causes them every time. On the true agent all must hold at its end, as for any
//! schedule.

use std::time::Duration;

use holdfast_protocol::desired::DesiredGuest;
use pve_sim::fault::Fault;
use pve_sim::fault::mishap::Mishap;

use super::script::{Act, Script};
use crate::controllers::Speech;
use crate::fixtures::guest;
use crate::ground::Ground;
use power_disk::dice::Dice;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    pub name: &'static str,
    pub script: fn(u64) -> Script,
}

/// Another guest is restored by hand under the number, tags and all.
pub const IMPOSTOR: Plot = Plot { name: "impostor", script: |seed| hand(seed, Mishap::Impostor) };
/// The number is given to something else by hand.
pub const REUSE: Plot = Plot { name: "number reused", script: |seed| hand(seed, Mishap::Reuse) };
/// The mark is removed by hand.
pub const UNMARK: Plot = Plot { name: "mark removed", script: |seed| hand(seed, Mishap::Unmark) };
/// A volume is attached by hand to a guest that is taken back.
pub const ATTACHED: Plot = Plot { name: "volume attached", script: |seed| taken_back(seed, Mishap::Attach) };
/// A guest that is taken back is taken out of the pool, where no token of ours sees it.
pub const HIDDEN: Plot = Plot { name: "hidden", script: |seed| taken_back(seed, Mishap::Unpool) };
/// A guest is destroyed by hand, and another one is requested.
pub const ANOTHER: Plot = Plot { name: "another guest", script: another };
/// A document comes again that was replaced.
pub const OLDER: Plot = Plot { name: "older document", script: older };
/// A second agent is started, wherever the first is.
pub const SECOND: Plot = Plot { name: "two agents", script: second };
/// The agent's folder is put back as it was before it made a guest.
pub const PUT_BACK: Plot = Plot { name: "folder put back", script: put_back };
/// Workers die after their work and before its end is written.
pub const UNCLEAR: Plot = Plot { name: "unclear ends", script: unclear };

/// The clock of the host jumps while a guest is made, and is right again in the end.
pub const CLOCK: Plot = Plot { name: "clock jumps", script: clock_jumps };

/// All of them.
pub const ALL: &[Plot] =
    &[IMPOSTOR, REUSE, UNMARK, ATTACHED, HIDDEN, ANOTHER, OLDER, SECOND, PUT_BACK, UNCLEAR, CLOCK];

const fn seconds(number: u64) -> Act {
    Act::Pass(Duration::from_secs(number))
}

/// Somewhere within the work that is under way.
fn a_moment(dice: &mut Dice) -> Act {
    Act::Pass(Duration::from_millis(1 + dice.below(20_000)))
}

fn larger(goal: &DesiredGuest) -> DesiredGuest {
    let mut goal = goal.clone();
    goal.size.memory_mib = 512.try_into().unwrap();
    goal
}

/// A person changes a guest that serves, and the document still requests it.
fn hand(seed: u64, mishap: Mishap) -> Script {
    let mut dice = Dice::of(seed);
    let acts = vec![
        Act::Offer(vec![guest(1)]),
        a_moment(&mut dice),
        Act::Mishap(mishap, 300, dice.throw() >> 32),
        a_moment(&mut dice),
        Act::Offer(vec![larger(&guest(1))]),
        seconds(2_000),
    ];
    Script { ground: Ground::GuestRuns, acts }
}

/// A guest whose controller never speaks is taken back, and a person changed it during the wait.
fn taken_back(seed: u64, mishap: Mishap) -> Script {
    let mut dice = Dice::of(seed);
    let acts = vec![
        Act::Speech(Speech::Silence),
        Act::Offer(vec![guest(1)]),
        seconds(30 + dice.below(60)),
        Act::Mishap(mishap, 300, dice.throw() >> 32),
        seconds(600),
    ];
    Script { ground: Ground::Empty, acts }
}

fn another(seed: u64) -> Script {
    let mut dice = Dice::of(seed);
    let acts = vec![
        Act::Offer(vec![guest(1)]),
        a_moment(&mut dice),
        Act::Mishap(Mishap::HandDestroy, 300, dice.throw() >> 32),
        a_moment(&mut dice),
        Act::Offer(vec![guest(1), guest(2)]),
        seconds(2_000),
    ];
    Script { ground: Ground::GuestRuns, acts }
}

fn older(seed: u64) -> Script {
    let mut dice = Dice::of(seed);
    let acts = vec![
        Act::Offer(vec![guest(1)]),
        a_moment(&mut dice),
        Act::Offer(vec![larger(&guest(1))]),
        a_moment(&mut dice),
        Act::OfferOld,
        a_moment(&mut dice),
    ];
    Script { ground: Ground::GuestRuns, acts }
}

fn second(seed: u64) -> Script {
    let mut dice = Dice::of(seed);
    let acts = vec![Act::Offer(vec![guest(1)]), a_moment(&mut dice), Act::SecondAgent, seconds(60)];
    Script { ground: Ground::Empty, acts }
}

fn put_back(seed: u64) -> Script {
    let mut dice = Dice::of(seed);
    let acts = vec![
        Act::Copy,
        Act::Offer(vec![guest(1)]),
        Act::Pass(Duration::from_millis(1 + dice.below(60_000))),
        Act::PutBack,
        seconds(2_000),
    ];
    Script { ground: Ground::Empty, acts }
}

fn unclear(seed: u64) -> Script {
    let mut dice = Dice::of(seed);
    let mut acts = Vec::new();
    for kind in ["vzrestore", "resize", "vzstart", "vzdump"] {
        let task = kind.to_owned();
        match dice.below(3) {
            0 => acts.push(Act::Arm(Fault::UnknownEnd { task })),
            1 => acts.push(Act::Arm(Fault::VanishTask { task })),
            _ => acts.push(Act::Arm(Fault::WarnWorker { task })),
        }
    }
    acts.extend([Act::Offer(vec![guest(1)]), seconds(600)]);
    Script { ground: Ground::Empty, acts }
}

fn clock_jumps(seed: u64) -> Script {
    const DAY_S: i64 = 86_400;
    let mut dice = Dice::of(seed);
    let mut jump = || *dice.of_these(&[-365 * DAY_S, -DAY_S, -7_200, -90, 90, 7_200, DAY_S, 365 * DAY_S]);
    let jumps = [jump(), jump()];
    let after = usize::try_from(1 + dice.below(40)).unwrap();
    let acts = vec![
        Act::Offer(vec![guest(1)]),
        a_moment(&mut dice),
        Act::Clock(jumps[0]),
        Act::Kill(after, Duration::from_secs(30)),
        a_moment(&mut dice),
        Act::Clock(jumps[1]),
        Act::Offer(vec![larger(&guest(1))]),
        seconds(600),
    ];
    Script { ground: Ground::Empty, acts }
}
