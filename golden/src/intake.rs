//! Images of signed releases, put into the dump folder.
//!
//! In: three files in the agent's own folder: a signed release, the archive and the manifest that it names. Out: the archive
//! and its manifest in root's folder, as if they had been built there; or a refusal with a code, and nothing. Root's
//! release keys decide: the agent can choose neither bytes, nor a name, nor a place. Deliberately absent: the approval to
//! make guests of it, which an operator signs; a network; any change to a file that is there already.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use held_files::held_folder::{HeldError, HeldFolder};
use holdfast_protocol::golden::{GoldenManifest, GoldenReceipt, MANIFEST_BYTES_MAX};
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::release::{
    ReleaseError, ReleaseFile, ReleaseFileKind, SIGNED_RELEASE_BYTES_MAX, SignedRelease, VersionNumber,
};
use holdfast_trust::release::ReleaseRefused;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::build::{digest_of, manifest_name};
use super::policy::{self, PolicyError};
use super::publish::{self, OnConflict};

/// The files in the agent's folder.
pub const RELEASE: &str = "release.json";
pub const ARCHIVE: &str = "archive";
pub const MANIFEST: &str = "manifest.json";

/// What a killed run left begins so.
const UNFINISHED: &str = ".golden-received-";

/// What is looked at, and where it goes.
pub struct Intake<'a> {
    /// Root's folder of settings, with the release keys.
    pub settings: &'a Path,
    /// The agent's folder of fetched images.
    pub fetched: &'a Path,
    /// Root's dump folder.
    pub out: &'a Path,
    /// How many bytes stay free on its disk, which is often the root disk of the host.
    pub reserve_bytes: u64,
    pub now_s: u64,
}

/// An image that is in the dump folder.
#[derive(Clone, Debug)]
pub struct Published {
    pub how: PublishedHow,
    pub manifest: GoldenManifest,
    pub release: VersionNumber,
}

/// Whether a run changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedHow {
    Published,
    /// The same bytes were there under the same version.
    Already,
}

/// Why nothing was published. The dump folder has no file that it did not have before.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the agent's folder of fetched images is not read")]
    Held(#[from] HeldError),
    #[error("the agent offers no image: {0} is missing in its folder")]
    Nothing(&'static str),
    #[error("{0} in the agent's folder cannot be read")]
    Read(&'static str, #[source] std::io::Error),
    #[error(transparent)]
    Form(#[from] ReleaseError),
    #[error(transparent)]
    Release(#[from] ReleaseRefused),
    #[error(
        "release {0} names no image with its manifest, or several: one file of kind golden, one of golden_manifest"
    )]
    NoImage(VersionNumber),
    #[error("the manifest of the image is not the one that the release names")]
    OtherManifest,
    #[error("the manifest of the image is refused")]
    ManifestForm(#[source] JsonError),
    #[error("the manifest is of another archive than the release: {0} differs")]
    Disagree(&'static str),
    #[error("{} is not a folder of root's alone, so nothing is put there", path.display())]
    Out {
        path: PathBuf,
        #[source]
        source: HeldError,
    },
    #[error("another image is being put into {} just now", .0.display())]
    Busy(PathBuf),
    #[error("{} has {free} bytes free; the image needs {needed}, and {reserve} stay free: free room there, or name another folder as golden_dump", path.display())]
    Full { path: PathBuf, free: u64, needed: u64, reserve: u64 },
    #[error("{} is there already with other bytes and stays as it is: release the image under another version, or prune that one", .0.display())]
    Taken(PathBuf),
    #[error("the fetched archive has {found} bytes, and the release says {wanted}")]
    Size { found: u64, wanted: u64 },
    #[error("the fetched archive has SHA-256 {found}, and the release says {wanted}")]
    Digest { found: String, wanted: String },
    #[error("{} cannot be written: look at its disk", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: anyhow::Error,
    },
}

impl IntakeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Policy(PolicyError::NoKeys(_)) => "NO_RELEASE_KEYS",
            Self::Policy(_) => "POLICY",
            Self::Held(_) | Self::Read(..) => "UNREADABLE",
            Self::Nothing(_) => "NOTHING",
            Self::Form(error) => error.code().as_str(),
            Self::Release(ReleaseRefused::Expired(_)) => "EXPIRED",
            Self::Release(error) => error.code().as_str(),
            Self::NoImage(_) => "NO_IMAGE",
            Self::OtherManifest | Self::ManifestForm(_) | Self::Disagree(_) => "MANIFEST",
            Self::Out { .. } => "FOLDER",
            Self::Busy(_) => "BUSY",
            Self::Full { .. } => "FULL",
            Self::Taken(_) => "VERSION_TAKEN",
            Self::Size { .. } => "TRUNCATED",
            Self::Digest { .. } => "DIGEST",
            Self::Write { .. } => "DISK",
        }
    }
}

