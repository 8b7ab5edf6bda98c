//! The ordinary user of the demo.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use e2e::stage::Runtime;

use super::build;
use crate::workspace::{must, program};

/// `no_one` owns no file, and is there on every Debian.
const NO_ONE: &str = "65534";

/// Runs the quick story as `no_one`: it starts this program again, with programs and golden that were built before.
pub fn report_as_someone() -> Result<()> {
    let programs = crate::test_programs::for_tests()?;
    let golden = build::golden(&programs, Runtime::Process)?;
    let folder = tempfile::Builder::new().prefix("holdfast-nobody-").tempdir()?;
    let shared = crate::test_programs::share(&programs, folder.path())?;
    let me = folder.path().join("bin/xtask");
    std::fs::copy(std::env::current_exe()?, &me).context("cannot copy xtask")?;
    let to_all = |file: &Path| -> Result<std::path::PathBuf> {
        let to = folder.path().join(file.file_name().context("a file has a name")?);
        std::fs::copy(file, &to).with_context(|| format!("cannot copy {}", file.display()))?;
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o644))?;
        Ok(to)
    };
    to_all(&golden.file)?;
    let manifest = to_all(&golden.manifest)?;
    let seed = folder.path().join("seed");
    copy_folder(&crate::workspace::root().join("tests/pve-sim/demo-seed"), &seed)?;
    let mut command = program("setpriv");
    command.args([
        "--reuid",
        NO_ONE,
        "--regid",
        NO_ONE,
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]);
    command.arg(&me).args(["demo", "--once", "--plain", "--programs"]).arg(shared.folder());
    command.arg("--golden").arg(manifest);
    command.arg("--seed").arg(&seed).current_dir(folder.path()).env_remove("HOME");
    must(&mut command)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir(to)?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o644))?;
        }
    }
    Ok(())
}
