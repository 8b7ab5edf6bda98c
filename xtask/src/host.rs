//! `cargo xtask host`: our packages on a booted Debian.
//!
//! ```text
//! programs ─▶ packages ─┐
//! golden ───────────────┼─▶ tests/e2e/tests/it/host
//! mmdebstrap ─▶ Debian ─┘
//! ```
//! In: nothing but the checkout; root, and Debian's archive for the first run. Out: the story on the terminal. The Debian
//! is kept by what it was made of.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::stage::Runtime;
use sha2::{Digest, Sha256};

use crate::demo::build;
use crate::package::{self, Build};
use crate::workspace::{cache, must, program, target};
use crate::{ci, packages};

/// The Debian release of Proxmox VE 9.
const RELEASE: &str = "trixie";
/// What such a host has, what the simulator's commands need (curl, jq), and what its operator signs with.
const INCLUDE: &str = "ca-certificates,curl,dbus,e2fsprogs,iproute2,jq,libjson-perl,openssh-client,openssh-server,sudo,\
                       systemd,systemd-sysv,util-linux";
/// They are not read there. (What is left out stays left out, of our packages too: their documentation is wanted.)
const LEFT_OUT: [&str; 1] = ["/usr/share/locale/*"];

/// The stories, each on a machine of its own.
#[derive(Clone, Copy, Debug)]
pub enum Story {
    /// From the first day to the last.
    Life,
    /// Releases of the agent, good and bad.
    Releases,
}

impl Story {
    fn filter(self) -> &'static str {
        match self {
            Self::Life => "package(e2e) and test(/^host::a_box_from_/)",
            Self::Releases => "package(e2e) and test(/^host::a_box_takes_releases/)",
        }
    }
}

/// The story of a host's life.
pub fn life() -> Result<()> {
    run(Story::Life)
}

/// The story of releases.
pub fn releases() -> Result<()> {
    run(Story::Releases)
}

/// Both, one after the other.
pub fn both() -> Result<()> {
    life()?;
    releases()
}

/// Builds what is needed and runs a story.
fn run(story: Story) -> Result<()> {
    ensure!(packages::is_root(), "a Debian is booted by root alone");
    packages::prepare(packages::Purpose::Ci)?;
    let folder = target().join("host");
    let debian = debian()?;
    let programs = crate::test_programs::for_tests()?;
    let golden = build::golden(&programs, Runtime::Process)?;
    let made = package::made(Build::Debug)?;
    let made = made.first().and_then(|file| file.parent()).context("packages lie in a folder")?;
    let simulator = programs.path("pve-sim");
    let env: [(&str, &OsStr); 5] = [
        ("HOLDFAST_HOST_FOLDER", folder.as_os_str()),
        ("HOLDFAST_HOST_DEBIAN", debian.as_os_str()),
        ("HOLDFAST_HOST_PACKAGES", made.as_os_str()),
        ("HOLDFAST_HOST_SIMULATOR", simulator.as_os_str()),
        ("HOLDFAST_E2E_GOLDEN", golden.manifest.as_os_str()),
    ];
    ci::run_tests(story.filter(), &["--no-capture".to_owned()], env)
}

/// The kept archive of that Debian, or a new one.
pub fn debian() -> Result<PathBuf> {
    let folder = cache()?.join("debian");
    let made_of = format!("{RELEASE}\n{INCLUDE}\n{}\n", LEFT_OUT.join("\n"));
    let digest = Sha256::digest(made_of.as_bytes());
    let key: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let kept = folder.join(format!("debian-{RELEASE}-{key}.tar"));
    if kept.exists() {
        return Ok(kept);
    }
    println!("making a Debian {RELEASE} …");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let unfinished = folder.join(format!("debian-{RELEASE}-{key}.{}.tar", std::process::id()));
    let mut command = program("mmdebstrap");
    command.args(["--quiet", "--variant=apt"]).arg(format!("--include={INCLUDE}"));
    command.args(LEFT_OUT.iter().map(|path| format!("--dpkgopt=path-exclude={path}")));
    if let Err(error) = must(command.arg(RELEASE).arg(&unfinished)) {
        // What is half done must not be taken for a Debian; the reason counts more than the removal.
        let _ = std::fs::remove_file(&unfinished);
        return Err(error).context("mmdebstrap made no Debian: it needs Debian's archive and its keys");
    }
    std::fs::rename(&unfinished, &kept).with_context(|| format!("cannot keep {}", kept.display()))?;
    Ok(kept)
}
