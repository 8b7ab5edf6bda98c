//! An archive as a counted stream of tar.
//!
//! The tar reader turns every problem into one kind of error. The last event of the layer below distinguishes a cut
//! archive from a damaged one.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::compression::Compression;
use super::read_error::ReadArchiveError;

/// The maximum that is discarded after the last entry: tar pads to 10 KiB, and no real archive pads a gigabyte.
const TRAILER_BYTES_MAX: u64 = 1 << 30;

/// The last event that the layer below tar saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastSeen {
    Data,
    CleanEnd,
    EarlyEnd,
    BadData,
    DeviceFault,
}

/// An archive being read.
pub(super) struct ArchiveStream {
    tar: tar::Archive<CountedReader>,
    state: Rc<StreamState>,
    path: PathBuf,
}

/// What comes out of the decompressor, counted.
pub(super) struct CountedReader {
    inner: Box<dyn Read>,
    state: Rc<StreamState>,
}

struct StreamState {
    bytes: Cell<u64>,
    last: Cell<LastSeen>,
}

/// Explains errors of one stream; can be held while the stream itself is borrowed.
#[derive(Clone)]
pub(super) struct Explainer {
    state: Rc<StreamState>,
    path: PathBuf,
}

impl ArchiveStream {
    /// Opens an archive by the form that its name promises.
    pub(super) fn open(path: &Path) -> Result<Self, ReadArchiveError> {
        let form = path
            .file_name()
            .and_then(|name| Compression::of_file_name(&name.to_string_lossy()))
            .ok_or_else(|| ReadArchiveError::UnknownForm { path: path.to_owned() })?;
        let inner = File::open(path)
            .and_then(|file| form.reader(file))
            .map_err(|source| ReadArchiveError::Open { path: path.to_owned(), source })?;
        let state = Rc::new(StreamState { bytes: Cell::new(0), last: Cell::new(LastSeen::Data) });
        let tar = tar::Archive::new(CountedReader { inner, state: Rc::clone(&state) });
        Ok(Self { tar, state, path: path.to_owned() })
    }

    /// The explainer for this stream's errors.
    pub(super) fn explainer(&self) -> Explainer {
        Explainer { state: Rc::clone(&self.state), path: self.path.clone() }
    }

    /// The entries, in the archive's order.
    pub(super) fn entries(&mut self) -> Result<tar::Entries<'_, CountedReader>, ReadArchiveError> {
        let explainer = self.explainer();
        self.tar.entries().map_err(|error| explainer.explain(error))
    }

    /// Reads the rest after the last entry, so that a cut or damaged tail is noticed and every byte is counted.
    pub(super) fn drain(self) -> Result<u64, ReadArchiveError> {
        let explainer = self.explainer();
        let mut rest = self.tar.into_inner().take(TRAILER_BYTES_MAX);
        io::copy(&mut rest, &mut io::sink()).map_err(|error| explainer.explain(error))?;
        Ok(explainer.state.bytes.get())
    }
}

impl Explainer {
    /// Turns an error of the tar reader into the trouble that caused it.
    pub(super) fn explain(&self, source: io::Error) -> ReadArchiveError {
        let path = self.path.clone();
        let bytes_read = self.state.bytes.get();
        match self.state.last.get() {
            LastSeen::EarlyEnd | LastSeen::CleanEnd => ReadArchiveError::Truncated { path, bytes_read },
            LastSeen::DeviceFault => ReadArchiveError::Device { path, source },
            LastSeen::BadData | LastSeen::Data => ReadArchiveError::Corrupt { path, bytes_read, source },
        }
    }
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(count) => {
                self.state.bytes.set(self.state.bytes.get().saturating_add(count as u64));
                if count == 0 && !buffer.is_empty() {
                    self.state.last.set(LastSeen::CleanEnd);
                }
                Ok(count)
            }
            Err(error) => {
                self.state.last.set(match error.kind() {
                    io::ErrorKind::UnexpectedEof => LastSeen::EarlyEnd,
                    _ if error.raw_os_error().is_some() => LastSeen::DeviceFault,
                    _ => LastSeen::BadData,
                });
                Err(error)
            }
        }
    }
}
