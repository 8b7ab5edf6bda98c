//! A stolen hub over weeks: no customer may lose data.
//!
//! ```text
//! seed ──▶ moves (document, mail, absurd answers, certificates) ──▶ line ──▶ the agent's own loops ──▶ simulator
//! operators sign, guests write and make snapshots ─────────────────────────────────┘       │
//!                                       judge, each day and when the hub is honest again ◀─┘
//! ```
//! In: a seed, and for how many days. Out: a [`Verdict`]. Exchange, intake, reconcile loop and report are the agent's own; the
//! hub is at the end of a line of bytes ([`crate::fake_hub`]). Deliberately absent: TLS itself, which `agentd` and `tests/e2e`
//! test; kills and faults of the host, which are the matrix's and the schedules'.
//!
//! | module | what |
//! | --- | --- |
//! | [`document`] | the grammar of desired documents |
//! | [`mail`] | the grammar of signed jobs |
//! | [`orders`] | work orders |
//! | [`absurd`] | answers that are none |
//! | [`papers`] | certificates |
//! | [`promise`] | the grammar of backup policies |
//! | [`desk`] | what operators really signed |
//! | [`growth`] | what guests may grow by |
//! | [`still`] | a guest that requests windows, and how long its programs are stopped |
//! | [`signed`] | what each signature opens |
//! | [`hub`] | the stolen hub |
//! | [`play`] | the days, and the end |
//! | [`judge`] | what must hold |

pub mod absurd;
pub mod desk;
pub mod document;
pub mod growth;
pub mod hub;
pub mod judge;
pub mod mail;
pub mod orders;
pub mod papers;
pub mod play;
pub mod promise;
mod rows;
pub mod signed;
pub mod still;

use crate::ground::Ground;
use crate::invariant::Violation;
use crate::virtual_time;
use crate::world_template::Template;

/// How long, and how many moves at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub days: u64,
    /// Moves of the thief's.
    pub moves: u64,
}

impl Length {
    /// This many days, with all their moves.
    #[must_use]
    pub const fn days(days: u64) -> Self {
        Self { days, moves: u64::MAX }
    }
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Moves of the thief's.
    pub moves: u64,
    pub checkins: u64,
    /// Documents that were taken, and refused on record.
    pub documents: [usize; 2],
    /// Jobs that operators signed, that were taken, and texts that were refused on record.
    pub jobs: [usize; 3],
    pub operations: usize,
    /// Lines of the audit.
    pub audit: usize,
}

/// The result of a seed.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub seed: u64,
    /// On which day it ended.
    pub day: u64,
    /// What happened last, in words.
    pub story: Vec<String>,
    /// What does not hold.
    pub violations: Vec<Violation>,
    /// How much happened.
    pub figures: Figures,
}

/// Seeds that once found something: each line of the file is a seed, its days and moves, and its story.
#[must_use]
pub fn kept() -> Vec<(u64, Length)> {
    let lines = include_str!("../../tests/hostile.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace().map(|word| word.parse().ok());
            let mut next = || words.next().flatten().expect("a seed, its days, its moves, then its story");
            (next(), Length { days: next(), moves: next() })
        })
        .collect()
}

/// Plays a seed on this thread. A harness that breaks is a violation too.
#[must_use]
pub fn run(seed: u64, length: Length) -> Verdict {
    // Made outside, since a ground is made in a virtual time of its own.
    let template = Template::of(Ground::TwoGuests);
    let played = std::panic::catch_unwind(|| virtual_time(|| play::play(seed, length, &template)));
    played.unwrap_or_else(|panic| Verdict {
        seed,
        day: 0,
        story: Vec::new(),
        violations: vec![Violation::of_panic(panic.as_ref())],
        figures: Figures::default(),
    })
}

/// The fewest moves of a seed with which something does not hold, sought by halves; none when all of it holds.
#[must_use]
pub fn shortest(seed: u64, days: u64) -> Option<(Length, Verdict)> {
    let whole = run(seed, Length::days(days));
    if whole.violations.is_empty() {
        return None;
    }
    let days = if whole.day == 0 { days } else { whole.day };
    let (mut holds, mut fails) = (0, (whole.figures.moves, whole));
    while holds + 1 < fails.0 {
        let moves = holds + (fails.0 - holds) / 2;
        let verdict = run(seed, Length { days, moves });
        if verdict.violations.is_empty() {
            holds = moves;
        } else {
            fails = (moves, verdict);
        }
    }
    Some((Length { days, moves: fails.0 }, fails.1))
}
