//! The one build that programs and tests share.
//!
//! In: the workspace. Out: programs and test binaries in the one configuration that all tests share (the agent with its
//! feature `testing`), and two files that list them for nextest. While cargo builds or lints, it holds a lock on its
//! folder; parts that run in parallel must not wait for it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

use crate::tools::NEXTEST;
use crate::workspace::{builder, cargo, must, target};

/// Set by the runner for parts that come after the build.
pub const BUILT: &str = "HOLDFAST_CI_BUILT";

/// Whether the part `programs` has passed in this run.
pub fn is_built() -> bool {
    std::env::var_os(BUILT).is_some()
}

/// The files that list the binaries and the workspace for nextest.
fn lists() -> [PathBuf; 2] {
    let folder = target().join("ci");
    [folder.join("binaries.json"), folder.join("workspace.json")]
}

/// Builds every program and every test.
pub fn build() -> Result<()> {
    if is_built() {
        return Ok(());
    }
    let mut build = cargo();
    // The page of timings is what `cargo ci --profile` reads.
    must(build.args(["build", "--locked", "--workspace", "--bins", "--tests", "--timings"]))
}

/// Writes down where the test binaries are.
pub fn list() -> Result<()> {
    let [binaries, workspace] = lists();
    std::fs::create_dir_all(target().join("ci"))?;
    let mut list = nextest("list")?;
    list.args(["--locked", "--workspace", "--list-type", "binaries-only", "--message-format", "json"]);
    list.args(["--cargo-quiet"]).stdout(File::create(&binaries)?);
    must(&mut list)?;
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1"]).stdout(File::create(&workspace)?);
    must(&mut metadata)
}

/// `cargo nextest VERB` with CI's profile.
fn nextest(verb: &str) -> Result<Command> {
    let mut command = builder(NEXTEST.ready()?);
    command.env("CARGO_TERM_PROGRESS_WHEN", "never");
    command.args(["nextest", verb]);
    Ok(command)
}

/// Runs the tests that a nextest filter selects, with more arguments for nextest and more environment variables.
pub fn run_tests<'a>(
    filter: &str,
    words: &[String],
    env: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
) -> Result<()> {
    let mut run = nextest("run")?;
    if is_built() {
        let [binaries, workspace] = lists();
        run.arg("--binaries-metadata").arg(binaries).arg("--cargo-metadata").arg(workspace);
    } else {
        run.args(["--locked", "--workspace"]);
    }
    run.args(["--profile", "ci", "--no-tests", "fail", "-E", filter]).args(words);
    // Where something is missing that a test needs of the machine, CI fails where others leave the test out.
    must(run.env("HOLDFAST_CI", "1").envs(env))
}

/// A folder for what tests write, in memory where the machine offers it: they sync files by the thousand.
pub fn in_memory() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("holdfast-tests-").tempdir_in(base)?;
    // Some tests become another user.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777))?;
    Ok(folder)
}
