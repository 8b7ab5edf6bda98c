//! The slots as folders: a program and its signed release in each.
//!
//! In: root's folder, held open. Out: which slots hold what was signed; a build copied whole. A program that another user
//! gave is read once into memory: what was hashed is what is written.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use agent_slots::state::{Build, SlotsState};
use agent_slots::{Slot, Sound, start::Soundness};
use held_files::held_folder::{Given, HeldError, HeldFolder};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{
    ReleaseFile, ReleaseFileKind, ReleaseManifest, SIGNED_RELEASE_BYTES_MAX, SignedRelease,
};
use holdfast_trust::release::ReleaseKeys;
use sha2::{Digest, Sha256};

/// An agent has a tenth of that.
pub const PROGRAM_BYTES_MAX: u64 = 128 * 1024 * 1024;

pub const PROGRAM: &str = "agentd";
const RELEASE: &str = "release.json";

/// Why a program is not the one that a release names.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("the program cannot be read")]
    Read(#[source] std::io::Error),
    #[error("the program has {found} bytes, and the release says {wanted}: it is truncated, or another one")]
    Size { found: u64, wanted: u64 },
    #[error("the program's SHA-256 is {found}, and the release says {wanted}", found = .found.as_str(), wanted = .wanted.as_str())]
    Digest { found: Sha256Text, wanted: Sha256Text },
    #[error("the release says that the program has {0} bytes; at most {PROGRAM_BYTES_MAX} are accepted")]
    TooLarge(u64),
}

/// Reads a program and holds it to its release.
///
/// # Errors
/// [`ProgramError`].
pub fn read_program(file: File, wanted: &ReleaseFile) -> Result<Vec<u8>, ProgramError> {
    if wanted.size_bytes > PROGRAM_BYTES_MAX {
        return Err(ProgramError::TooLarge(wanted.size_bytes));
    }
    let mut bytes = Vec::new();
    file.take(wanted.size_bytes + 1).read_to_end(&mut bytes).map_err(ProgramError::Read)?;
    if bytes.len() as u64 != wanted.size_bytes {
        return Err(ProgramError::Size { found: bytes.len() as u64, wanted: wanted.size_bytes });
    }
    let found = Sha256Text::from_digest(Sha256::digest(&bytes).into());
    if found != wanted.sha256 {
        return Err(ProgramError::Digest { found, wanted: wanted.sha256.clone() });
    }
    Ok(bytes)
}

/// Writes a build into a slot. Both files are on the disk when this returns.
///
/// # Errors
/// [`HeldError`]; the slot then holds no whole build, or the one before.
pub fn fill(folder: &HeldFolder, slot: Slot, program: &[u8], release: &[u8]) -> Result<(), HeldError> {
    let slot = folder.make(OsStr::new(slot.as_str()), 0o755)?;
    // The disk needs room for one build, not for two.
    slot.remove(OsStr::new(PROGRAM))?;
    slot.write(OsStr::new(RELEASE), release, 0o644, Given::Kept)?;
    slot.write(OsStr::new(PROGRAM), program, 0o755, Given::Kept)
}

/// Removes what lies in the slots that the state has no build for.
///
/// # Errors
/// [`HeldError`].
pub fn tidy(folder: &HeldFolder, state: &SlotsState) -> Result<(), HeldError> {
    for slot in Slot::ALL.into_iter().filter(|slot| state.content(*slot).build().is_none()) {
        if folder.has(OsStr::new(slot.as_str()))? {
            let slot = folder.down(OsStr::new(slot.as_str()))?;
            let left = Path::new(PROGRAM).with_extension("new");
            for name in [OsStr::new(PROGRAM), left.as_os_str(), OsStr::new(RELEASE)] {
                slot.remove(name)?;
            }
        }
    }
    Ok(())
}

/// Which slots hold the builds of the state, by digest and by signature; and why one does not.
pub fn judge(
    folder: &HeldFolder,
    state: &SlotsState,
    keys: Option<&ReleaseKeys>,
) -> (Sound, Vec<(Slot, String)>) {
    let (mut sound, mut faults) = (Sound::default(), Vec::new());
    for slot in Slot::ALL {
        let Some(build) = state.content(slot).build() else { continue };
        match judge_slot(folder, slot, keys) {
            Ok(found) if found == *build => sound = sound.with(slot, Soundness::Checked),
            Ok(found) => faults.push((slot, format!("it holds version {}, another build", found.version))),
            Err(why) => faults.push((slot, why)),
        }
    }
    (sound, faults)
}

/// The builds that lie in the slots with good signatures, whatever a state says.
pub fn signed_builds(folder: &HeldFolder, keys: Option<&ReleaseKeys>) -> Vec<(Slot, Build)> {
    let found = Slot::ALL.into_iter().map(|slot| (slot, judge_slot(folder, slot, keys)));
    found.filter_map(|(slot, build)| Some((slot, build.ok()?))).collect()
}

fn judge_slot(folder: &HeldFolder, slot: Slot, keys: Option<&ReleaseKeys>) -> Result<Build, String> {
    let said = |error: &dyn std::error::Error| holdfast_protocol::json::chain(error);
    let keys = keys.ok_or("no release keys can be read")?;
    let slot = folder.down(OsStr::new(slot.as_str())).map_err(|error| said(&error))?;
    let file = slot.file(OsStr::new(RELEASE)).map_err(|error| said(&error))?.ok_or("it has no release")?;
    let mut bytes = Vec::new();
    file.take(SIGNED_RELEASE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("its release cannot be read: {error}"))?;
    let release = SignedRelease::parse(&bytes).map_err(|error| said(&error))?;
    // A key that was retired later could sign at that time. The time is among the signed bytes.
    let issued_at = ReleaseManifest::parse(&release.manifest).map_err(|error| said(&error))?.issued_at.at();
    let accepted = keys.verify(&release, issued_at).map_err(|error| said(&error))?;
    let named = accepted.manifest().only(ReleaseFileKind::Agent).ok_or("its release names no agent")?;
    let program = slot.file(OsStr::new(PROGRAM)).map_err(|error| said(&error))?.ok_or("it has no program")?;
    read_program(program, named).map_err(|error| said(&error))?;
    Ok(Build {
        version: accepted.manifest().version,
        sha256: named.sha256.clone(),
        manifest: Sha256Text::from_digest(accepted.digest()),
    })
}
