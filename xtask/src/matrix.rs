//! `cargo xtask matrix`: every operation killed at every point, once and again in its recovery, printed as a table.

use anyhow::Result;

use crate::workspace::{cargo, must, program, root, target};

/// Runs it. `words` are handed on, such as `--case provision/12,5`.
pub fn run(words: &[String]) -> Result<()> {
    harness("matrix", words)
}

/// Runs a program of the harness. All of them share one build, with a disk that can fail and bugs that can be planted;
/// the matrix without either is one of the tests. What they link is chosen for the whole workspace, as for the tests.
pub fn harness(name: &str, words: &[String]) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--workspace"]);
    must(build.args(["--features", "failpoints,planted", "--bin", name]))?;
    must(program(target().join("debug").join(name)).current_dir(root()).args(words))
}
