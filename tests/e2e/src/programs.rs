//! The paths of the built programs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The programs a stage is made of.
pub const NAMES: &[&str] = &["agentd", "guestd", "holdfast", "hubd", "pve-sim"];

/// A folder that holds them all.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Takes a folder.
    ///
    /// # Errors
    /// When one of them is missing.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        for name in NAMES {
            if !folder.join(name).is_file() {
                bail!(
                    "{name} is not in {}: build it with `cargo build --workspace --bins`",
                    folder.display()
                );
            }
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// The folder cargo put the running program into (tests run one folder deeper, in `deps`).
    ///
    /// # Errors
    /// When the programs are not there.
    pub fn next_to_me() -> Result<Self> {
        let me = std::env::current_exe().context("which program am I?")?;
        let mut folder = me.parent().context("a program lies in a folder")?;
        if folder.ends_with("deps") {
            folder = folder.parent().context("`deps` lies in a folder")?;
        }
        Self::in_folder(folder)
    }

    /// One of them.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
