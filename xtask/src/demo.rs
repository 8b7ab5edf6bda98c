//! `cargo demo`: the whole story, live.

use anyhow::{Result, bail};

/// How to tell it.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// End after the story instead of staying up until Ctrl-C.
    #[arg(long)]
    pub once: bool,
}

/// Tells it.
pub fn run(_: &Options) -> Result<()> {
    bail!("under construction")
}

/// For CI: as an ordinary user.
pub fn once_as_user() -> Result<()> {
    run(&Options { once: true })
}

/// For CI: as root.
pub fn once_as_root() -> Result<()> {
    run(&Options { once: true })
}
