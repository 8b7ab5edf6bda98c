//! The suites of CI, in the order of what they cost.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::package::PackageOptions;
use crate::schemas::{self, Mode};
use crate::tools::{DENY, RAGE};
use crate::workspace::{self, cargo, must};
use crate::{demo, e2e_suite, fuzz, golden, tidy};

/// Whether a suite needs root.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// Only root can run it.
    Needed,
    /// Anybody can.
    NotNeeded,
}

/// One suite.
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// Whether it needs root.
    pub needs_root: Root,
    /// Runs it.
    pub run: fn() -> Result<()>,
}

/// All of them.
pub const ALL: &[Suite] = &[
    Suite {
        name: "format",
        shows: "the code is in rustfmt's form",
        needs_root: Root::NotNeeded,
        run: format,
    },
    Suite {
        name: "tidy",
        shows: "layers, arrows, file lengths, docs, banned words",
        needs_root: Root::NotNeeded,
        run: tidy_all,
    },
    Suite {
        name: "schemas",
        shows: "the exported JSON Schemas are fresh",
        needs_root: Root::NotNeeded,
        run: schemas_fresh,
    },
    Suite {
        name: "deny",
        shows: "licences, duplicate versions and sources of what is linked",
        needs_root: Root::NotNeeded,
        run: deny,
    },
    Suite { name: "lint", shows: "clippy with warnings denied", needs_root: Root::NotNeeded, run: lint },
    Suite {
        name: "tests",
        shows: "unit, story, conformance and crash tests",
        needs_root: Root::NotNeeded,
        run: tests,
    },
    Suite {
        name: "fuzz",
        shows: "every parser of the trust part, on bytes that nobody chose",
        needs_root: Root::NotNeeded,
        run: fuzz_briefly,
    },
    Suite {
        name: "matrix",
        shows: "every operation killed at every point, once and again in its recovery, as a table",
        needs_root: Root::NotNeeded,
        run: matrix,
    },
    Suite {
        name: "schedules",
        shows: "plots, kept seeds and fixed seeds of random faults, kills, hands and documents",
        needs_root: Root::NotNeeded,
        run: schedules,
    },
    Suite {
        name: "hostile",
        shows: "a stolen hub for thirty days: fixed seeds, kept seeds, nothing of a customer's lost",
        needs_root: Root::NotNeeded,
        run: hostile,
    },
    Suite { name: "planted", shows: "every planted bug is found", needs_root: Root::NotNeeded, run: planted },
    Suite {
        name: "e2e",
        shows: "the real binaries, fed badly and killed at every point",
        needs_root: Root::NotNeeded,
        run: e2e,
    },
    Suite {
        name: "package",
        shows: "the four Debian packages, without an error that lintian finds",
        // Only root can install lintian.
        needs_root: Root::Needed,
        run: package,
    },
    Suite {
        name: "host",
        shows: "a whole Debian that installs the packages, is set up and enrolled, lives with them and purges them",
        needs_root: Root::Needed,
        run: crate::host::run,
    },
    Suite {
        name: "demo-user",
        shows: "the whole story as an ordinary user",
        needs_root: Root::NotNeeded,
        run: demo::once_as_user,
    },
    Suite {
        name: "demo-root",
        shows: "the whole story with booted guests",
        needs_root: Root::Needed,
        run: demo::once_as_root,
    },
    Suite {
        name: "stacks",
        shows: "PostgreSQL and Docker Compose under load in a booted guest: what a backup holds is what its label says, and \
                a controller is exchanged, or taken back",
        needs_root: Root::Needed,
        run: crate::stacks::run,
    },
    Suite {
        name: "golden",
        shows: "the golden of Debian built twice, the same bytes, nothing secret, booted",
        needs_root: Root::Needed,
        run: golden::prove,
    },
];

fn format() -> Result<()> {
    must(cargo().args(["fmt", "--all", "--check"]))?;
    must(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn tidy_all() -> Result<()> {
    tidy::run(&workspace::root())
}

fn schemas_fresh() -> Result<()> {
    schemas::run(&workspace::root(), Mode::Check)
}

fn deny() -> Result<()> {
    must(workspace::program(DENY.ready()?).current_dir(workspace::root()).args([
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

fn lint() -> Result<()> {
    must(cargo().args(["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Whoever runs `cargo test` has each operation killed once; the suite `matrix` tells the same cases, and more.
const OF_THE_MATRIX: &str = "every_operation_killed_once_at_every_point";

fn tests() -> Result<()> {
    let tools: Vec<PathBuf> = RAGE.ready()?.parent().map(Path::to_owned).into_iter().collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::env::split_paths(&path).chain(tools))?;
    // HOLDFAST_CI tells tests that need something of the machine to fail where they would otherwise be left out.
    must(
        cargo()
            .args(["test", "--locked", "--workspace", "--exclude", "e2e", "--no-fail-fast"])
            .args(["--", "--skip", OF_THE_MATRIX])
            .env("HOLDFAST_CI", "1")
            .env("PATH", path),
    )
}

/// An ordinary user may have no C++ compiler; the head of the run has said so then.
fn fuzz_briefly() -> Result<()> {
    if !workspace::has("g++") && !crate::packages::is_root() {
        println!("left out: there is no g++");
        return Ok(());
    }
    fuzz::briefly()
}

fn package() -> Result<()> {
    crate::package::run(&PackageOptions { quick: true })
}

/// The second kill at every fifth point of the recovery, another fifth for each first: all of them (`cargo xtask matrix`) take
/// CI's two cores more than half an hour.
fn matrix() -> Result<()> {
    crate::matrix::run(&["--again-at-one-in".to_owned(), "5".to_owned()])
}

/// So many seeds, the same in every run: nothing turns red by chance. Fresh ones are `cargo xtask schedules --from N`.
fn schedules() -> Result<()> {
    crate::schedules::run(&["--count".to_owned(), "150".to_owned()])
}

/// Two thieves of thirty days, the same in every run. Others are `cargo xtask hostile --from N`.
fn hostile() -> Result<()> {
    crate::schedules::hostile(&["--from", "1", "--count", "2", "--days", "30"].map(str::to_owned))
}

fn planted() -> Result<()> {
    crate::schedules::planted(&[])
}

fn e2e() -> Result<()> {
    e2e_suite::run(&[])
}
