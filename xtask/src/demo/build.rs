//! What the story needs before it begins: the programs, and a golden archive with `guestd` in it.

use anyhow::{Context, Result};
use e2e::programs::{NAMES, Programs};
use e2e::stage::{Golden, Runtime};

use crate::golden::BuildOptions;
use crate::workspace::{PROGRAM_PACKAGES, cargo, must, target};

/// Builds the programs as cargo builds everything else here, so that tests and demo share the work.
pub fn programs() -> Result<Programs> {
    println!("building {} …", NAMES.join(", "));
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked"]).args(PROGRAM_PACKAGES);
    for name in NAMES {
        build.args(["--bin", name]);
    }
    must(&mut build)?;
    Programs::in_folder(&target().join("debug"))
}

/// Builds the golden archive for that way of running guests. What is slow in it, Debian's packages, is kept.
pub fn golden(programs: &Programs, runtime: Runtime) -> Result<Golden> {
    let tiny = runtime == Runtime::Process;
    println!("building the golden image ({}) …", if tiny { "busybox" } else { "Debian" });
    let options = BuildOptions {
        guestd: programs.path("guestd"),
        out: target().join("golden").join(if tiny { "tiny" } else { "debian" }),
        tiny,
        small: !tiny,
        version: "2026.11.1".parse()?,
        fresh: false,
    };
    let built = crate::golden::made(&options).context("the golden image was not built")?;
    Golden::read(&built.manifest_file)
}
