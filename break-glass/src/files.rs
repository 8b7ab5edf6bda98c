//! Every file of break-glass, read and written without following links.
//!
//! In: paths that root's package lays down, beneath `/` or, in a build for tests, beneath a folder. Out: bounded bytes,
//! or a sentence that says which file. What root laid down must be root's alone; the order is the agent's, and is read
//! from a folder of the agent's through no link. Deliberately absent: decisions.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError, Readers};
use held_files::held_folder::{HeldError, HeldFolder};
use held_files::root_text::{self, RootTextError};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;
use holdfast_protocol::json::JsonError;
use holdfast_trust::{Operators, Policy, Roster};
use jiff::Timestamp;
use rustix::fs::FlockOperation;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::decide::Trust;
use crate::log::{self, Action, LogError};
use crate::moment::{BootId, Moment};
use crate::processes::ProcessId;
use crate::settings::{self, Settings};
use crate::state::{self, State};

const SETTINGS: &str = "etc/holdfast/break-glass.toml";
const ORDER: &str = "var/lib/holdfast/break-glass/order.json";
const LINE: &str = "etc/ssh/holdfast-break-glass/root";
const FOLDER: &str = "var/lib/holdfast-break-glass";

/// A noted session is short.
const NOTED_BYTES_MAX: u64 = 64 * 1024;

/// Noted sessions, those that ended without a word among them.
const NOTED_MAX: usize = 256;

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
    boot: Option<BootId>,
}

/// What a session noted of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotedSession {
    pub job: JobId,
    pub boot: BootId,
    pub processes: Vec<ProcessId>,
    /// The group of its login, where it has one of its own.
    pub group: Option<String>,
}

