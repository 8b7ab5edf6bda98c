//! `cargo xtask e2e`: the process-level tests, with the programs and the golden image they need.
//!
//! The agent is built with its failpoints, which no shipped build has, and put aside together with the other programs.

use anyhow::{Context, Result};
use e2e::stage::Runtime;

use crate::demo::{build, user};
use crate::workspace::{PROGRAM_PACKAGES, cargo, must};

/// Builds and runs. `words` are handed to the test runner, such as the name of one test.
pub fn run(words: &[String]) -> Result<()> {
    let programs = build::programs()?;
    let golden = build::golden(&programs, Runtime::Process)?;
    // The agent runs as a user of its own, who must be able to reach its program wherever the checkout lies.
    let folder = tempfile::Builder::new().prefix("holdfast-e2e-programs-").tempdir()?;
    let shared = user::share(&programs, folder.path())?;
    let mut with_failpoints = cargo();
    with_failpoints.args(["build", "--quiet", "--locked"]).args(PROGRAM_PACKAGES);
    must(with_failpoints.args(["--bin", "agentd", "--features", "failpoints"]))?;
    std::fs::copy(programs.path("agentd"), shared.path("agentd"))
        .context("cannot copy agentd with failpoints")?;
    let mut test = cargo();
    // Tests that pass print their figures too.
    test.args(["test", "--locked"]).args(PROGRAM_PACKAGES).args(["--test", "process", "--", "--show-output"]);
    test.args(words);
    test.env("HOLDFAST_CI", "1")
        .env("HOLDFAST_E2E_PROGRAMS", shared.folder())
        .env("HOLDFAST_E2E_GOLDEN", &golden.manifest);
    must(&mut test)
}
