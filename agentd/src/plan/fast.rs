//! Whether a storage is fast enough for what is hot: root disks, and volumes that are written all the time.
//!
//! The class is the one that an operator signed for when the target of that name was attached. A storage that is no target of
//! the manifest was named by root in the settings, and root's word counts.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::StorageName;
use holdfast_protocol::storage::StorageClass;

use crate::model::record::Records;

/// Why nothing hot is put there.
pub(super) fn too_slow(records: &Records, storage: &StorageName) -> Option<(ErrorCode, String)> {
    let is = |name: &str| name == storage.as_str();
    let target = records.storage.iter().find(|target| is(target.approval.name.as_str()))?;
    (target.approval.class == StorageClass::Slow).then(|| {
        let text = format!(
            "storage {storage} was attached as slow, and root disks and hot volumes live on fast storage only: name another \
             `storage` in agent.toml, or make the volume bulk"
        );
        (ErrorCode::Forbidden, text)
    })
}
