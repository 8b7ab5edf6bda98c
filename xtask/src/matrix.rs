//! `cargo xtask matrix`: every operation killed at every point, once and again in its recovery, printed as a table.

use anyhow::Result;

use crate::workspace::{cargo, must};

/// Runs it. `words` are handed on, such as `--case provision/12,5`.
pub fn run(words: &[String]) -> Result<()> {
    harness("matrix", words)
}

/// Runs a program of the harness. All of them share one build, with a disk that can fail and bugs that can be planted;
/// the matrix without either is one of the tests.
pub fn harness(program: &str, words: &[String]) -> Result<()> {
    let mut run = cargo();
    run.args(["run", "--quiet", "--locked", "--package", "harness", "--features", "failpoints,planted"]);
    run.args(["--bin", program, "--"]).args(words);
    must(&mut run)
}
