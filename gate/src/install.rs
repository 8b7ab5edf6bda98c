//! Taking a release: checks, copy, and the trial at the next start.
//!
//! In: a signed release and a program, from a person or from the folder in which the agent puts what it downloaded. Out:
//! the state with the build on trial, or a refusal that is kept in the state. The free slot is changed only after the
//! release was accepted, and the state says so before.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use agent_slots::machine::{Event, Refusal, next};
use agent_slots::state::{Build, RefusalCause, RefusedRelease, SlotsState};
use held_files::held_folder::{self, HeldError, HeldFolder};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::chain;
use holdfast_protocol::release::{ReleaseError, ReleaseFileKind, SIGNED_RELEASE_BYTES_MAX, SignedRelease};
use holdfast_trust::release::ReleaseRefused;

use crate::clock;
use crate::failpoint::{self, Point};
use crate::settings::{KeysError, Settings};
use crate::slots_folder::{self, PROGRAM, ProgramError};
use crate::store::{Store, StoreError, Stored};

/// Where the agent puts what it downloaded, within its own folder.
const OFFER_FOLDER: &str = "update";
const OFFER: &str = "release.json";

/// Why a release is not taken. The build that runs is untouched.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{what} is not read")]
    Held {
        what: &'static str,
        #[source]
        source: HeldError,
    },
    #[error("the release cannot be read")]
    Read(#[source] std::io::Error),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Form(#[from] ReleaseError),
    #[error(transparent)]
    Release(#[from] ReleaseRefused),
    #[error("the release names no agent, or several")]
    NoAgent,
    #[error(transparent)]
    Refusal(#[from] Refusal),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("the build could not be copied: is the disk full?")]
    Copy(#[source] HeldError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl InstallError {
    /// The exit code, by sysexits.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Held { .. } | Self::Read(_) => 66,
            Self::Keys(_) => 78,
            Self::Form(_) | Self::Release(ReleaseRefused::Manifest(_)) | Self::NoAgent | Self::Program(_) => {
                65
            }
            Self::Release(_) => 77,
            Self::Refusal(_) => 1,
            Self::Copy(_) | Self::Store(_) => 74,
        }
    }

    /// What would have to change before the same release is accepted.
    const fn cause(&self) -> RefusalCause {
        match self {
            Self::Held { .. }
            | Self::Read(_)
            | Self::Keys(_)
            | Self::Release(
                ReleaseRefused::KeyUnknown { .. }
                | ReleaseRefused::KeyRevoked { .. }
                | ReleaseRefused::Missing { .. },
            )
            | Self::Refusal(Refusal::OnTrial { .. } | Refusal::Returning)
            | Self::Program(_)
            | Self::Copy(_)
            | Self::Store(_) => RefusalCause::Host,
            Self::Form(_) | Self::Release(_) | Self::NoAgent | Self::Refusal(_) => RefusalCause::Release,
        }
    }

    /// The stable code.
    fn code(&self) -> String {
        match self {
            Self::Held { .. } | Self::Read(_) => "UNREADABLE".to_owned(),
            Self::Keys(_) => "NO_RELEASE_KEYS".to_owned(),
            Self::Form(error) => error.code().as_str().to_owned(),
            Self::Release(ReleaseRefused::Expired(_)) => "EXPIRED".to_owned(),
            Self::Release(error) => error.code().as_str().to_owned(),
            Self::NoAgent => "NO_AGENT".to_owned(),
            Self::Refusal(refusal) => refusal.code().to_owned(),
            Self::Program(ProgramError::Size { .. }) => "TRUNCATED".to_owned(),
            Self::Program(_) => "DIGEST".to_owned(),
            Self::Copy(_) | Self::Store(_) => "DISK".to_owned(),
        }
    }
}

/// What a person ordered: the release of these files.
pub fn by_hand(settings: &Settings, release: &Path, program: &Path) -> Result<(), InstallError> {
    let open = |what, path: &Path| {
        held_folder::open_file(path).map_err(|source| InstallError::Held { what, source })
    };
    let (release, program) = (read_release(open("the release", release)?)?, open("the program", program)?);
    let store = Store::lock(&settings.paths.slots)?;
    let state = match store.read()? {
        Stored::State(state) => *state,
        // A damaged state is mended by the next start of the agent.
        Stored::Absent | Stored::Damaged(_) => SlotsState::default(),
    };
    let state = take(settings, &store, &state, &release, program)?;
    let version = state.trial_build().map(|build| build.version.to_string()).unwrap_or_default();
    println!(
        "version {version} is on trial from the next start on: `systemctl restart agentd`, then `/usr/lib/holdfast/holdfast-agent-gate status`"
    );
    Ok(())
}

/// What the agent downloaded, if anything; each offer is looked at once. A refusal is kept in the state.
///
/// # Errors
/// [`StoreError`], when not even a refusal could be stored.
pub fn offered(settings: &Settings, store: &Store, state: SlotsState) -> Result<SlotsState, StoreError> {
    let folder = match HeldFolder::open(&settings.paths.agent_state.join(OFFER_FOLDER)) {
        Ok(folder) => folder,
        Err(error) if error.is_missing() => return Ok(state),
        Err(error) => {
            eprintln!("the agent's folder of updates is not used: {}", chain(&error));
            return Ok(state);
        }
    };
    let (release, program) = match (folder.file(OsStr::new(OFFER)), folder.file(OsStr::new(PROGRAM))) {
        (Ok(None), _) => return Ok(state),
        (Ok(Some(release)), Ok(Some(program))) => (release, program),
        (Ok(Some(_)), Ok(None)) => return Ok(state),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("the agent's update is not read: {}", chain(&error));
            return Ok(state);
        }
    };
    let bytes = read_release(release);
    let manifest = bytes.as_ref().ok().and_then(|bytes| SignedRelease::parse(bytes).ok());
    let manifest = manifest.map(|release| Sha256Text::of(&release.manifest));
    let taken = bytes.and_then(|bytes| take(settings, store, &state, &bytes, program));
    // Looked at once, whatever came of it: the agent offers it again where that makes sense.
    for name in [OFFER, PROGRAM] {
        if let Err(error) = folder.remove(OsStr::new(name)) {
            eprintln!("the agent's update was looked at and cannot be removed: {}", chain(&error));
        }
    }
    match taken {
        Ok(state) => Ok(state),
        Err(error) => {
            let refused = RefusedRelease {
                manifest,
                code: error.code(),
                why: chain(&error).chars().take(500).collect(),
                cause: error.cause(),
                at: Some(clock::wall()),
            };
            eprintln!("the agent's update is refused ({}): {}", refused.code, refused.why);
            // What a failed copy left is in the stored state.
            let state = match store.read()? {
                Stored::State(state) => *state,
                Stored::Absent | Stored::Damaged(_) => state,
            };
            let state = next(&state, Event::Refused(refused)).unwrap_or(state);
            store.write(&state)?;
            Ok(state)
        }
    }
}

