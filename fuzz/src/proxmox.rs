//! The agent's readers of Proxmox's answers, taken in by path.

#[path = "../../crates/pve-client/src/config.rs"]
pub mod config;
#[path = "../../crates/pve-client/src/read.rs"]
pub mod read;
#[path = "../../crates/pve-client/src/resources.rs"]
pub mod resources;
#[path = "../../crates/pve-client/src/snapshot.rs"]
pub mod snapshot;
#[path = "../../crates/pve-client/src/task_result.rs"]
pub mod task_result;
#[path = "../../crates/pve-client/src/upid.rs"]
pub mod upid;
#[path = "../../crates/pve-client/src/visibility.rs"]
pub mod visibility;
#[path = "../../crates/pve-client/src/volume.rs"]
pub mod volume;
#[path = "../../crates/pve-client/src/wire.rs"]
mod wire;

/// A module that `snapshot` names and no reader uses.
pub mod change {
    /// A line that is written into a snapshot.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Description;
}

use serde_json::Value;
use wire::Unreadable;

/// A reader, by the answer that it reads.
type Reader<T> = fn(&Value) -> Result<T, Unreadable>;

/// The agent's readers, re-exported because their own modules are private.
pub mod reader {
    use std::collections::BTreeMap;

    use holdfast_protocol::id::StorageName;

    use crate::model::storage::EntrySeen;

    use super::read::{Interface, LxcStatus, NodeStatus, StorageStatus, StoredVolume, TaskRow, Version};
    use super::resources::Resources;
    use super::snapshot::{CanSnapshot, Snapshot};
    use super::task_result::TaskStatus;
    use super::visibility::Permissions;
    use super::{Reader, Unreadable, Value};

    /// `GET /version`.
    pub const VERSION: Reader<Version> = Version::read;
    /// `GET /cluster/resources`.
    pub const RESOURCES: Reader<Resources> = Resources::read;
    /// `GET …/status/current`.
    pub const GUEST: Reader<LxcStatus> = LxcStatus::read_one;
    /// `GET /nodes/{node}/status`.
    pub const NODE: Reader<NodeStatus> = NodeStatus::read;
    /// `GET …/storage`.
    pub const STORAGES: Reader<Vec<StorageStatus>> = StorageStatus::read_list;
    /// `GET /storage`.
    pub const ENTRIES: Reader<BTreeMap<String, EntrySeen>> = super::read::entries;
    /// `GET …/storage/{storage}/content`.
    pub const VOLUMES: Reader<Vec<StoredVolume>> = StoredVolume::read_list;
    /// `GET …/interfaces`.
    pub const INTERFACES: Reader<Vec<Interface>> = Interface::read_list;
    /// `GET …/tasks`.
    pub const TASKS: Reader<Vec<TaskRow>> = TaskRow::read_list;
    /// `GET …/tasks/{upid}/status`.
    pub const TASK: Reader<TaskStatus> = TaskStatus::read;
    /// `GET …/snapshot`.
    pub const SNAPSHOTS: Reader<Vec<Snapshot>> = Snapshot::read_list;
    /// `GET …/feature?feature=snapshot`.
    pub const CAN_SNAPSHOT: Reader<CanSnapshot> = CanSnapshot::read;
    /// `GET /access/permissions`.
    pub const PERMISSIONS: Reader<Permissions> = Permissions::read;

    /// `GET …/storage/{storage}/status`.
    ///
    /// # Errors
    /// As the reader's.
    pub fn storage(name: &StorageName, value: &Value) -> Result<StorageStatus, Unreadable> {
        StorageStatus::read_one(name, value)
    }

    /// `GET …/tasks/{upid}/log`, without the total that is next to its rows.
    ///
    /// # Errors
    /// As the reader's.
    pub fn log(value: &Value) -> Result<Vec<String>, Unreadable> {
        super::task_result::TaskLog::read(value, None).map(|log| log.lines)
    }
}
