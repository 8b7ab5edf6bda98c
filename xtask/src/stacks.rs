//! `cargo xtask stacks`: real programs in a booted guest.
//!
//! ```text
//! programs ────────────────────────────┐
//! golden's recipe + PostgreSQL ─▶ golden ─▶ tests/e2e/tests/it/stacks
//! ```
//! In: nothing but the checkout; root, and Debian's archive for the first run. Out: the story on the terminal, with what was
//! measured.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::stage::Golden;

use crate::golden::{BuildOptions, Image, made_of, recipe};
use crate::workspace::target;
use crate::{ci, packages};

/// In bytes: the disk of the suite (`tests/e2e/tests/it/stacks/disk.rs`), and the golden image with what it is made of.
const ROOM: u64 = 20 << 30;

/// Builds what is needed and runs the tests.
pub fn run() -> Result<()> {
    ensure!(packages::is_root(), "a guest is booted by root alone");
    packages::prepare(packages::Purpose::Ci)?;
    let folder = target().join("stacks");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    enough_room(&folder)?;
    let programs = crate::test_programs::for_tests()?;
    println!("building the golden image (Debian with PostgreSQL and Docker) …");
    let recipe = recipe()?;
    let options = BuildOptions {
        guestd: programs.path("guestd"),
        out: folder.join("golden"),
        tiny: false,
        small: false,
        version: "2026.11.1".parse()?,
        fresh: false,
    };
    let golden = Golden::read(
        &made_of(&recipe, Image::Stacks, &options).context("the golden image was not built")?.manifest_file,
    )?;
    // The agent runs as a user of its own, who must be able to reach its program wherever the checkout is.
    let shared = tempfile::Builder::new().prefix("holdfast-programs-").tempdir()?;
    let programs = crate::test_programs::share(&programs, shared.path())?;
    let (disk, golden) =
        (std::path::absolute(folder.join("disk.img"))?, std::path::absolute(&golden.manifest)?);
    let env: [(&str, &OsStr); 3] = [
        ("HOLDFAST_STACKS_DISK", disk.as_os_str()),
        ("HOLDFAST_E2E_PROGRAMS", programs.folder().as_os_str()),
        ("HOLDFAST_E2E_GOLDEN", golden.as_os_str()),
    ];
    ci::run_tests("package(e2e) and test(/^stacks::/)", &["--no-capture".to_owned()], env)
}

/// Refuses before anything is built, since the golden image alone takes minutes. Files of an earlier run are replaced.
fn enough_room(folder: &Path) -> Result<()> {
    let space = rustix::fs::statvfs(folder)
        .with_context(|| format!("cannot ask for the room in {}", folder.display()))?;
    let left = std::fs::metadata(folder.join("disk.img")).map_or(0, |earlier| earlier.len());
    check_room(folder, space.f_bavail.saturating_mul(space.f_frsize).saturating_add(left))
}

fn check_room(folder: &Path, free: u64) -> Result<()> {
    let gib = |bytes: u64| bytes >> 30;
    ensure!(
        free >= ROOM,
        "{} has {} GiB free and this suite needs {}: nothing was built. Free some, or put `target` elsewhere with \
         CARGO_TARGET_DIR",
        folder.display(),
        gib(free),
        gib(ROOM)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_short_of_room_is_reported_how_much_is_needed() {
        let reported = check_room(Path::new("target/stacks"), 7 << 30).unwrap_err().to_string();
        assert!(reported.contains("7 GiB free") && reported.contains("needs 20"), "{reported}");
        assert!(check_room(Path::new("target/stacks"), ROOM).is_ok());
    }
}
