//! `cargo xtask golden`: what `holdfast-golden` does on a box, from a checkout and with a Debian that is kept.
//!
//! In: `golden/` of this workspace and a controller that was built here. Out: archive, manifest and bill of materials in
//! a folder of the checkout's own, in place of what a build before left there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use holdfast_golden::{Build, Built, Existing, Kept, Wanted};
use holdfast_protocol::golden::GoldenContents;
use holdfast_protocol::id::GoldenVersion;

use crate::demo::build;
use crate::{packages, workspace};

/// What can be done with goldens.
#[derive(Debug, Subcommand)]
pub enum GoldenTask {
    /// Build an archive, its manifest and its bill of materials.
    Build(BuildOptions),
    /// Build the Debian image twice, once through the helper's door, compare, look through it, boot it twice. Needs root,
    /// the network and some minutes.
    Prove,
}

/// What to build.
#[derive(Clone, Debug, Args)]
pub struct BuildOptions {
    /// The controller to put in, built on this machine.
    #[arg(long, value_name = "PATH")]
    pub guestd: PathBuf,
    /// The folder that the files go to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// A busybox image, without root or network.
    #[arg(long, conflicts_with = "small")]
    pub tiny: bool,
    /// Without Docker and SSH.
    #[arg(long)]
    pub small: bool,
    /// The golden's version, `YYYY.MM.N`.
    #[arg(long, value_name = "VERSION", default_value = "2026.11.1")]
    pub version: GoldenVersion,
    /// Fetch Debian's packages anew instead of using the base that was kept.
    #[arg(long)]
    pub fresh: bool,
}

/// Runs one golden task.
pub fn run(task: GoldenTask) -> Result<()> {
    match task {
        GoldenTask::Prove => prove(),
        GoldenTask::Build(options) => {
            let built = made(&options)?;
            let manifest = &built.manifest;
            println!("golden   {}", manifest.version);
            println!("archive  {}", built.archive.display());
            println!("manifest {}", built.manifest_file.display());
            println!("sha256   {}", manifest.sha256);
            println!("size     {} bytes, {} packages", manifest.size_bytes, manifest.packages.len());
            println!("took     {} s, {} entries", manifest.build.seconds, manifest.build.entries);
            Ok(())
        }
    }
}

/// Builds it.
pub fn made(options: &BuildOptions) -> Result<Built> {
    made_of(&workspace::root().join("golden"), options)
}

/// Builds it by the recipe in that folder.
pub fn made_of(recipe: &Path, options: &BuildOptions) -> Result<Built> {
    let contents = match (options.tiny, options.small) {
        (true, _) => GoldenContents::Tiny,
        (_, true) => GoldenContents::Small,
        _ => GoldenContents::Complete,
    };
    let work = absolute(&workspace::target())?.join("golden");
    let order = Build {
        recipe,
        guestd: &options.guestd,
        out: &options.out,
        work: &work,
        contents,
        version: Wanted::This(options.version.clone()),
        existing: Existing::Replaced,
        kept: if options.fresh { Kept::Renewed } else { Kept::Used },
        now_s: std::time::UNIX_EPOCH.elapsed()?.as_secs(),
    };
    holdfast_golden::build(&order, |_| {})
}

/// The suite of CI: the whole of it, with programs that were built as all others here.
pub fn prove() -> Result<()> {
    ensure!(packages::is_root(), "mounts and boots are root's: run it with sudo");
    let programs = build::programs()?;
    let folder = tempfile::Builder::new().prefix("prove-").tempdir_in(workspace::target())?;
    let place = folder.path().canonicalize().context("cannot find the folder to work in")?;
    let shared = place.join("programs");
    std::fs::create_dir_all(&shared)?;
    let mut beside = workspace::cargo();
    beside.args(["build", "--quiet", "--locked"]).args(workspace::PROGRAM_PACKAGES);
    workspace::must(beside.args(["--bin", "holdfast-golden", "--bin", "holdfast-helper"]))?;
    for name in ["agentd", "holdfast-golden", "holdfast-helper", "guestd"] {
        let from = programs.folder().join(name);
        std::fs::copy(&from, shared.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let mut test = workspace::cargo();
    // Its figures are what it is run for.
    test.args(["test", "--locked"]).args(workspace::PROGRAM_PACKAGES);
    test.args(["--test", "debian", "--", "--show-output"]);
    test.env("HOLDFAST_GOLDEN_PROGRAMS", &shared).env("HOLDFAST_GOLDEN_PLACE", &place);
    workspace::must(&mut test)
}

/// mmdebstrap is told where to work by an absolute path.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}
