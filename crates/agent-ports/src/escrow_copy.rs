//! Copies of wrapped keys on a backup disk.
//!
//! Input: where a disk is mounted, whose marker must be on it, and the files that should be on it. Output: the state in
//! which each was found, and whether it was repaired. A file is written next to its final path and renamed over it.
//! Only the agent writes it; anyone who holds the disk may read it. On an unmounted target, or on a disk other than the
//! approved one, nothing is read or written. The file is the one that the hub gets and the sheet carries, so
//! `agentd recover --from` takes it as it is.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use holdfast_protocol::escrow::by_hand;
use holdfast_recovery::escrow::{CodeNumber, EscrowFile, FILE_BYTES_MAX};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::disk_marker::{self, Expected};

const NEW: &str = "escrow.new";

/// Its owner writes, everybody reads.
const FILE_MODE: u32 = 0o644;

/// How a copy was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundCopy {
    /// As it should be.
    Same,
    Missing,
    /// Something else in its place.
    Other,
    /// It cannot be read: a sentence.
    Unread(String),
}

/// The name of a code's file on a disk.
#[must_use]
pub fn name(code: CodeNumber) -> String {
    by_hand::file_name(code)
}

/// The agent's folder on a disk that is the one it should be.
pub struct CopyFolder {
    folder: OwnedFd,
}

impl CopyFolder {
    /// Opens it. Blocks, and may hang with the disk.
    ///
    /// # Errors
    /// A sentence: nothing is mounted there, or another disk.
    pub fn open(place: &Path, expected: &Expected) -> Result<Self, String> {
        disk_marker::folder(place, expected).map(|folder| Self { folder })
    }

    /// Checks one copy.
    #[must_use]
    pub fn look(&self, code: CodeNumber, wanted: &EscrowFile) -> FoundCopy {
        let file = match disk_marker::down(&self.folder, &name(code), OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT) => return FoundCopy::Missing,
            Err(Errno::LOOP) => return FoundCopy::Other,
            Err(error) => return FoundCopy::Unread(format!("it cannot be opened: {error}")),
        };
        match rustix::fs::fstat(&file) {
            Ok(seen) if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile => {
                return FoundCopy::Other;
            }
            // Anyone who holds the disk may read it, as any user: the file alone opens nothing, and the sheet points to
            // it.
            Ok(seen) if seen.st_mode & 0o777 != FILE_MODE => return FoundCopy::Other,
            Ok(_) => {}
            Err(error) => return FoundCopy::Unread(format!("it cannot be looked at: {error}")),
        }
        let mut bytes = Vec::new();
        let mut file = std::fs::File::from(file).take(FILE_BYTES_MAX as u64 + 1);
        match file.read_to_end(&mut bytes) {
            Ok(_) if bytes == wanted.to_text().as_bytes() => FoundCopy::Same,
            Ok(_) => FoundCopy::Other,
            Err(error) => FoundCopy::Unread(format!("it cannot be read: {error}")),
        }
    }

    /// Writes a copy, whole or not at all; it is on the disk when this returns.
    ///
    /// # Errors
    /// The disk's.
    pub fn put(&self, code: CodeNumber, file: &EscrowFile) -> Result<(), std::io::Error> {
        let new = disk_marker::fresh(&self.folder, NEW, OFlags::empty())?;
        rustix::fs::fchmod(&new, rustix::fs::Mode::from_raw_mode(FILE_MODE))?;
        let mut new = std::fs::File::from(new);
        new.write_all(file.to_text().as_bytes())?;
        new.sync_all()?;
        rustix::fs::renameat(&self.folder, NEW, &self.folder, name(code))?;
        Ok(rustix::fs::fsync(&self.folder)?)
    }

    /// Takes a copy away. None there is as good.
    ///
    /// # Errors
    /// The disk's.
    pub fn take_away(&self, code: CodeNumber) -> Result<(), std::io::Error> {
        match rustix::fs::unlinkat(&self.folder, name(code), AtFlags::empty()) {
            Ok(()) => Ok(rustix::fs::fsync(&self.folder)?),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use holdfast_protocol::job::HostEpoch;
    use holdfast_recovery::RecoveryCode;
    use holdfast_recovery::checksum::DRAWN;
    use holdfast_recovery::escrow::{Context, Escrow};
    use holdfast_recovery::word::Word;
    use holdfast_seal::backup_key::BackupKey;
    use rustix::fs::{CWD, Mode};

    use super::*;

    const KEY: &[u8] = include_bytes!("../../../seal/tests/backup-key.json");

    fn wrapped() -> EscrowFile {
        let context = Context {
            host: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            host_name: "box1".parse().unwrap(),
            customer: "acme".parse().unwrap(),
            epoch: HostEpoch::new(3),
            code: CodeNumber::FIRST,
            made_at: "2026-11-22T13:00:00Z".to_owned().try_into().unwrap(),
        };
        let code = RecoveryCode::of(&[Word::default(); DRAWN]).unwrap();
        Escrow::new(context, BackupKey::parse(KEY).unwrap()).wrap(&code).unwrap()
    }

    fn listing(place: &Path) -> CopyFolder {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        CopyFolder { folder: rustix::fs::openat(CWD, place, flags, Mode::empty()).unwrap() }
    }

    #[test]
    fn what_is_lost_cut_changed_or_closed_to_its_holder_is_reported_and_put_right() {
        let place = tempfile::tempdir().unwrap();
        let (listing, code) = (listing(place.path()), CodeNumber::FIRST);
        let file = wrapped();
        let path = place.path().join(name(code));
        assert_eq!(listing.look(code, &file), FoundCopy::Missing);
        std::fs::write(place.path().join(NEW), "of an attempt that died").unwrap();
        listing.put(code, &file).unwrap();
        assert_eq!(listing.look(code, &file), FoundCopy::Same);
        let good = std::fs::read(&path).unwrap();
        assert_eq!(EscrowFile::parse(&good).unwrap(), file);
        let mut changed = good.clone();
        changed[100] ^= 1;
        for bad in [b"".as_slice(), &good[..good.len() - 1], &changed, &[good.as_slice(), b"\n"].concat()] {
            std::fs::write(&path, bad).unwrap();
            assert_eq!(listing.look(code, &file), FoundCopy::Other);
            listing.put(code, &file).unwrap();
            assert_eq!(listing.look(code, &file), FoundCopy::Same);
        }
        for mode in [0o600, 0o666] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(listing.look(code, &file), FoundCopy::Other, "{mode:o}");
        }
        std::fs::rename(&path, place.path().join("aside")).unwrap();
        std::os::unix::fs::symlink("aside", &path).unwrap();
        assert_eq!(listing.look(code, &file), FoundCopy::Other, "through no link");
        listing.put(code, &file).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        listing.take_away(code).unwrap();
        listing.take_away(code).unwrap();
        assert_eq!(listing.look(code, &file), FoundCopy::Missing);
        std::fs::create_dir(&path).unwrap();
        assert_eq!(listing.look(code, &file), FoundCopy::Other);
        assert!(listing.put(code, &file).is_err(), "a folder is not written over");
    }
}