impl Intake<'_> {
    /// Checks what the agent offers, and puts it into the dump folder.
    ///
    /// # Errors
    /// [`IntakeError`].
    pub fn run(&self) -> Result<Published, IntakeError> {
        let folder = HeldFolder::open(self.fetched)?;
        let release = bytes(open(&folder, RELEASE)?, RELEASE, SIGNED_RELEASE_BYTES_MAX)?;
        let keys = policy::release_keys(self.settings)?;
        let now = i64::try_from(self.now_s).ok().and_then(|now| Timestamp::from_second(now).ok());
        let accepted = keys.accept(&SignedRelease::parse(&release)?, now.unwrap_or(Timestamp::MAX))?;
        let named = accepted.manifest();
        let files = (named.only(ReleaseFileKind::Golden), named.only(ReleaseFileKind::GoldenManifest));
        let (Some(archive), Some(about)) = files else { return Err(IntakeError::NoImage(named.version)) };
        let text = bytes(open(&folder, MANIFEST)?, MANIFEST, MANIFEST_BYTES_MAX)?;
        let mut manifest = manifest_of(&text, about, archive)?;
        manifest.received = Some(GoldenReceipt { release: named.version, at_s: self.now_s });

        HeldFolder::roots_alone(self.out)
            .map_err(|source| IntakeError::Out { path: self.out.to_owned(), source })?;
        let _lock = self.lock()?;
        let how = self.put(&manifest, (&folder, archive))?;
        Ok(Published { how, manifest, release: named.version })
    }

    fn put(
        &self,
        manifest: &GoldenManifest,
        (folder, archive): (&HeldFolder, &ReleaseFile),
    ) -> Result<PublishedHow, IntakeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: anyhow::Error| IntakeError::Write { path, source }
        };
        self.sweep()?;
        let (name, path) = (manifest_name(&manifest.version), self.out.join(&manifest.archive));
        let manifest_file = self.out.join(&name);
        // A run that was killed between the two files is finished here.
        let has_archive = path.symlink_metadata().is_ok();
        if has_archive && !(is_plain(&path) && digest_of(&path).is_ok_and(|found| found == manifest.sha256)) {
            return Err(IntakeError::Taken(path));
        }
        match (manifest_file.symlink_metadata().is_ok(), has_archive) {
            (true, true) if is_of(&manifest_file, manifest) => return Ok(PublishedHow::Already),
            (true, _) => return Err(IntakeError::Taken(manifest_file)),
            (false, true) => {}
            (false, false) => {
                let copied = self.copy(open(folder, ARCHIVE)?, archive)?;
                publish::publish(copied, &manifest.archive, OnConflict::Keep).map_err(failed(&path))?;
            }
        }
        let text =
            serde_json::to_string_pretty(manifest).map_err(|error| failed(&manifest_file)(error.into()))?;
        publish::text(self.out, &name, &(text + "\n"), OnConflict::Keep).map_err(failed(&manifest_file))?;
        Ok(PublishedHow::Published)
    }

    /// Copies and hashes in one pass: what was hashed is what was written.
    fn copy(&self, from: File, wanted: &ReleaseFile) -> Result<tempfile::NamedTempFile, IntakeError> {
        let size = wanted.size_bytes;
        let free = self.free()?;
        if free < size.saturating_add(self.reserve_bytes) {
            let (path, reserve) = (self.out.to_owned(), self.reserve_bytes);
            return Err(IntakeError::Full { path, free, needed: size, reserve });
        }
        let failed = |error: std::io::Error| self.unwritten(error);
        let to = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(self.out);
        let mut to = to.map_err(failed)?;
        let (mut from, mut hash, mut found) = (from.take(size.saturating_add(1)), Sha256::new(), 0_u64);
        let mut piece = vec![0; 256 * 1024];
        loop {
            let count = from.read(&mut piece).map_err(|error| IntakeError::Read(ARCHIVE, error))?;
            let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            hash.update(bytes);
            to.write_all(bytes).map_err(failed)?;
            found += count as u64;
        }
        if found != size {
            return Err(IntakeError::Size { found, wanted: size });
        }
        let found = hex::encode(hash.finalize());
        if found != wanted.sha256.as_str() {
            return Err(IntakeError::Digest { found, wanted: wanted.sha256.as_str().to_owned() });
        }
        Ok(to)
    }

    fn unwritten(&self, error: std::io::Error) -> IntakeError {
        IntakeError::Write { path: self.out.to_owned(), source: error.into() }
    }

    fn free(&self) -> Result<u64, IntakeError> {
        let about = rustix::fs::statvfs(self.out).map_err(|error| self.unwritten(error.into()))?;
        Ok(about.f_bavail.saturating_mul(about.f_frsize))
    }

    fn lock(&self) -> Result<File, IntakeError> {
        let failed = |error: std::io::Error| self.unwritten(error);
        let folder = File::open(self.out).map_err(failed)?;
        match folder.try_lock() {
            Ok(()) => Ok(folder),
            Err(std::fs::TryLockError::WouldBlock) => Err(IntakeError::Busy(self.out.to_owned())),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Removes what killed runs left. A running one holds the lock.
    fn sweep(&self) -> Result<(), IntakeError> {
        let failed = |error: std::io::Error| self.unwritten(error);
        for entry in std::fs::read_dir(self.out).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn open(folder: &HeldFolder, name: &'static str) -> Result<File, IntakeError> {
    folder.file(OsStr::new(name))?.ok_or(IntakeError::Nothing(name))
}

fn bytes(file: File, name: &'static str, most: usize) -> Result<Vec<u8>, IntakeError> {
    let mut bytes = Vec::new();
    // One more than allowed: the parser refuses it.
    let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| IntakeError::Read(name, error))?;
    Ok(bytes)
}

/// The manifest that the release names, of the archive that it names.
fn manifest_of(
    text: &[u8],
    about: &ReleaseFile,
    archive: &ReleaseFile,
) -> Result<GoldenManifest, IntakeError> {
    if hex::encode(Sha256::digest(text)) != about.sha256.as_str() {
        return Err(IntakeError::OtherManifest);
    }
    let manifest: GoldenManifest =
        json::parse("the manifest", text, MANIFEST_BYTES_MAX).map_err(IntakeError::ManifestForm)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_backup = manifest.archive.starts_with("vzdump-lxc-") && manifest.archive.ends_with(".tar.zst");
    let disagrees = if manifest.sha256 != archive.sha256.as_str() {
        "the digest"
    } else if manifest.size_bytes != archive.size_bytes {
        "the size"
    } else if manifest.archive != archive.name.as_str() || !(is_backup && manifest.archive.bytes().all(plain))
    {
        "the name"
    } else {
        return Ok(manifest);
    };
    Err(IntakeError::Disagree(disagrees))
}

fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_file())
}

/// Whether the manifest that is there is of the same bytes.
fn is_of(path: &Path, manifest: &GoldenManifest) -> bool {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MANIFEST_BYTES_MAX as u64).read_to_end(&mut text));
    let there = read.ok().and_then(|_| serde_json::from_slice::<GoldenManifest>(&text).ok());
    there.is_some_and(|there| {
        (there.sha256, there.archive) == (manifest.sha256.clone(), manifest.archive.clone())
    })
}
