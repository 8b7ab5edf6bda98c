//! `cargo xtask release`: builds, packages, bills of materials, manifest, apt repository.
//!
//! ```text
//! two builds in two folders ─▶ compared ─▶ files/ ─▶ manifest (to be signed by people)
//! Cargo.lock, cargo metadata ─▶ *.cdx.json ─┘   └─▶ apt/ (signed where a key is given)
//! ```
//! In: a checkout, a version, an end. Out: a folder to be signed with `holdfast release sign` and uploaded with
//! `holdfast release upload`. Nothing is laid out when the two builds differ. Deliberately absent: release keys.

mod apt;
mod compare;
mod graph;
mod manifest;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use holdfast_protocol::release::VersionNumber;

use crate::shipped::{self, PROGRAMS};
use crate::workspace::{must, program, root, target};

/// The programs that are files of a release themselves. The others are in packages alone.
const ALONE: [&str; 2] = ["agentd", "guestd"];

/// What to release.
#[derive(Debug, Args)]
pub struct ReleaseOptions {
    /// Such as 2026.11.0.
    #[arg(long)]
    version: VersionNumber,
    /// For how many days hosts may install it.
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    expires_in_days: u16,
    /// Only this program, without packages and repository; repeat for each.
    #[arg(long, value_name = "PROGRAM", value_parser = clap::builder::PossibleValuesParser::new(ALONE))]
    only: Vec<String>,
    /// A further file, such as a golden image's archive; repeat for each.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// The GnuPG key that signs the apt repository: its fingerprint. Without it the repository is not signed.
    #[arg(long, value_name = "FINGERPRINT")]
    gpg_key: Option<String>,
}

/// One of the two builds, in a process of its own so that its target folder is its own.
#[derive(Debug, Args)]
pub struct OneBuildOptions {
    /// These programs; without any, all packages.
    programs: Vec<String>,
}

/// Runs one of the two builds.
pub fn one_build(options: &OneBuildOptions) -> Result<()> {
    if options.programs.is_empty() {
        return crate::package::make(crate::package::Build::Release).map(drop);
    }
    let names: Vec<&str> = options.programs.iter().map(String::as_str).collect();
    shipped::build(&names).map(drop)
}

/// Runs it.
pub fn run(options: &ReleaseOptions) -> Result<()> {
    let stamp = manifest::commit_time()?;
    let out = target().join("dist").join(options.version.to_string());
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    let files = out.join("files");
    fs::create_dir_all(&files)?;
    let [first, second] = ["first", "second"].map(|name| target().join("twice").join(name));
    let mut made = Vec::new();
    for folder in [&first, &second] {
        println!("building into {} …", folder.display());
        build(folder, &options.only, stamp)?;
        made.push(shipped_files(folder, &options.only)?);
    }
    let differences = compare::all(&made)?;
    if !differences.is_empty() {
        for difference in &differences {
            println!("{difference}");
        }
        bail!(
            "{} files differ between two builds of the same sources: nothing was laid out",
            differences.len()
        );
    }
    for path in made.first().into_iter().flatten().chain(&options.with) {
        let name = path.file_name().with_context(|| format!("{} has no name", path.display()))?;
        fs::copy(path, files.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    let programs: Vec<&str> = if options.only.is_empty() {
        PROGRAMS.to_vec()
    } else {
        options.only.iter().map(String::as_str).collect()
    };
    let sources = sbom::Sources::of(&root())?;
    for name in programs {
        let text = serde_json::to_string_pretty(&sbom::document(&sources, name, stamp)?)? + "\n";
        fs::write(files.join(format!("{name}.cdx.json")), text)?;
    }
    let manifest =
        manifest::write(&files, &out.join("manifest.json"), options.version, options.expires_in_days)?;
    println!("{} files, the same twice: {}", manifest.files.len(), out.display());
    if options.only.is_empty() {
        apt::lay_out(&files, &out.join("apt"), stamp)?;
        sign_repository(&out.join("apt"), options.gpg_key.as_deref())?;
    }
    println!("sign it: holdfast release sign {} --key KEY", out.join("manifest.json").display());
    Ok(())
}

/// Builds into a folder, in a process of its own: the folder is an environment variable of all that runs there.
fn build(folder: &Path, only: &[String], stamp: i64) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut child = program(own);
    child.arg("one-build").args(only).env("CARGO_TARGET_DIR", folder);
    must(child.env("SOURCE_DATE_EPOCH", stamp.to_string()))
}

/// What is shipped of a build: programs without what only debuggers read, and packages.
fn shipped_files(folder: &Path, only: &[String]) -> Result<Vec<PathBuf>> {
    let out = folder.join("shipped");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let alone = ALONE.map(str::to_owned);
    let names = if only.is_empty() { &alone[..] } else { only };
    let mut files = Vec::new();
    for name in names {
        let to = out.join(name);
        must(
            program("strip")
                .arg("--strip-unneeded")
                .arg("-o")
                .arg(&to)
                .arg(folder.join("release").join(name)),
        )?;
        files.push(to);
    }
    if only.is_empty() {
        for entry in fs::read_dir(folder.join("debian")).context("the build left no packages")? {
            files.push(entry?.path());
        }
    }
    files.sort();
    Ok(files)
}

/// `InRelease`, by GnuPG where a key is given.
fn sign_repository(apt: &Path, key: Option<&str>) -> Result<()> {
    let Some(key) = key else {
        println!(
            "the apt repository is not signed: apt takes it with [trusted=yes] alone; give --gpg-key to sign it"
        );
        return Ok(());
    };
    apt::sign(apt, key, None)
}
