//! `cargo xtask matrix`: every operation killed at every point, once and again in its recovery, printed as a table.

use anyhow::Result;

use crate::ci;
use crate::workspace::{cargo, must, program, root, target};

/// Runs it. `words` are handed on, such as `--case provision/12,5`.
pub fn run(words: &[String]) -> Result<()> {
    harness("matrix", words)
}

/// Runs a command of the harness, as it is built for the tests.
pub fn harness(name: &str, words: &[String]) -> Result<()> {
    if !ci::is_built() {
        must(cargo().args(["build", "--quiet", "--locked", "--workspace", "--bins"]))?;
    }
    must(program(target().join("debug/harness")).current_dir(root()).arg(name).args(words))
}