/// Exclusive use of the state, until it is dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "it is held open")] File);

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Held(#[from] HeldError),
    #[error(transparent)]
    RootText(#[from] RootTextError),
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
    #[error("cannot {verb} {}", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// What was written before.
    #[error("{} is damaged: nothing is opened; look at it, then move it away", path.display())]
    State {
        path: PathBuf,
        #[source]
        source: JsonError,
    },
    #[error("{} is refused: {text}", path.display())]
    Refused { path: PathBuf, text: String },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the clock of this machine is out of range: {0}")]
    Clock(&'static str),
    #[error("it cannot be written as JSON")]
    Json(#[source] serde_json::Error),
}

impl Files {
    /// Those of this host.
    #[must_use]
    pub fn of_the_host() -> Self {
        Self { root: "/".into(), boot: None }
    }

    /// The same beneath a folder, with a clock in a file.
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn beneath(root: PathBuf) -> Self {
        Self { root, boot: None }
    }

    /// With the boot that systemd names: in a service that protects the kernel's files, a container would see that of its
    /// host.
    #[must_use]
    pub fn in_boot(self, boot: Option<BootId>) -> Self {
        Self { boot, ..self }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn within(&self, name: &str) -> PathBuf {
        self.at(FOLDER).join(name)
    }

    /// The settings; none where root laid none down.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn settings(&self) -> Result<Option<Settings>, FilesError> {
        let path = self.at(SETTINGS);
        let Some(text) = root_text::read(&path, settings::BYTES_MAX)? else { return Ok(None) };
        Settings::parse(&text).map(Some).map_err(|error| refused(&path, &error))
    }

    /// Who may order and consent.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn trust(&self, settings: &Settings) -> Result<Trust, FilesError> {
        const BYTES_MAX: u64 = 64 * 1024;
        let path_of = |path: &Path| self.at(&path.to_string_lossy());
        let operators = |path: &Path| {
            let path = path_of(path);
            let Some(text) = root_text::read(&path, BYTES_MAX)? else { return Ok(None) };
            Operators::parse(&text).map(Some).map_err(|error| refused(&path, &error))
        };
        let signers = operators(&settings.operators)?
            .ok_or_else(|| FilesError::Missing(path_of(&settings.operators)))?;
        let path = path_of(&settings.policy);
        let policy = match root_text::read(&path, BYTES_MAX)? {
            Some(text) => Policy::parse(&text, &signers).map_err(|error| refused(&path, &error))?,
            None => Policy::first(),
        };
        let consent_keys = operators(&settings.consent_keys)?;
        Ok(Trust { roster: Roster { operators: signers, policy }, consent_keys })
    }

    /// The order that the agent put down; none where there is none.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn order(&self) -> Result<Option<Vec<u8>>, FilesError> {
        let bytes = atomic_file::read(&self.at(ORDER), SIGNED_BYTES_MAX as u64)?;
        Ok(bytes.map(|bytes| bytes.to_vec()))
    }

    /// What was remembered, or the state of a host without any order.
    ///
    /// # Errors
    /// [`FilesError`]; nothing may be opened then.
    pub fn state(&self, now: &Moment) -> Result<State, FilesError> {
        let path = self.within("state.json");
        match atomic_file::read(&path, state::BYTES_MAX as u64)? {
            Some(bytes) => State::parse(&bytes).map_err(|source| FilesError::State { path, source }),
            None => Ok(State::new(UtcSecond::new(now.wall).map_err(FilesError::Clock)?)),
        }
    }

    /// Remembers.
    ///
    /// # Errors
    /// [`FilesError`]; the earlier state is in force.
    pub fn keep_state(&self, state: &State) -> Result<(), FilesError> {
        let bytes = state.to_json().map_err(FilesError::Json)?;
        Ok(atomic_file::write(&self.within("state.json"), &bytes, Readers::Owner)?)
    }

    /// Writes what the agent reads.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn keep_status(&self, state: &State) -> Result<(), FilesError> {
        let bytes = serde_json::to_vec(&state.status()).map_err(FilesError::Json)?;
        Ok(atomic_file::write(&self.within("status.json"), &bytes, Readers::All)?)
    }

    /// The line that lets a person in.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn put_line(&self, line: &str) -> Result<(), FilesError> {
        Ok(atomic_file::write(&self.at(LINE), line.as_bytes(), Readers::Owner)?)
    }

    /// Takes it away.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn remove_line(&self) -> Result<(), FilesError> {
        Ok(atomic_file::remove(&self.at(LINE))?)
    }

    /// While this file is there, systemd keeps the guard running.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn put_mark(&self) -> Result<(), FilesError> {
        Ok(atomic_file::write(&self.within("open"), b"", Readers::Owner)?)
    }

    /// The guard may go.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn remove_mark(&self) -> Result<(), FilesError> {
        Ok(atomic_file::remove(&self.within("open"))?)
    }

    /// The log as it is.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn log(&self) -> Result<Vec<u8>, FilesError> {
        let bytes = atomic_file::read(&self.within("log.jsonl"), log::BYTES_MAX as u64)?;
        Ok(bytes.map(|bytes| bytes.to_vec()).unwrap_or_default())
    }

    /// Appends one line, on the disk before this returns.
    ///
    /// # Errors
    /// [`FilesError`]; nothing may be opened then.
    pub fn append(
        &self,
        at: Timestamp,
        what: (Action, Option<JobId>),
        detail: &str,
    ) -> Result<(), FilesError> {
        let (path, before) = (self.within("log.jsonl"), self.log()?);
        let next = log::append(&before, at, what, detail)?;
        let failed = |source| FilesError::Io { verb: "write", path: path.clone(), source };
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default())
            .open(&path)
            .map_err(failed)?;
        // Only after a crash: the file may be one that takes nothing but new lines.
        if next.whole < before.len() {
            file.set_len(next.whole as u64).map_err(failed)?;
        }
        file.write_all(next.line.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }

    /// Makes the folders, and waits until no one else changes the state.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn lock(&self) -> Result<Lock, FilesError> {
        let folder = HeldFolder::make_all(&self.at(FOLDER))?;
        folder.make(OsStr::new("sessions"), 0o700)?;
        folder.make(OsStr::new("recordings"), 0o700)?;
        let path = self.within("lock");
        let failed = |source| FilesError::Io { verb: "lock", path: path.clone(), source };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(failed)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        Ok(Lock(file))
    }

    /// Where recordings are.
    #[must_use]
    pub fn recordings(&self) -> PathBuf {
        self.within("recordings")
    }

    fn noted_path(&self, id: ProcessId) -> PathBuf {
        self.within("sessions").join(format!("{}-{}.json", id.pid, id.start))
    }

    /// Notes a session, by its first process.
    ///
    /// # Errors
    /// [`FilesError`]; the session may not begin then.
    pub fn note_session(&self, first: ProcessId, noted: &NotedSession) -> Result<(), FilesError> {
        let bytes = serde_json::to_vec(noted).map_err(FilesError::Json)?;
        Ok(atomic_file::write(&self.noted_path(first), &bytes, Readers::Owner)?)
    }

    /// Forgets it.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn forget_session(&self, first: ProcessId) -> Result<(), FilesError> {
        Ok(atomic_file::remove(&self.noted_path(first))?)
    }

    /// The noted sessions, each with its file. One that cannot be read has none of its processes known, and is left out.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn noted_sessions(&self) -> Result<Vec<(PathBuf, NotedSession)>, FilesError> {
        let path = self.within("sessions");
        let failed = |source| FilesError::Io { verb: "list", path: path.clone(), source };
        let mut noted = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(failed)?.take(NOTED_MAX) {
            let path = entry.map_err(failed)?.path();
            let bytes = atomic_file::read(&path, NOTED_BYTES_MAX)?;
            noted.extend(bytes.and_then(|bytes| Some((path, serde_json::from_slice(&bytes).ok()?))));
        }
        Ok(noted)
    }

    /// Removes a file that one of these functions named.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn remove(&self, path: &Path) -> Result<(), FilesError> {
        Ok(atomic_file::remove(path)?)
    }

    /// Both clocks.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn now(&self) -> Result<Moment, FilesError> {
        #[cfg(debug_assertions)]
        if let Some(bytes) = atomic_file::read(&self.within("test-clock.json"), 1_024)? {
            return serde_json::from_slice(&bytes).map_err(FilesError::Json);
        }
        let boot = match &self.boot {
            Some(boot) => boot.clone(),
            None => kernels_boot()?,
        };
        #[expect(clippy::disallowed_methods, reason = "the clock of a program without a clock port")]
        let wall = Timestamp::now();
        Ok(Moment { wall, boot, up_s: clock_gettime(ClockId::Boottime).tv_sec })
    }
}

fn kernels_boot() -> Result<BootId, FilesError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|source| FilesError::Io { verb: "read", path: path.to_owned(), source })?;
    BootId::try_from(text.trim().to_owned()).map_err(FilesError::Clock)
}

fn refused(path: &Path, error: &dyn std::error::Error) -> FilesError {
    FilesError::Refused { path: path.to_owned(), text: holdfast_protocol::json::chain(error) }
}
