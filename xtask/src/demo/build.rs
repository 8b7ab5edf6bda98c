//! Programs and golden archive of the demo.

use anyhow::{Context, Result};
use e2e::programs::{NAMES, Programs};
use e2e::stage::{Golden, Runtime};

use crate::ci;
use crate::golden::BuildOptions;
use crate::workspace::{cargo, must, target};

/// The version of every golden that is built here.
const VERSION: &str = "2026.11.1";

/// Builds the programs of the demo and nothing else, as they are shipped but quick to build.
pub fn programs() -> Result<Programs> {
    println!("building {} …", NAMES.join(", "));
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked"]);
    for name in NAMES {
        build.args(["--package", name]);
    }
    must(build.arg("--bins"))?;
    Programs::in_folder(&target().join("debug"))
}

/// Builds the golden archive for that way of running guests. What is slow in it, Debian's packages, is kept.
pub fn golden(programs: &Programs, runtime: Runtime) -> Result<Golden> {
    let tiny = runtime == Runtime::Process;
    let out = target().join("golden").join(if tiny { "tiny" } else { "debian" });
    if tiny && ci::is_built() {
        // Parts of CI that run side by side read the one that was built for all of them.
        return Golden::read(&out.join(format!("golden-{VERSION}.json")));
    }
    println!("building the golden image ({}) …", if tiny { "busybox" } else { "Debian" });
    let options = BuildOptions {
        guestd: programs.path("guestd"),
        out,
        tiny,
        small: !tiny,
        version: VERSION.parse()?,
        fresh: false,
    };
    let built = crate::golden::made(&options).context("the golden image was not built")?;
    Golden::read(&built.manifest_file)
}
