//! Root's settings: the dump folder, and who signs releases.
//!
//! In: `/etc/holdfast/helper.toml`, `/etc/holdfast/agent-gate.toml`, `/etc/holdfast/release-keys`, each of root's alone. Out:
//! the folder that images are put into, and the keys that the gate goes by too. Of the first two only the one value that
//! matters here is read: the programs that own them refuse what is wrong in them.

use std::path::{Path, PathBuf};

use held_files::root_text::{self, RootTextError};
use holdfast_trust::operators::{self, Operators, OperatorsError};
use holdfast_trust::release::{ReleaseKeys, ReleaseKeysError};
use serde::Deserialize;

/// Larger than any of these files.
const BYTES_MAX: u64 = 64 * 1024;
const HELPER: &str = "helper.toml";
const GATE: &str = "agent-gate.toml";
const RELEASE_KEYS: &str = "release-keys";

/// Why root's settings are not used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error(transparent)]
    File(#[from] RootTextError),
    #[error("{} is refused", path.display())]
    Form {
        path: PathBuf,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("{} has no `golden_dump`: `agentd setup --golden-dump STORAGE,FOLDER` writes it", .0.display())]
    NoDump(PathBuf),
    #[error("this host has no release keys ({}), so no image of a release is taken: lay them down, or copy the image by hand", .0.display())]
    NoKeys(PathBuf),
    #[error("the release keys are refused")]
    Operators(#[from] OperatorsError),
    #[error(transparent)]
    Rule(#[from] ReleaseKeysError),
}

#[derive(Deserialize)]
struct HelperFile {
    golden_dump: Option<PathBuf>,
}

#[derive(Deserialize)]
struct GateFile {
    /// The default is the gate's own.
    #[serde(default = "one")]
    signatures: u8,
}

const fn one() -> u8 {
    1
}

/// The folder that root lets images be put into.
///
/// # Errors
/// [`PolicyError`].
pub fn dump_folder(settings: &Path) -> Result<PathBuf, PolicyError> {
    let path = settings.join(HELPER);
    let file: Option<HelperFile> =
        root_text::read(&path, BYTES_MAX)?.map(|text| form(&path, &text)).transpose()?;
    file.and_then(|file| file.golden_dump).ok_or(PolicyError::NoDump(path))
}

/// Who signs releases on this host, and how many of them must.
///
/// # Errors
/// [`PolicyError`].
pub fn release_keys(settings: &Path) -> Result<ReleaseKeys, PolicyError> {
    let path = settings.join(GATE);
    let gate = root_text::read(&path, BYTES_MAX)?.map(|text| form::<GateFile>(&path, &text)).transpose()?;
    let signatures = gate.map_or_else(one, |gate| gate.signatures);
    let path = settings.join(RELEASE_KEYS);
    let keys = root_text::read(&path, operators::BYTES_MAX as u64)?.ok_or(PolicyError::NoKeys(path))?;
    Ok(ReleaseKeys::new(Operators::parse(&keys)?, signatures)?)
}

fn form<T: for<'de> Deserialize<'de>>(path: &Path, text: &str) -> Result<T, PolicyError> {
    toml::from_str(text)
        .map_err(|source| PolicyError::Form { path: path.to_owned(), source: Box::new(source) })
}
