//! `cargo xtask package`: the four Debian packages.
//!
//! ```text
//! programs ─▶ man pages, completions, changelog ─▶ cargo-deb ─▶ target/debian/*.deb ─▶ lintian
//! ```
//! In: the `[package.metadata.deb]` of each program's manifest, which names every file. Out: packages that lintian has no
//! error to find in. Deliberately absent: signing and uploading them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::book;
use crate::tools::DEB;
use crate::workspace::{must, program, root, target};
use crate::{ci, shipped};

/// What to make them from.
#[derive(Debug, Args)]
pub struct PackageOptions {
    /// From the build for tests: quick to make, large, and not for customers.
    #[arg(long)]
    pub quick: bool,
}

/// The build the programs are taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// As they are shipped.
    Release,
    /// As tests have them.
    Debug,
}

impl Build {
    const fn profile(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Debug => "dev",
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Debug => "debug",
        }
    }
}

/// A program with its package: the crate, the program, the Debian package.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("agentd", "agentd", "holdfast-agent"),
    ("hubd", "hubd", "holdfast-hub"),
    ("guestd", "guestd", "holdfast-guest"),
    ("holdfast", "holdfast", "holdfast-cli"),
];

/// What the agent's package contains in addition to the agent.
const COPY: [&str; 4] = ["holdfast-helper", "holdfast-golden", "holdfast-agent-gate", "holdfast-break-glass"];

const SHELLS: &[(&str, &str, &str)] = &[("bash", "", ".bash"), ("zsh", "_", ""), ("fish", "", ".fish")];

/// Runs it.
pub fn run(options: &PackageOptions) -> Result<()> {
    let made = make(if options.quick { Build::Debug } else { Build::Release })?;
    judge(&made)?;
    for package in &made {
        let packed = fs::metadata(package)?.len().div_ceil(1024);
        println!("{} ({packed} KiB, {} KiB installed)", package.display(), installed_kib(package)?);
    }
    Ok(())
}

/// What dpkg will say that it needs on a disk.
fn installed_kib(package: &Path) -> Result<String> {
    let size = program("dpkg-deb").arg("--field").arg(package).arg("Installed-Size").output()?;
    if !size.status.success() {
        bail!("dpkg-deb cannot read {}", package.display());
    }
    Ok(String::from_utf8(size.stdout).context("a package's size is not text")?.trim().to_owned())
}

/// Those that CI's part `package` has made, or new ones.
pub fn made(build: Build) -> Result<Vec<PathBuf>> {
    if ci::is_built() { listed(&target().join("debian")) } else { make(build) }
}

/// Makes all of them.
pub fn make(build: Build) -> Result<Vec<PathBuf>> {
    let tool = DEB.ready()?;
    programs(build)?;
    accompany(build)?;
    let out = target().join("debian");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    fs::create_dir_all(&out)?;
    for (member, ..) in PACKAGES {
        let mut deb = program(&tool);
        deb.current_dir(root()).env("CARGO_TARGET_DIR", target());
        deb.args([
            "deb",
            "--quiet",
            "--locked",
            "--no-build",
            "--profile",
            build.profile(),
            "--package",
            member,
        ]);
        // The profile keeps line tables for measurements; the installed program has none.
        deb.arg("--strip");
        if build == Build::Debug {
            // Packed quickly, too: these are installed once and thrown away.
            deb.arg("--fast");
        }
        must(deb.arg("--output").arg(&out))?;
    }
    listed(&out)
}

/// The packages in a folder: all of them, or an error.
fn listed(out: &Path) -> Result<Vec<PathBuf>> {
    let mut made = fs::read_dir(out)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    made.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    made.sort();
    if made.len() != PACKAGES.len() {
        bail!(
            "{} packages were to be made, and there are {} in {}",
            PACKAGES.len(),
            made.len(),
            out.display()
        );
    }
    Ok(made)
}

/// For tests the programs that all tests run; else as they are shipped.
fn programs(build: Build) -> Result<()> {
    println!("building the programs ({}) …", build.profile());
    if build == Build::Debug {
        return ci::build();
    }
    let names: Vec<&str> = PACKAGES.iter().map(|(_, name, _)| *name).chain(COPY).collect();
    shipped::build(&names).map(drop)
}

/// What each program writes about itself, and the changelog in Debian's form.
fn accompany(build: Build) -> Result<()> {
    let programs = target().join(build.folder());
    let folder = programs.join("package");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    for (_, name, package) in PACKAGES {
        let binary = programs.join(name);
        must(program(&binary).arg("man").arg(&man))?;
        for (shell, before, after) in SHELLS {
            let script = program(&binary).args(["completions", shell]).output()?;
            if !script.status.success() {
                bail!("`{name} completions {shell}` ended with {}", script.status);
            }
            fs::write(completions.join(format!("{before}{name}{after}")), script.stdout)?;
        }
        let changes = folder.join(package).join("changelog.Debian");
        fs::create_dir_all(folder.join(package))?;
        fs::write(&changes, changelog(package)?)?;
        pack(&changes)?;
    }
    guest_agent(&programs, &folder)?;
    book::write(&folder.join("book"))?;
    fs::read_dir(&man)?.try_for_each(|page| pack(&page?.path()))
}

/// The guest agent for images, packed: on a host only an image build reads it.
fn guest_agent(programs: &Path, folder: &Path) -> Result<()> {
    let stripped = folder.join("guestd");
    must(program("strip").arg("--strip-unneeded").arg("-o").arg(&stripped).arg(programs.join("guestd")))?;
    let bytes = fs::read(&stripped)?;
    fs::write(folder.join("guestd.zst"), zstd::encode_all(bytes.as_slice(), 19)?)?;
    fs::remove_file(&stripped)?;
    Ok(())
}

/// As Debian wants pages and changelogs: packed as small as can be, without the name and time of the file.
fn pack(file: &Path) -> Result<()> {
    must(program("gzip").args(["-9", "--no-name"]).arg(file))
}

/// One entry: this version, of the day of the last commit.
fn changelog(package: &str) -> Result<String> {
    let day = program("git").current_dir(root()).args(["log", "-1", "--format=%cD"]).output()?;
    if !day.status.success() {
        bail!("git does not tell the day of the last commit: make packages in a checkout");
    }
    let day = String::from_utf8(day.stdout).context("git's day is not text")?;
    let version = env!("CARGO_PKG_VERSION");
    let maintainer = "Holdfast maintainers <maintainers@holdfast.example>";
    Ok(format!(
        "{package} ({version}-1) unstable; urgency=medium\n\n  * Release {version}.\n\n -- {maintainer}  {}\n",
        day.trim()
    ))
}

/// What lintian finds wrong fails; what it would rather have otherwise is printed.
fn judge(packages: &[PathBuf]) -> Result<()> {
    let mut lintian = program("lintian");
    lintian.args(["--fail-on", "error", "--suppress-tags", "initial-upload-closes-no-bugs"]);
    must(lintian.args(packages.iter().map(|path| Path::new(path).as_os_str())))
}
