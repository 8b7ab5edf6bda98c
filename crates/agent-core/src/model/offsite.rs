//! What a backup server says of our backups.

use std::collections::BTreeMap;
use std::fmt;

use holdfast_protocol::id::{KeyFingerprint, StorageName, Vmid};
use holdfast_protocol::storage::report::PrunedBy;
use jiff::Timestamp;

/// Who removes backups, by storage, as the servers said last.
pub type Pruners = BTreeMap<StorageName, PrunedBy>;

/// A whole backup of a container, as its server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the guest.
    pub guest: Vmid,
    /// When it was taken.
    pub at: Timestamp,
    /// The key that every part of it is encrypted with; none, where one part is not.
    pub key: Option<KeyFingerprint>,
    /// Whether the server refuses to remove it.
    pub protected: bool,
    /// What came of the last time it was looked through.
    pub verification: Option<Verification>,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ct/{}/{}", self.guest, self.at)
    }
}

/// What came of looking through a backup. The server has no key: it sees whether the bytes are as they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Whether all was there.
    pub well: bool,
    /// When it was begun.
    pub at: Timestamp,
}

/// A task of a backup server: `UPID:node:pid:pstart:counter:start:kind:what:who:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyTask {
    upid: String,
    began: Timestamp,
}

impl VerifyTask {
    /// Reads a name.
    #[must_use]
    pub fn parse(upid: &str) -> Option<Self> {
        let mut parts = upid.strip_prefix("UPID:")?.split(':');
        let began = i64::from_str_radix(parts.nth(4)?, 16).ok()?;
        let short = upid.len() <= 512 && !upid.chars().any(char::is_control);
        short.then_some(Self { upid: upid.to_owned(), began: Timestamp::from_second(began).ok()? })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.upid
    }

    /// When it began.
    #[must_use]
    pub const fn began(&self) -> Timestamp {
        self.began
    }
}

/// How looking through ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyEnd {
    /// To its end, and all was well.
    Well,
    /// Any other end, in the server's words. The findings are with each backup.
    Badly(String),
}

/// All that a server said at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerListing {
    /// Who removes backups.
    pub pruned_by: PrunedBy,
    /// What it lists.
    pub snapshots: Vec<Snapshot>,
    /// How the verification that was under way ended, once it has.
    pub ended: Option<VerifyEnd>,
}
