//! Schemathesis against a real hub.
//!
//! In: packages of Python's index, pinned by hash, and the program `hubd`. Out: what `tests/schemathesis/run.py` finds with
//! them. They live in a folder of the target, which is made anew each time: a pinned package that changed is noticed.

use anyhow::{Context as _, Result};

use crate::workspace::{cargo, must, program, root, target};

/// Runs it.
pub fn run() -> Result<()> {
    let folder = target().join("schemathesis");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let (tests, packages) = (root().join("tests/schemathesis"), folder.join("packages"));
    must(program("python3").args(["-m", "venv"]).arg(&packages))?;
    let requirements = tests.join("requirements.txt");
    must(
        program(packages.join("bin/pip"))
            .args(["install", "--quiet", "--no-deps", "--require-hashes", "--requirement"])
            .arg(requirements),
    )?;
    must(cargo().args(["build", "--package", "hubd", "--bin", "hubd"]))?;
    must(program(packages.join("bin/python")).arg(tests.join("run.py")).args([
        target().join("debug/hubd"),
        folder.join("hub"),
        packages.join("bin/schemathesis"),
    ]))
}
