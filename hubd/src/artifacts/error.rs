//! Why a file of a release is not taken or not read.

use std::io;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;

/// Why a file is not taken or not read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error("another upload of this file is under way: wait until it ended")]
    Locked,
    #[error("the hub has {received} bytes of this file, and nothing was written: go on from there")]
    Offset {
        /// Where the next piece begins.
        received: u64,
    },
    #[error("the file has {size} bytes, and more were sent: what is beyond was not kept")]
    TooLong { size: u64 },
    #[error("the bytes do not hash to {digest}, and none of them were kept: send the file anew", digest = .0.as_str())]
    Wrong(Sha256Text),
    #[error(
        "the rest of this file has {needed} bytes, and the hub's disk has {free} free, of which {reserve} stay free: \
         nothing was written; free room in the hub's folder, or delete a release"
    )]
    Full { needed: u64, free: u64, reserve: u64 },
    #[error("a file of a release could not be {verb}: look at the hub's disk")]
    Disk {
        verb: &'static str,
        #[source]
        source: io::Error,
    },
}

impl ArtifactError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Locked => ErrorCode::Locked,
            Self::Offset { .. } => ErrorCode::PreconditionFailed,
            Self::TooLong { .. } => ErrorCode::Size,
            Self::Wrong(_) => ErrorCode::ArtifactWrong,
            Self::Full { .. } => ErrorCode::DiskFull,
            Self::Disk { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::DiskFull,
                _ => ErrorCode::Unavailable,
            },
        }
    }
}
