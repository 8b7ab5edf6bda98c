//! `cargo xtask schedules` and `cargo xtask planted`: random fault schedules by seed, and bugs that the harness must find.

use anyhow::Result;

use crate::matrix;

/// Plots, kept seeds, and fresh seeds for a minute. `words` are handed on, such as `--seed 17`, `--count 500` or
/// `--seconds 600`.
pub fn run(words: &[String]) -> Result<()> {
    matrix::harness("schedules", words)
}

/// Plants each bug and looks for it. `words` are handed on, such as `--bug no_lock`.
pub fn planted(words: &[String]) -> Result<()> {
    matrix::harness("planted", words)
}
