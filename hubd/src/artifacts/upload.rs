//! One upload: bytes that are hashed as they are written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::stored::ArtifactView;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::{ArtifactError, ArtifactFolder, HASHES_MAX, length};

/// The hub's own to read.
const FILE_MODE: u32 = 0o600;

/// How much of a beginning is read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// What an upload begins with.
pub enum Begun {
    /// The file is whole already.
    Complete(ArtifactView),
    Upload(Upload),
}

/// A file that is being written. Dropped, its beginning stays.
pub struct Upload {
    folder: Arc<ArtifactFolder>,
    digest: Sha256Text,
    size: u64,
    file: File,
    received: u64,
    hasher: Sha256,
}

fn disk(verb: &'static str) -> impl Fn(io::Error) -> ArtifactError {
    move |source| ArtifactError::Disk { verb, source }
}

impl ArtifactFolder {
    /// Begins to write a file of `size` bytes at `offset`: where its beginning ends, or before that.
    ///
    /// # Errors
    /// [`ArtifactError`]; nothing was written then.
    pub fn begin(
        self: &Arc<Self>,
        digest: &Sha256Text,
        size: u64,
        offset: u64,
    ) -> Result<Begun, ArtifactError> {
        if !self.lock().writing.insert(digest.clone()) {
            return Err(ArtifactError::Locked);
        }
        let begun = self.open_part(digest, size, offset);
        if !matches!(begun, Ok(Begun::Upload(_))) {
            self.lock().writing.remove(digest);
        }
        begun
    }

    fn open_part(
        self: &Arc<Self>,
        digest: &Sha256Text,
        size: u64,
        offset: u64,
    ) -> Result<Begun, ArtifactError> {
        if length(&self.whole(digest))?.is_some() {
            return Ok(Begun::Complete(self.view(digest, size)?));
        }
        let path = self.part(digest);
        let received = length(&path)?.unwrap_or(0).min(size);
        if offset > received {
            return Err(ArtifactError::Offset { received });
        }
        self.require_room(size - offset)?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(FILE_MODE);
        let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let mut file = options.custom_flags(no_link).open(&path).map_err(disk("opened"))?;
        file.set_len(offset).map_err(disk("shortened"))?;
        let remembered = self.lock().hashed.remove(digest).filter(|(length, _)| *length == offset);
        let hasher = match remembered {
            Some((_, hasher)) => hasher,
            None => hash(&mut file, offset).map_err(disk("read"))?,
        };
        file.seek(SeekFrom::Start(offset)).map_err(disk("written"))?;
        let (folder, digest) = (Arc::clone(self), digest.clone());
        Ok(Begun::Upload(Upload { folder, digest, size, file, received: offset, hasher }))
    }

    fn require_room(&self, needed: u64) -> Result<(), ArtifactError> {
        let found = rustix::fs::statvfs(&self.folder).map_err(|error| disk("measured")(error.into()))?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let reserve = self.limits.disk_reserve_bytes;
        if needed.saturating_add(reserve) > free {
            return Err(ArtifactError::Full { needed, free, reserve });
        }
        Ok(())
    }
}

/// The hash of a file's first bytes.
fn hash(file: &mut File, length: u64) -> io::Result<Sha256> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hasher, mut chunk) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    let mut rest = file.take(length);
    loop {
        match rest.read(&mut chunk)? {
            0 => return Ok(hasher),
            count => hasher.update(chunk.get(..count).unwrap_or_default()),
        }
    }
}

impl Upload {
    /// Writes the next bytes.
    ///
    /// # Errors
    /// [`ArtifactError`]. What was written before stays.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        if bytes.len() as u64 > self.size - self.received {
            return Err(ArtifactError::TooLong { size: self.size });
        }
        if let Err(source) = self.file.write_all(bytes) {
            // Some of them may be there: the length is what it was, or what hashing the file again finds.
            let _ = self.file.set_len(self.received);
            let _ = self.file.seek(SeekFrom::Start(self.received));
            return Err(ArtifactError::Disk { verb: "written", source });
        }
        self.hasher.update(bytes);
        self.received += bytes.len() as u64;
        Ok(())
    }

    /// Ends the request. All that came is on the disk; a file that is whole has its name, or is gone where it is wrong.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn end(self) -> Result<ArtifactView, ArtifactError> {
        self.file.sync_all().map_err(disk("written"))?;
        let folder = Arc::clone(&self.folder);
        let (digest, size) = (self.digest.clone(), self.size);
        let part = folder.part(&digest);
        if self.received == size {
            let found = Sha256Text::from_digest(self.hasher.clone().finalize().into());
            if found != digest {
                fs::remove_file(&part).map_err(disk("removed"))?;
                return Err(ArtifactError::Wrong(digest));
            }
            fs::rename(&part, folder.whole(&digest)).map_err(disk("put in place"))?;
        }
        // The name of a beginning, too: the answer says how much is here.
        let synced = File::open(&folder.folder).and_then(|folder| folder.sync_all());
        synced.map_err(disk("put in place"))?;
        folder.view(&digest, size)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut state = self.folder.lock();
        state.writing.remove(&self.digest);
        let is_unfinished = self.received > 0 && self.received < self.size;
        if is_unfinished && state.hashed.len() < HASHES_MAX {
            state.hashed.insert(self.digest.clone(), (self.received, self.hasher.clone()));
        }
    }
}
