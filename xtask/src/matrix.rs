//! `cargo xtask matrix`: every operation killed at every point, once and again in its recovery, printed as a table.

use anyhow::Result;

use crate::workspace::{cargo, must};

/// Runs it. `words` are handed on, such as `--case provision/12,5`.
pub fn run(words: &[String]) -> Result<()> {
    let mut run = cargo();
    run.args(["run", "--quiet", "--locked", "--package", "harness", "--bin", "matrix"]);
    run.arg("--").args(words);
    must(&mut run)
}
