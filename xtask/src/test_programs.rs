//! Our programs as tests have them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use e2e::programs::{NAMES, Programs};

use crate::ci;
use crate::workspace::target;

/// The programs as tests have them, which can be killed at a point that the environment names.
pub fn for_tests() -> Result<Programs> {
    ci::build()?;
    Programs::in_folder(&target().join("debug"))
}

/// Copies the programs to where every user can run them: the checkout may lie in a folder of root's alone.
pub fn share(programs: &Programs, folder: &Path) -> Result<Programs> {
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, open.clone()).context("cannot open the stage's folder")?;
    let shared = folder.join("bin");
    std::fs::create_dir(&shared).context("cannot make the programs' folder")?;
    std::fs::set_permissions(&shared, open.clone())?;
    for name in NAMES {
        let to = shared.join(name);
        std::fs::copy(programs.path(name), &to).with_context(|| format!("cannot copy {name}"))?;
        std::fs::set_permissions(&to, open.clone())?;
    }
    Programs::in_folder(&shared)
}
