//! `cargo xtask e2e`: the process-level tests.

use std::ffi::OsStr;

use anyhow::Result;
use e2e::stage::Runtime;

use crate::ci;
use crate::demo::build;

/// Builds and runs. `words` are passed to nextest, such as the name of one test.
pub fn run(words: &[String]) -> Result<()> {
    let programs = crate::test_programs::for_tests()?;
    let golden = build::golden(&programs, Runtime::Process)?;
    // The agent runs as a user of its own, who must be able to reach its program wherever the checkout is.
    let folder = tempfile::Builder::new().prefix("holdfast-e2e-programs-").tempdir()?;
    let shared = crate::test_programs::share(&programs, folder.path())?;
    // Tests that pass print their figures too.
    let words = [&["--success-output".to_owned(), "immediate".to_owned()], words].concat();
    let memory = ci::in_memory()?;
    // Chooses the kills of a day of faults.
    let turn = ci::turn()?.to_string();
    let env: [(&str, &OsStr); 4] = [
        ("HOLDFAST_CI_TURN", OsStr::new(&turn)),
        ("TMPDIR", memory.path().as_os_str()),
        ("HOLDFAST_E2E_PROGRAMS", shared.folder().as_os_str()),
        ("HOLDFAST_E2E_GOLDEN", golden.manifest.as_os_str()),
    ];
    ci::run_tests("package(e2e) and test(/^process::/)", &words, env)
}
