//! `cargo xtask matrix`: every operation killed at every point.

use anyhow::Result;

use crate::ci;
use crate::workspace::{cargo, must, program, root, target};

/// How the harness is built for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// As the tests are: what a run of CI has at hand.
    AsTests,
    /// With optimisation and with every check of the tests: takes minutes to build, and pays where a run takes longer.
    Deep,
}

/// Runs it. `words` are passed on, such as `--case provision/12,5`.
pub fn run(words: &[String], build: Build) -> Result<()> {
    harness("matrix", words, build)
}

/// Runs a command of the harness.
pub fn harness(name: &str, words: &[String], build: Build) -> Result<()> {
    let program_path = match build {
        Build::AsTests => {
            if !ci::is_built() {
                must(cargo().args(["build", "--quiet", "--locked", "--workspace", "--bins"]))?;
            }
            target().join("debug/harness")
        }
        Build::Deep => {
            must(cargo().args([
                "build",
                "--quiet",
                "--locked",
                "--profile",
                "deep",
                "-p",
                "harness",
                "--bins",
            ]))?;
            target().join("deep/harness")
        }
    };
    must(program(program_path).current_dir(root()).arg(name).args(words))
}
