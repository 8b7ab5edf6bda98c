//! The wire guard: requests that our agent must never send.
//!
//! A client whose types cannot express `force` is one safeguard. This is a second one, which shares nothing with the first. In: each
//! request as it came off the wire, before faults, login or any check. Out: an offence is logged as an error, recorded, and not carried
//! out. Opt-in, because the simulator itself answers such calls as the real node does: recordings contain them. Deliberately absent:
//! rights; those are Proxmox's own and have their own place.
mod rules;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::http::params;
use crate::wire::{JSON, Request, Response};

/// Whether requests are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Watch {
    /// They are not: the simulator behaves only as Proxmox.
    #[default]
    Off,
    On,
}

/// One thing that was sent and must never be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offence {
    /// `POST`, …
    pub method: String,
    /// The path, without its query: values may be secrets.
    pub path: String,
    pub parameter: String,
    /// Why it must not be sent.
    pub why: String,
}

impl std::fmt::Display for Offence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}: {}", self.method, self.path, self.parameter, self.why)
    }
}

/// The guard of one instance.
#[derive(Debug)]
pub struct Guard {
    watch: Watch,
    book: PathBuf,
    found: Mutex<Vec<Offence>>,
}

impl Guard {
    /// A guard that writes its book into the state folder. An existing book is continued, so that a restart loses nothing.
    ///
    /// # Errors
    /// When the book cannot be read or begun.
    pub fn open(watch: Watch, run: &Path) -> std::io::Result<Self> {
        let book = run.join("guard.jsonl");
        let found = match watch {
            Watch::Off => Vec::new(),
            Watch::On => {
                std::fs::create_dir_all(run)?;
                std::fs::OpenOptions::new().create(true).append(true).open(&book)?;
                read(&book)?
            }
        };
        Ok(Self { watch, book, found: Mutex::new(found) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Offence>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was caught; a test asserts that it is empty.
    #[must_use]
    pub fn offences(&self) -> Vec<Offence> {
        self.lock().clone()
    }

    /// Judges one request. An answer means that the request is an offence and that nothing of it was done.
    pub fn judge(&self, request: &Request) -> Option<Response> {
        if self.watch == Watch::Off {
            return None;
        }
        // A body that cannot be read is refused by the daemon itself, and does nothing.
        let (segments, params) = params::read(request).ok()?;
        let path = request.target.split('?').next().unwrap_or_default();
        let found: Vec<Offence> = rules::judge(&request.method, &segments, &params)
            .into_iter()
            .map(|(parameter, why)| Offence {
                method: request.method.clone(),
                path: path.to_owned(),
                parameter,
                why,
            })
            .collect();
        let text = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        if found.is_empty() {
            return None;
        }
        eprintln!("pve-sim: wire guard: {text}");
        for offence in &found {
            tracing::error!(%offence, "wire guard");
            if let Err(error) = self.write_down(offence) {
                tracing::error!(%error, "the guard's book cannot be written");
            }
        }
        self.lock().extend(found);
        let body = serde_json::json!({ "data": null, "message": format!("wire guard: {text}\n") });
        Some(Response::text(500, "wire guard: this must never be sent", Some(JSON), body.to_string()))
    }

    fn write_down(&self, offence: &Offence) -> std::io::Result<()> {
        let mut line = serde_json::to_string(offence).map_err(std::io::Error::from)?;
        line.push('\n');
        std::fs::OpenOptions::new().create(true).append(true).open(&self.book)?.write_all(line.as_bytes())
    }
}

/// The offences in a state folder, of an instance that runs or ran with its guard on.
///
/// # Errors
/// When there is no book: then the guard was off, and reporting "none" would be wrong.
pub fn read_book(run: &Path) -> std::io::Result<Vec<Offence>> {
    read(&run.join("guard.jsonl"))
}

fn read(book: &Path) -> std::io::Result<Vec<Offence>> {
    std::fs::read_to_string(book)?
        .lines()
        .map(|line| serde_json::from_str(line).map_err(std::io::Error::from))
        .collect()
}
