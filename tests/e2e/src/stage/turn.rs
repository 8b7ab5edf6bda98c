//! A lock per network, held by one stage at a time.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};

use super::Runtime;

/// The right to have a stage; given back when dropped.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "held for its lock")] File);

impl Turn {
    /// Waits for the lock.
    pub(super) fn take(runtime: Runtime) -> Result<Self> {
        let network = match runtime {
            Runtime::Process | Runtime::Inert => own_network()?,
            // Booting guests makes namespaces by name, which belong to the whole machine.
            Runtime::Nspawn => String::new(),
        };
        let path = std::env::temp_dir().join(format!("holdfast-stage-{}{network}.lock", runtime.text()));
        let file = open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if file.try_lock().is_err() {
            eprintln!("another stage stands on this machine: waiting for its end");
            file.lock().context("cannot wait for the other stage")?;
        }
        Ok(Self(file))
    }
}

/// The number of this process's network namespace, with a dash before it.
fn own_network() -> Result<String> {
    let link = std::fs::read_link("/proc/self/ns/net").context("which network is this?")?;
    let text = link.to_string_lossy().into_owned();
    Ok(format!("-{}", text.trim_start_matches("net:[").trim_end_matches(']')))
}

/// The first process makes the file. Later ones, of other users too, need only read access to lock it.
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path).or_else(|_| File::create_new(path)).or_else(|_| File::open(path))
}
