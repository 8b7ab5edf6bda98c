//! `cargo xtask schedules`, `hostile`, `planted` and `power`.

use anyhow::Result;

use crate::matrix::{self, Build};

/// Plots, kept seeds, and fresh seeds for a minute. `words` are passed on, such as `--seed 17`, `--count 500` or
/// `--seconds 600`.
pub fn run(words: &[String], build: Build) -> Result<()> {
    matrix::harness("schedules", words, build)
}

/// A stolen hub for weeks. `words` are passed on, such as `--from 7 --count 3 --days 30`.
pub fn hostile(words: &[String], build: Build) -> Result<()> {
    matrix::harness("hostile", words, build)
}

/// Cuts the power of the agent's disk before each change of a file. `words` are passed on, such as `--shard 1/40`.
pub fn power(words: &[String], build: Build) -> Result<()> {
    matrix::harness("power", words, build)
}

/// Plants each bug in the agent and searches for it. `words` are passed on, such as `--shard 1/5`.
pub fn planted(words: &[String], build: Build) -> Result<()> {
    matrix::harness("planted", words, build)
}
