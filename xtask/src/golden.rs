//! `cargo xtask golden`: an image build from a checkout.
//!
//! In: `golden/` of this workspace and a controller that was built here. Out: archive, manifest and bill of materials in
//! a folder of the checkout's own, in place of what a build before left there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use holdfast_golden::{BaseCache, Build, Built, OnConflict, Packing, VersionChoice};
use holdfast_protocol::golden::GoldenContents;
use holdfast_protocol::id::GoldenVersion;

use crate::workspace::{root, target};
use crate::{ci, packages, workspace};

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
    made_of(&shipped(), Image::Small, options)
}

/// The recipe of this checkout.
fn shipped() -> PathBuf {
    workspace::root().join("golden")
}

/// An image of Debian whose unpacked packages are kept; each in a folder of its own, so that two can be built at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// Without Docker and SSH, or without Debian.
    Small,
    /// With the programs of the suite `stacks`.
    Stacks,
}

impl Image {
    fn work(self) -> Result<PathBuf> {
        Ok(workspace::cache()?.join(match self {
            Self::Small => "golden-small",
            Self::Stacks => "golden-stacks",
        }))
    }
}

/// Fetches Debian's packages for an image, where they were not kept.
pub fn fetch(image: Image) -> Result<()> {
    let (recipe, contents) = match image {
        Image::Small => (shipped(), GoldenContents::Small),
        Image::Stacks => (recipe()?, GoldenContents::Complete),
    };
    println!("fetching Debian for {image:?} …");
    holdfast_golden::fetch(&recipe, contents, &image.work()?)
}

/// Builds it by the recipe in that folder.
pub fn made_of(recipe: &Path, image: Image, options: &BuildOptions) -> Result<Built> {
    let contents = match (options.tiny, options.small) {
        (true, _) => GoldenContents::Tiny,
        (_, true) => GoldenContents::Small,
        _ => GoldenContents::Complete,
    };
    let work = image.work()?;
    let order = Build {
        recipe,
        guestd: &options.guestd,
        out: &options.out,
        work: &work,
        contents,
        version: VersionChoice::Exact(options.version.clone()),
        existing: OnConflict::Replace,
        base_cache: if options.fresh { BaseCache::Renew } else { BaseCache::Reuse },
        as_of: None,
        packing: Packing::Quick,
        now_s: std::time::UNIX_EPOCH.elapsed()?.as_secs(),
    };
    holdfast_golden::build(&order, |_| {})
}

/// The suite of CI: the whole of it, with programs that were built as all others here.
pub fn prove() -> Result<()> {
    ensure!(packages::is_root(), "mounts and boots are root's: run it with sudo");
    let programs = crate::test_programs::for_tests()?;
    let folder = tempfile::Builder::new().prefix("prove-").tempdir_in(workspace::target())?;
    let place = folder.path().canonicalize().context("cannot find the folder to work in")?;
    let shared = place.join("programs");
    std::fs::create_dir_all(&shared)?;
    for name in ["agentd", "holdfast-golden", "holdfast-helper", "guestd"] {
        let from = programs.folder().join(name);
        std::fs::copy(&from, shared.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let env: [(&str, &OsStr); 2] =
        [("HOLDFAST_GOLDEN_PROGRAMS", shared.as_os_str()), ("HOLDFAST_GOLDEN_PLACE", place.as_os_str())];
    // Its figures are what it is run for.
    let words = ["--success-output", "immediate"].map(str::to_owned);
    ci::run_tests("package(holdfast-golden) and test(/^debian::/)", &words, env)
}

/// The shipped recipe with more packages, in a folder of its own.
pub fn recipe() -> Result<PathBuf> {
    let folder = target().join("stacks/recipe");
    let shipped = root().join("golden");
    let text = std::fs::read_to_string(shipped.join("recipe.toml")).context("cannot read the recipe")?;
    let mut recipe: toml::Table = text.parse().context("the recipe is no TOML")?;
    let packages = recipe.get_mut("stacks").and_then(|stacks| stacks.get_mut("packages"));
    let packages = packages.and_then(toml::Value::as_array_mut).context("the recipe names no packages")?;
    packages.extend(MORE.map(toml::Value::from));
    for part in ["units", "files"] {
        let (from, to) = (shipped.join(part), folder.join(part));
        std::fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
        for file in std::fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
            let file = file?;
            let copied = std::fs::copy(file.path(), to.join(file.file_name()));
            copied.with_context(|| format!("cannot copy {}", file.path().display()))?;
        }
    }
    std::fs::write(folder.join("recipe.toml"), recipe.to_string()).context("cannot write the recipe")?;
    Ok(folder)
}

/// What the guest has beyond what every golden has: the database, and a program for containers that no registry is needed for.
const MORE: [&str; 2] = ["busybox-static", "postgresql"];