fn read_release(file: File) -> Result<Vec<u8>, InstallError> {
    let mut bytes = Vec::new();
    file.take(SIGNED_RELEASE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(InstallError::Read)?;
    Ok(bytes)
}

/// Checks everything, then copies.
fn take(
    settings: &Settings,
    store: &Store,
    state: &SlotsState,
    release: &[u8],
    program: File,
) -> Result<SlotsState, InstallError> {
    let keys = settings.release_keys()?;
    let signed = SignedRelease::parse(release)?;
    // A clock that was set back makes no release young again.
    let now = state.latest_issue.map_or(clock::wall(), |latest| latest.max(clock::wall()));
    let accepted = keys.accept(&signed, now)?;
    let manifest = accepted.manifest();
    let file = manifest.only(ReleaseFileKind::Agent).ok_or(InstallError::NoAgent)?;
    let build = Build {
        version: manifest.version,
        sha256: file.sha256.clone(),
        manifest: Sha256Text::from_digest(accepted.digest()),
    };
    let issued_at = manifest.issued_at.at();
    let slot = state.free_slot();
    let filling = next(state, Event::Take { build, issued_at, packaged: settings.packaged })?;
    let bytes = slots_folder::read_program(program, file)?;
    failpoint::at(settings, Point::Accepted);
    store.write(&filling)?;
    failpoint::at(settings, Point::FillingStored);
    if let Err(error) = slots_folder::fill(store.folder(), slot, &bytes, release) {
        let empty = next(&filling, Event::CopyFailed)?;
        drop(slots_folder::tidy(store.folder(), &empty));
        store.write(&empty)?;
        return Err(InstallError::Copy(error));
    }
    failpoint::at(settings, Point::BuildCopied);
    let trial = next(&filling, Event::Copied)?;
    store.write(&trial)?;
    failpoint::at(settings, Point::TrialStored);
    Ok(trial)
}
