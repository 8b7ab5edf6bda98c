//! A guest that exists, as document and records have it.

use std::collections::BTreeSet;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::Vmid;

use crate::model::records::{GuestRecord, VolumeId};

/// A guest that was made.
pub(super) struct Made<'a> {
    pub guest: Option<&'a DesiredGuest>,
    pub record: &'a GuestRecord,
    pub vmid: Vmid,
    pub volumes: &'a BTreeSet<VolumeId>,
}
