//! `cargo xtask golden`: builds the archive that guests are restored from, after `golden/recipe.toml`.
//!
//! ```text
//! recipe ─▶ base (mmdebstrap, kept; or busybox) ─▶ image (+ guestd, units; - identity) ─▶ archive + manifest
//! ```
//! Deliberately absent: anything that needs a Proxmox, and any secret.

mod archive;
mod base;
mod build;
mod elf;
mod image;
mod manifest;
mod overlay;
mod recipe;
mod tiny;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use build::build;

use crate::workspace;

/// What can be done with goldens.
#[derive(Debug, Subcommand)]
pub enum GoldenTask {
    /// Build an archive and its manifest.
    Build(BuildOptions),
}

/// What to build.
#[derive(Clone, Debug, Args)]
pub struct BuildOptions {
    /// The controller to put in, built on this machine.
    #[arg(long, value_name = "PATH")]
    pub guestd: PathBuf,
    /// The folder that archive and manifest go to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// A busybox image, without root or network.
    #[arg(long, conflicts_with = "full")]
    pub tiny: bool,
    /// With Docker and SSH.
    #[arg(long)]
    pub full: bool,
    /// The golden's version, `YYYY.MM.N`; the first of the recipe's month when absent.
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Fetch Debian's packages anew instead of using the base that was kept.
    #[arg(long)]
    pub fresh: bool,
}

/// Runs one golden task.
pub fn run(task: GoldenTask) -> anyhow::Result<()> {
    match task {
        GoldenTask::Build(options) => {
            let built = build(&workspace::root(), &workspace::target(), &options)?;
            println!("golden {}", built.manifest.version);
            println!("archive  {}", built.archive.display());
            println!("manifest {}", built.manifest_file.display());
            println!("sha256   {}", built.manifest.sha256);
            println!(
                "size     {} bytes, {} packages",
                built.manifest.size_bytes,
                built.manifest.packages.len()
            );
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
