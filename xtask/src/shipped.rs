//! Builds of the programs as they are shipped.
//!
//! In: names of programs. Out: the programs in Cargo's folder of releases. Those that run on hosts and in guests are
//! built for size (profile `small`), and all others for speed (profile `release`). No path of this machine is in them, so
//! that two builds in two folders are the same bytes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::ci::WRAPPER;
use crate::workspace::{SHIPPED_PACKAGES, cargo, must, root, target, triple};

/// All programs that are shipped, each named as its crate.
pub const PROGRAMS: [&str; 8] = [
    "agentd",
    "guestd",
    "holdfast",
    "holdfast-agent-gate",
    "holdfast-break-glass",
    "holdfast-golden",
    "holdfast-helper",
    "hubd",
];

/// The programs of hosts and guests, each named as its crate.
const SMALL: &[&str] = &[
    "agentd",
    "guestd",
    "holdfast-agent-gate",
    "holdfast-break-glass",
    "holdfast-golden",
    "holdfast-helper",
];

/// What the linker leaves out: relocations are packed as bitmaps (glibc reads them since 2.36, which Proxmox VE 8 has),
/// and tables for unwinding are dropped.
fn linking() -> String {
    let script = root().join("xtask/no-unwind.ld");
    format!("-Clink-arg=-Wl,-z,pack-relative-relocs\u{1f}-Clink-arg=-Wl,--script={}", script.display())
}

/// Folders of this machine, and what stands for them in messages and tables.
fn stand_ins() -> Vec<(PathBuf, &'static str)> {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let mut all = vec![(root(), "/holdfast")];
    all.extend(cargo.or_else(home).map(|folder| (folder, "/cargo")));
    // The last one that fits counts, and the target folder may be inside another.
    all.push((target(), "/target"));
    all
}

/// What keeps these folders out of programs: flags for rustc, and for the C in libraries.
fn without_paths(folders: &[(PathBuf, &'static str)]) -> (Vec<String>, String) {
    let rust = folders.iter().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    let c = folders.iter().map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()));
    (rust.collect(), c.collect::<Vec<_>>().join(" "))
}

/// Builds the programs and gives the folder that holds them. By rustc itself: clippy's driver optimises less.
pub fn build(programs: &[&str]) -> Result<PathBuf> {
    let folder = target().join("release");
    let (small, fast): (Vec<&str>, Vec<&str>) = programs.iter().partition(|name| SMALL.contains(name));
    let (remap, c_flags) = without_paths(&stand_ins());
    if !fast.is_empty() {
        let mut build = cargo();
        build.env("CARGO_ENCODED_RUSTFLAGS", remap.join("\u{1f}")).env("CFLAGS", &c_flags);
        build.args(["build", "--quiet", "--locked", "--release"]).args(SHIPPED_PACKAGES);
        build.env_remove("RUSTFLAGS").env_remove(WRAPPER);
        must(build.args(fast.iter().flat_map(|name| ["--bin", name])))?;
    }
    if !small.is_empty() {
        let triple = triple()?;
        let mut build = cargo();
        // Named, so that the flags are for the programs alone and not for build scripts and macros, which unwind.
        build.args(["build", "--quiet", "--locked", "--profile", "small", "--target", &triple]);
        build.args(small.iter().flat_map(|name| ["--package", name, "--bin", name]));
        let flags = format!("{}\u{1f}{}", linking(), remap.join("\u{1f}"));
        build.env("CARGO_ENCODED_RUSTFLAGS", flags).env("CFLAGS", &c_flags);
        must(build.env_remove("RUSTFLAGS").env_remove(WRAPPER))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_are_named_to_both_compilers() {
        let folders = [(PathBuf::from("/home/ada/src"), "/holdfast"), (PathBuf::from("/tmp/t"), "/target")];
        let (rust, c) = without_paths(&folders);
        assert_eq!(
            rust,
            ["--remap-path-prefix=/home/ada/src=/holdfast", "--remap-path-prefix=/tmp/t=/target"]
        );
        assert_eq!(c, "-ffile-prefix-map=/home/ada/src=/holdfast -ffile-prefix-map=/tmp/t=/target");
        assert!(stand_ins().iter().any(|(path, _)| *path == root()));
        assert!(SMALL.iter().all(|name| PROGRAMS.contains(name)));
    }
}
