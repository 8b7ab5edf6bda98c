//! `cargo xtask schedules`, `hostile` and `planted`: random fault schedules by seed, a stolen hub by seed, and bugs that the
//! harness must find.

use anyhow::Result;

use crate::matrix::{self, Build};

/// Plots, kept seeds, and fresh seeds for a minute. `words` are handed on, such as `--seed 17`, `--count 500` or
/// `--seconds 600`.
pub fn run(words: &[String], build: Build) -> Result<()> {
    matrix::harness("schedules", words, build)
}

/// A stolen hub for weeks. `words` are handed on, such as `--from 7 --count 3 --days 30`.
pub fn hostile(words: &[String], build: Build) -> Result<()> {
    matrix::harness("hostile", words, build)
}

/// Plants each bug and looks for it. `words` are handed on, such as `--bug no_lock`.
pub fn planted(words: &[String], build: Build) -> Result<()> {
    matrix::harness("planted", words, build)
}
