//! `cargo xtask host`: a whole Debian, of the release that Proxmox VE 9 stands on, lives with our packages.
//!
//! ```text
//! programs ─▶ packages ─┐
//! golden ───────────────┼─▶ tests/e2e/tests/host_suite
//! mmdebstrap ─▶ Debian ─┘
//! ```
//! In: nothing but the checkout; root, and Debian's archive for the first run. Out: the story on the terminal. The Debian
//! is kept by what it was made of.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::stage::Runtime;
use sha2::{Digest, Sha256};

use crate::demo::build;
use crate::package::{self, Build};
use crate::packages;
use crate::workspace::{PROGRAM_PACKAGES, cargo, must, program, target};

/// What Proxmox VE 9 stands on.
const RELEASE: &str = "trixie";
/// What such a box has, what the simulator's commands need (curl, jq), and what its operator signs with.
const INCLUDE: &str = "ca-certificates,curl,dbus,e2fsprogs,iproute2,jq,libjson-perl,openssh-client,sudo,systemd,\
                       systemd-sysv,util-linux";
/// Nobody reads them there. (What is left out stays left out, of our packages too: their documentation is wanted.)
const LEFT_OUT: [&str; 1] = ["/usr/share/locale/*"];

/// Builds what is needed and tells the story.
pub fn run() -> Result<()> {
    ensure!(packages::is_root(), "a Debian is booted by root alone");
    packages::prepare()?;
    let folder = target().join("host");
    let debian = debian(&folder)?;
    let programs = build::programs()?;
    let golden = build::golden(&programs, Runtime::Process)?;
    let made = package::make(Build::Debug)?;
    let made = made.first().and_then(|file| file.parent()).context("packages lie in a folder")?;
    let mut test = cargo();
    test.args(["test", "--locked"]).args(PROGRAM_PACKAGES).args([
        "--test",
        "host_suite",
        "--",
        "--nocapture",
    ]);
    test.env("HOLDFAST_HOST_FOLDER", folder.join("box"))
        .env("HOLDFAST_HOST_DEBIAN", debian)
        .env("HOLDFAST_HOST_PACKAGES", made)
        .env("HOLDFAST_HOST_SIMULATOR", programs.path("pve-sim"))
        .env("HOLDFAST_E2E_GOLDEN", &golden.manifest);
    must(&mut test)
}

/// The kept archive of that Debian, or a new one.
fn debian(folder: &Path) -> Result<PathBuf> {
    let made_of = format!("{RELEASE}\n{INCLUDE}\n{}\n", LEFT_OUT.join("\n"));
    let digest = Sha256::digest(made_of.as_bytes());
    let key: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let kept = folder.join(format!("debian-{RELEASE}-{key}.tar"));
    if kept.exists() {
        return Ok(kept);
    }
    println!("making a Debian {RELEASE} …");
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
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
