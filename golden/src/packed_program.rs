//! The guest agent program, packed with zstd or not.
//!
//! A package carries it packed: only an image build reads it, and it is a third as large.

use std::fs::File;
use std::io::{Read as _, copy};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::NamedTempFile;

/// More than any program has.
const UNPACKED_MAX: u64 = 256 << 20;

/// A program that can be read as it is.
pub enum ReadyProgram {
    AsItIs(PathBuf),
    /// A copy that is removed with this value.
    Unpacked(NamedTempFile),
}

impl ReadyProgram {
    /// Unpacks it into `folder` if its name ends with `.zst`.
    ///
    /// # Errors
    /// When it cannot be read or is not what its name says.
    pub fn of(file: &Path, folder: &Path) -> Result<Self> {
        if file.extension().is_none_or(|extension| extension != "zst") {
            return Ok(Self::AsItIs(file.to_owned()));
        }
        let cannot = || format!("cannot unpack {}", file.display());
        let packed = File::open(file).with_context(cannot)?;
        let unpacked = zstd::Decoder::new(packed).with_context(cannot)?;
        let mut copied = NamedTempFile::new_in(folder).with_context(cannot)?;
        let bytes = copy(&mut unpacked.take(UNPACKED_MAX + 1), &mut copied).with_context(cannot)?;
        ensure!(bytes <= UNPACKED_MAX, "{} unpacks to more than {UNPACKED_MAX} bytes", file.display());
        Ok(Self::Unpacked(copied))
    }

    /// Where it can be read.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::AsItIs(path) => path,
            Self::Unpacked(copy) => copy.path(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_program_is_unpacked_and_any_other_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (folder.path().join("guestd"), folder.path().join("guestd.zst"));
        std::fs::write(&plain, b"program").unwrap();
        std::fs::write(&packed, zstd::encode_all(b"program".as_slice(), 3).unwrap()).unwrap();
        assert_eq!(ReadyProgram::of(&plain, folder.path()).unwrap().path(), plain);
        let ready = ReadyProgram::of(&packed, folder.path()).unwrap();
        assert_eq!(std::fs::read(ready.path()).unwrap(), b"program");
        let path = ready.path().to_owned();
        drop(ready);
        assert!(!path.exists());
        std::fs::write(&packed, b"no zstd").unwrap();
        assert!(ReadyProgram::of(&packed, folder.path()).is_err());
    }
}
