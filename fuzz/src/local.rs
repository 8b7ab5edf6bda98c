//! Requests of guests to their agent, and its answers.

use holdfast_protocol::local::work::{
    Accepted, BackupRequest, BackupsView, RollBackRequest, SnapshotRequest, SnapshotsView,
};
use holdfast_protocol::local::{BODY_BYTES_MAX, ClaimRequest, Hello, HelloAnswer, SelfView, StorageView};
use holdfast_protocol::operation::OperationView;

use crate::round;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    if let Some(claim) = round::document::<ClaimRequest>(data, BODY_BYTES_MAX) {
        let (secret, shown) = (claim.claim.expose(), format!("{claim:?}"));
        assert!(secret.len() < 16 || !shown.contains(secret), "it shows its secret");
    }
    round::document::<Hello>(data, BODY_BYTES_MAX);
    round::document::<SnapshotRequest>(data, BODY_BYTES_MAX);
    round::document::<RollBackRequest>(data, BODY_BYTES_MAX);
    round::document::<BackupRequest>(data, BODY_BYTES_MAX);
    round::document::<HelloAnswer>(data, BODY_BYTES_MAX);
    round::document::<SelfView>(data, BODY_BYTES_MAX);
    round::document::<StorageView>(data, BODY_BYTES_MAX);
    round::document::<Accepted>(data, BODY_BYTES_MAX);
    round::document::<SnapshotsView>(data, BODY_BYTES_MAX);
    round::document::<BackupsView>(data, BODY_BYTES_MAX);
    round::document::<OperationView>(data, BODY_BYTES_MAX);
}
