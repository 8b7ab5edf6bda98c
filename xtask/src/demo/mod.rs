//! `cargo demo`: a whole Holdfast on this machine.
//!
//! In: nothing but the checkout. Out: the story on the terminal; with `--once` an exit code. The stage itself is
//! `e2e::stage`; this module has the order of the story, its texts, and what must be true at its end. Each of those is
//! checked, so a demo that ends well is a test.

pub mod build;
mod certificate;
mod chapter;
mod ending;
mod loss;
mod own_network;
mod page;
mod protection;
mod signature;
mod story;
pub mod user;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::place::User;
use e2e::programs::Programs;
use e2e::stage::{Golden, Options as StageOptions, Runtime};

use crate::packages::Purpose;
use crate::workspace::has;
use crate::{ci, packages, workspace};
pub use story::Length;

/// How the story is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// End after the story instead of staying up until Ctrl-C.
    #[arg(long)]
    pub once: bool,
    /// End before the backups: less than a minute.
    #[arg(long)]
    pub quick: bool,
    /// Guests as folders with a process, even when root could boot them.
    #[arg(long)]
    pub plain: bool,
    /// Keep the stage's folder with all logs.
    #[arg(long)]
    pub keep: bool,
    /// Only the demo listens in this network, and it has a bridge for restore tests.
    #[arg(long, hide = true)]
    pub in_own_network: bool,
    /// Use the programs in this folder instead of building them.
    #[arg(long, value_name = "DIR", hide = true, requires = "golden")]
    pub programs: Option<PathBuf>,
    /// Use the golden archive of this manifest instead of building one.
    #[arg(long, value_name = "FILE", hide = true)]
    pub golden: Option<PathBuf>,
    /// Seed the simulated Proxmox from this folder instead of the demo's own.
    #[arg(long, value_name = "DIR", hide = true)]
    pub seed: Option<PathBuf>,
}

impl Options {
    fn once(runtime: Runtime, length: Length) -> Self {
        let plain = runtime == Runtime::Process;
        Self {
            once: true,
            quick: length == Length::Quick,
            in_own_network: false,
            plain,
            keep: false,
            programs: None,
            golden: None,
            seed: None,
        }
    }
}

/// Builds what is needed and runs the story.
pub fn run(options: &Options) -> Result<()> {
    let runtime = runtime(options)?;
    let programs = match &options.programs {
        Some(folder) => Programs::in_folder(folder)?,
        None if ci::is_built() => crate::test_programs::for_tests()?,
        None => build::programs()?,
    };
    let golden = match &options.golden {
        Some(manifest) => Golden::read(manifest)?,
        None => build::golden(&programs, runtime)?,
    };
    let length = match (options.quick, runtime) {
        (true, _) => Length::Quick,
        (false, _) if !has("ssh-keygen") => left_out("`ssh-keygen`, which signs, is not installed.")?,
        (false, Runtime::Nspawn) => Length::Whole,
        (false, _) if options.in_own_network => Length::Whole,
        (false, _) => match own_network::permitted() {
            Ok(()) => return own_network::go_on(options, &programs, &golden),
            Err(why) => left_out(&format!("Restore tests need a network namespace: {why}"))?,
        },
    };
    report(options, (programs, golden), runtime, length)
}

/// The quick story and why it is no more; in CI that is a failure.
fn left_out(why: &str) -> Result<Length> {
    ensure!(!ci::is_built(), "the whole story cannot be told here: {why}");
    println!("Left out: backups and what follows them. {why}\n");
    Ok(Length::Quick)
}

/// Root boots real systems; every other user runs processes. What is left out, and why, is printed.
fn runtime(options: &Options) -> Result<Runtime> {
    let runtime = if options.plain || !packages::is_root() { Runtime::Process } else { Runtime::Nspawn };
    packages::prepare(Purpose::Demo(runtime))?;
    // A run inside its own network has printed it before.
    if options.in_own_network || options.plain || packages::is_root() {
        return Ok(runtime);
    }
    println!(
        "Not root: each guest is a folder whose controller runs as a process on a loopback address of its own."
    );
    println!("Left out: booting the guests (run `cargo demo` as root for that).\n");
    Ok(Runtime::Process)
}

fn report(
    options: &Options,
    (programs, golden): (Programs, Golden),
    runtime: Runtime,
    length: Length,
) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("holdfast-demo-")
        .tempdir()
        .context("cannot make a folder for the stage")?;
    let root = packages::is_root();
    // The agent's user must be able to enter the folders, and to run the programs, wherever the checkout is.
    let programs = if root { crate::test_programs::share(&programs, folder.path())? } else { programs };
    let stage = StageOptions {
        programs,
        folder: folder.path().to_owned(),
        runtime,
        golden,
        seed: options.seed.clone().unwrap_or_else(|| workspace::root().join("tests/pve-sim/demo-seed")),
        agent_user: if root { User::Unprivileged } else { User::Same },
    };
    let reported = story::report(stage, length).and_then(|stage| ending::end(stage, options));
    if options.keep || reported.is_err() {
        println!("kept: {}", folder.keep().display());
    }
    reported
}

/// For CI: the story with processes, as an ordinary user even when CI is root.
pub fn once_as_user() -> Result<()> {
    if packages::is_root() { user::report_as_someone() } else { once(Runtime::Process, Length::Whole) }
}

/// For CI: this length of the story with guests of that kind.
pub fn once(runtime: Runtime, length: Length) -> Result<()> {
    run(&Options::once(runtime, length))
}
