//! One stage at a time on one machine: an agent's local API has one fixed address, so a second stage waits for the
//! first to end. The kernel gives the turn back however the first one ends.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};

use super::Runtime;

/// The right to have a stage; given back when dropped.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "held for its lock")] File);

impl Turn {
    /// Waits for the turn.
    pub(super) fn take(runtime: Runtime) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("holdfast-stage-{}.lock", runtime.text()));
        let file = open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if file.try_lock().is_err() {
            eprintln!("another stage stands on this machine: waiting for its end");
            file.lock().context("cannot wait for the other stage")?;
        }
        Ok(Self(file))
    }
}

/// Whoever comes first makes the file; others, other users too, need only to read it for its lock.
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path).or_else(|_| File::create_new(path)).or_else(|_| File::open(path))
}
