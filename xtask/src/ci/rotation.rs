//! The sample of this run, by date and commit.
//!
//! In: the day, and how many commits there are. Out: the number of the part to run. Each new day and each new commit moves
//! it on by one, so three runs a day see every part but some losses of power within twenty days.

use anyhow::{Context, Result};

use crate::workspace;

/// The second kills of the crash matrix are split into this many parts.
pub const DOUBLE_KILL_PARTS: u64 = 60;

/// Seeds of schedules that each run takes, and of how many they are.
pub const SCHEDULES: Seeds = Seeds { a_run: 16, of: 400 };

/// Days of a stolen hub in each run; at full depth it is thirty.
pub const HOSTILE_DAYS: u64 = 7;

/// Stolen hubs that each run takes, and of how many they are.
pub const HOSTILE: Seeds = Seeds { a_run: 1, of: 10 };

/// The bugs planted around the agent are split into this many parts.
pub const PLANTED_PARTS: u64 = 5;

/// The losses of power are split into this many parts.
pub const POWER_PARTS: u64 = 80;

/// A guest's losses of power are split into this many parts.
pub const GUEST_POWER_PARTS: u64 = 12;

/// Seeds that rotate.
pub struct Seeds {
    /// How many seeds each run takes.
    pub a_run: u64,
    /// The number of all seeds.
    pub of: u64,
}

impl Seeds {
    /// The first seed of this run.
    pub const fn first(&self, turn: u64) -> u64 {
        1 + (turn % (self.of / self.a_run)) * self.a_run
    }
}

/// A number that grows by one a day and by one a commit.
pub fn turn() -> Result<u64> {
    if let Ok(text) = std::env::var("HOLDFAST_CI_TURN") {
        return text.parse().context("HOLDFAST_CI_TURN is no number");
    }
    let days = std::time::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs() / 86_400;
    Ok(days + commits()?)
}

fn commits() -> Result<u64> {
    let mut git = workspace::program("git");
    let counted = git.current_dir(workspace::root()).args(["rev-list", "--count", "HEAD"]).output()?;
    let text = String::from_utf8(counted.stdout).context("git's count is not text")?;
    // Without a history, as in an unpacked archive, the date alone moves it on.
    Ok(text.trim().parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_turns_together_take_every_seed_once() {
        for seeds in [SCHEDULES, HOSTILE] {
            let turns = seeds.of / seeds.a_run;
            let mut taken: Vec<u64> = (100..100 + turns)
                .flat_map(|turn| seeds.first(turn)..seeds.first(turn) + seeds.a_run)
                .collect();
            taken.sort_unstable();
            assert_eq!(taken, (1..=seeds.of).collect::<Vec<_>>());
        }
    }
}
