//! Builds of the programs as they are shipped.
//!
//! In: names of programs. Out: the programs in Cargo's folder of releases. Those that run on hosts and in guests are
//! built for size (profile `small`), and all others for speed (profile `release`).

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::ci::WRAPPER;
use crate::workspace::{SHIPPED_PACKAGES, cargo, must, root, target, triple};

/// The programs of hosts and guests, each named as its crate.
const SMALL: &[&str] = &["agentd", "guestd", "holdfast-agent-gate", "holdfast-golden", "holdfast-helper"];

/// What the linker leaves out: relocations are packed as bitmaps (glibc reads them since 2.36, which Proxmox VE 8 has),
/// and tables for unwinding are dropped.
fn linking() -> String {
    let script = root().join("xtask/no-unwind.ld");
    format!("-Clink-arg=-Wl,-z,pack-relative-relocs\u{1f}-Clink-arg=-Wl,--script={}", script.display())
}

/// Builds the programs and gives the folder that holds them. By rustc itself: clippy's driver optimises less.
pub fn build(programs: &[&str]) -> Result<PathBuf> {
    let folder = target().join("release");
    let (small, fast): (Vec<&str>, Vec<&str>) = programs.iter().partition(|name| SMALL.contains(name));
    if !fast.is_empty() {
        let mut build = cargo();
        build.args(["build", "--quiet", "--locked", "--release"]).args(SHIPPED_PACKAGES);
        must(build.args(fast.iter().flat_map(|name| ["--bin", name])).env_remove(WRAPPER))?;
    }
    if !small.is_empty() {
        let triple = triple()?;
        let mut build = cargo();
        // Named, so that the flags are for the programs alone and not for build scripts and macros, which unwind.
        build.args(["build", "--quiet", "--locked", "--profile", "small", "--target", &triple]);
        build.args(small.iter().flat_map(|name| ["--package", name, "--bin", name]));
        must(build.env("CARGO_ENCODED_RUSTFLAGS", linking()).env_remove("RUSTFLAGS").env_remove(WRAPPER))?;
        fs::create_dir_all(&folder)?;
        for name in small {
            let (from, to) = (target().join(&triple).join("small").join(name), folder.join(name));
            // Cargo's own file there may share its bytes with another: it is replaced and not written into.
            let made = folder.join(format!("{name}.small"));
            fs::copy(&from, &made).with_context(|| format!("cannot copy {}", from.display()))?;
            fs::rename(&made, &to).with_context(|| format!("cannot place {}", to.display()))?;
        }
    }
    Ok(folder)
}
