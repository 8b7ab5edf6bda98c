//! Random schedules of faults, from a seed.
//!
//! In: a seed. Out: a [`Verdict`]: its story in words, and what does not hold. The agent is the real reconcile loop
//! with its documents, its parallel operations and its recovery. Faults are the simulator's, kills are at any point,
//! and a person interferes. Deliberately absent: what one operation alone can show, which is the [`crate::matrix`].
//!
//! | module | what |
//! | --- | --- |
//! | [`script`] | what a seed chooses |
//! | [`plot`] | stories of which a seed chooses only the details |
//! | [`play`] | playing it: lives, acts, the end |
//! | `storage` | the agent's own folder: copied, put back, torn, full |
//! | [`witness`] | what must still be there, and what must not be touched |
//! | [`judge`] | what must hold at the end |

pub mod judge;
pub mod play;
pub mod plot;
pub mod script;
mod storage;
pub mod witness;

use crate::invariant::Violation;
use crate::virtual_time;
use crate::world_template::Template;

/// The result of a seed.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub seed: u64,
    /// What happened, in words.
    pub story: Vec<String>,
    /// What does not hold.
    pub violations: Vec<Violation>,
    /// One number for all that happened.
    pub hash: u64,
}

/// Seeds that once found something: each line of the file is one, with its story.
#[must_use]
pub fn kept() -> Vec<u64> {
    let lines = include_str!("../../tests/found.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| line.split_whitespace().next().unwrap().parse().expect("a seed, then its story"))
        .collect()
}

/// Plays a seed on this thread. A harness that breaks is a violation too.
#[must_use]
pub fn run(seed: u64) -> Verdict {
    run_script(seed, &script::Script::of(seed))
}

/// Plays a script with the randomness of a seed.
#[must_use]
pub fn run_script(seed: u64, script: &script::Script) -> Verdict {
    // Made outside, since a ground is made in a virtual time of its own.
    let template = Template::of(script.ground);
    let played = std::panic::catch_unwind(|| virtual_time(|| play::play(seed, script, &template)));
    played.unwrap_or_else(|panic| {
        let violations = vec![Violation::of_panic(panic.as_ref())];
        Verdict { seed, story: script.reported(), violations, hash: 0 }
    })
}
