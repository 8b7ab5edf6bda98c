//! Reasons why an archive cannot be read.

use std::io;
use std::path::PathBuf;

/// Why an archive could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadArchiveError {
    /// The file is not there or may not be opened.
    #[error("the archive {} cannot be opened", path.display())]
    Open {
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Its name ends in nothing that we read.
    #[error("{} is neither .tar, .tar.gz, .tar.lzo nor .tar.zst; pick a container backup", path.display())]
    UnknownForm { path: PathBuf },
    /// It ends in the middle.
    #[error("the archive {} ends too early, after {bytes_read} unpacked bytes; use another backup", path.display())]
    Truncated {
        path: PathBuf,
        /// How many bytes of tar came out before.
        bytes_read: u64,
    },
    /// It holds bytes that mean nothing.
    #[error("the archive {} is damaged after {bytes_read} unpacked bytes; use another backup", path.display())]
    Corrupt {
        path: PathBuf,
        /// How many bytes of tar came out before.
        bytes_read: u64,
        /// The decoder's error.
        #[source]
        source: io::Error,
    },
    /// The disk that it is stored on failed.
    #[error("the archive {} cannot be read any further", path.display())]
    Device {
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// It holds no container configuration, so it is no container backup.
    #[error("the archive {} holds no etc/vzdump/pct.conf; it is no container backup", path.display())]
    NoConfig { path: PathBuf },
    /// Its configuration is larger than any real one, or not text.
    #[error("the configuration inside {} is larger than {bytes_max} bytes or not UTF-8", path.display())]
    BadConfig { path: PathBuf, bytes_max: u64 },
    /// It holds more entries than we list.
    #[error("the archive {} holds more than {entries_max} entries", path.display())]
    TooManyEntries { path: PathBuf, entries_max: usize },
}
