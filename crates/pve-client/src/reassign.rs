//! The reassignment of a volume to another guest.
//!
//! Input: typed values, with the digests of both configurations as they were judged. Output: parameters for
//! `POST …/move_volume`. Deliberately absent: `storage`, and with it a move that copies and deletes the source.

use holdfast_protocol::id::Vmid;

use super::change::{DiskSlot, MountSlot};
use super::config::Digest;
use super::params::Params;

/// One volume for another guest. Both must be stopped; the receiving guest must be unprotected, and its mount free.
#[derive(Clone, Debug)]
pub struct ReassignRequest {
    pub from: Vmid,
    pub slot: MountSlot,
    /// Its configuration as it was judged.
    pub digest: Digest,
    pub to: Vmid,
    /// As which mount.
    pub to_slot: MountSlot,
    /// Its configuration as it was judged.
    pub to_digest: Digest,
}

impl ReassignRequest {
    pub(super) fn params(&self) -> Params {
        vec![
            ("volume".into(), DiskSlot::Mount(self.slot).key().into()),
            ("target-vmid".into(), self.to.into()),
            ("target-volume".into(), DiskSlot::Mount(self.to_slot).key().into()),
            ("digest".into(), self.digest.as_str().into()),
            ("target-digest".into(), self.to_digest.as_str().into()),
        ]
    }
}
