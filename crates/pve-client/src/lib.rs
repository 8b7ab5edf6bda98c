//! Client of the Proxmox VE API.
//!
//! Input: typed requests for just the endpoints the agent's flows need. Output: typed answers, or one [`PveError`] by
//! class. The trait [`Pve`] is what the rest of the agent knows; [`PveClient`] speaks to a real server. Each call uses
//! the narrowest token that can make it, so a fault in one flow cannot do what another may.
//!
//! Deliberately absent: a way to call any other path, and every parameter that must never be sent (`force`, `skiplock`,
//! `destroy-unreferenced-disks`, `purge`, `stop`, `unique`, and `features` or `tags` on a restore).
#![forbid(unsafe_code)]

pub mod backup_errors;
mod call;
pub mod change;
mod classify;
mod client;
pub mod config;
pub mod destroy;
pub mod error;
mod filter;
mod https;
mod params;
pub mod prune;
pub mod read;
pub mod reassign;
pub mod resources;
pub mod restore;
pub mod restore_copy;
pub mod restore_errors;
pub mod retry;
mod sender;
pub mod snapshot;
pub mod storage_admin;
pub mod task;
pub mod task_result;
pub mod tokens;
pub mod transport;
pub mod undo;
pub mod unprotect_proof;
pub mod upid;
pub mod visibility;
pub mod volume;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use holdfast_protocol::id::{MountPath, SnapshotName, StorageName, Vmid};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::size::DiskGib;
use serde::{Deserialize, Serialize};

use agent_core::model::filter::{FilterChange, FilterFacts};
use agent_core::model::storage::EntrySeen;

pub use change::{ConfigChange, ConfigUpdate, DiskSlot};
pub use client::PveClient;
pub use config::{Digest, GuestConfig};
pub use destroy::DestroyProof;
pub use error::{PveError, RetryClass};
pub use prune::OwnBackup;
pub use reassign::ReassignRequest;
pub use restore::RestoreRequest;
pub use restore_copy::RestoreCopyRequest;
pub use retry::{Pace, RealPace};
pub use sender::{PveSettings, SetUpError};
pub use snapshot::{CanSnapshot, NewSnapshot, OwnSnapshot, Snapshot};
pub use task::{LogWindow, TaskKind, TaskLog, TaskOutcome, TaskQuery, TaskStatus, follow_task};
pub use tokens::{ApiToken, BadToken};
pub use undo::UndoProof;
pub use unprotect_proof::{KnownGuest, LiftProof};
pub use upid::Upid;
pub use visibility::{AclPath, Permissions, SightProof};
pub use volume::VolumeId;

use read::{Interface, LxcStatus, NodeStatus, StorageStatus, StoredVolume, TaskRow, Version};
use resources::Resources;

/// Which of the narrow tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Observe,
    /// Power, configuration, snapshots, backups of guests in the pool.
    Operate,
    /// Restores into the pool, destroys from it. Used only by the steps that need it.
    Allocate,
    /// The same for scratch guests, in their own pool.
    Scratch,
    /// Makes entries of storages. It is stored sealed, and is opened only for a signed job.
    Storage,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Observe, Self::Operate, Self::Allocate, Self::Scratch, Self::Storage];

    /// As the settings, the token and messages name it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Operate => "operate",
            Self::Allocate => "allocate",
            Self::Scratch => "scratch",
            Self::Storage => "storage",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The kinds of content on a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    Backup,
    /// Disks of containers.
    Rootdir,
    /// Disks of virtual machines, and those whose guest has no configuration.
    Images,
}

impl ContentKind {
    const fn text(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Rootdir => "rootdir",
            Self::Images => "images",
        }
    }
}

/// Whether a VMID can be taken. Only advice: nothing is reserved by asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmidUse {
    /// No guest in the cluster has it.
    Free,
    /// Some guest has it, whether we may see that guest or not.
    Taken,
}

/// An answer that is on its way.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, PveError>> + Send + 'a>>;

/// All calls that the agent makes to Proxmox. Calls that give an [`Upid`] only start a task: follow it with
/// [`follow_task`].
pub trait Pve: Send + Sync {
    /// `GET /version`.
    fn version(&self) -> Reply<'_, Version>;

    /// The token's own effective permissions, everywhere or on one path. Permissions inherited from a pool are listed
    /// only when the guest's path is requested.
    fn permissions(&self, role: Role, path: Option<AclPath>) -> Reply<'_, Permissions>;

    /// The resources of the cluster, as far as `observe` may see: the cheapest list of guests.
    fn resources(&self) -> Reply<'_, Resources>;

    /// Whether a VMID is free in the whole cluster, guests we may not see included.
    fn vmid_use(&self, vmid: Vmid) -> Reply<'_, VmidUse>;

    /// The node's own state.
    fn node_status(&self) -> Reply<'_, NodeStatus>;

    /// Starts a restore to a fresh VMID. The guest joins its pool only at the end of the task: until then no pool token
    /// sees it.
    fn restore(&self, request: &RestoreRequest) -> Reply<'_, Upid>;

    /// Starts restoring a copy of a guest next to it, to a fresh VMID.
    fn restore_copy(&self, request: &RestoreCopyRequest) -> Reply<'_, Upid>;

    /// A guest's configuration, with pending changes already applied.
    fn guest_config(&self, vmid: Vmid) -> Reply<'_, GuestConfig>;

    /// Changes a guest's configuration. Done when it returns.
    fn configure(&self, vmid: Vmid, update: &ConfigUpdate) -> Reply<'_, ()>;

    /// The firewall's settings for a guest's addresses.
    fn guest_filter(&self, vmid: Vmid) -> Reply<'_, FilterFacts>;

    /// Changes that. Done when it returns.
    fn change_filter(&self, vmid: Vmid, change: FilterChange) -> Reply<'_, ()>;

    /// Switches protection off for a guest, with the proof that this is allowed.
    fn unprotect(&self, proof: &LiftProof, digest: &Digest) -> Reply<'_, ()>;

    /// Starts growing a disk to an absolute size. `OK` of the task does not prove that it grew.
    fn resize(&self, vmid: Vmid, disk: DiskSlot, size: DiskGib, digest: &Digest) -> Reply<'_, Upid>;

    /// Starts moving a volume to another guest. The volume is renamed by that.
    fn reassign(&self, request: &ReassignRequest) -> Reply<'_, Upid>;

    /// Whether a guest runs, and how.
    fn guest_status(&self, vmid: Vmid) -> Reply<'_, LxcStatus>;

    /// Starts a start.
    fn start(&self, vmid: Vmid) -> Reply<'_, Upid>;

    /// Starts pulling the plug.
    fn stop(&self, vmid: Vmid) -> Reply<'_, Upid>;

    /// Starts asking the guest to go down. Its task fails when the guest does not within the time.
    fn shutdown(&self, vmid: Vmid, timeout_s: u32) -> Reply<'_, Upid>;

    /// Interfaces and addresses of a running guest; none while it is stopped.
    fn interfaces(&self, vmid: Vmid) -> Reply<'_, Vec<Interface>>;

    /// Snapshots of a guest.
    fn snapshots(&self, vmid: Vmid) -> Reply<'_, Vec<Snapshot>>;

    /// The configuration that a snapshot holds, which a rollback puts back.
    fn snapshot_config(&self, vmid: Vmid, name: &SnapshotName) -> Reply<'_, GuestConfig>;

    /// Whether every volume of the guest can be snapshotted.
    fn can_snapshot(&self, vmid: Vmid) -> Reply<'_, CanSnapshot>;

    /// Starts taking a snapshot. A running guest is frozen for a moment.
    fn snapshot(&self, vmid: Vmid, new: &NewSnapshot) -> Reply<'_, Upid>;

    /// Starts removing a snapshot that one of our operations made.
    fn remove_snapshot(&self, own: &OwnSnapshot) -> Reply<'_, Upid>;

    /// Starts rolling a guest back to a snapshot that one of our operations made. Everything written since is lost, and
    /// the configuration is put back as well. A guest that runs is stopped, and stays so.
    fn roll_back(&self, own: &OwnSnapshot) -> Reply<'_, Upid>;

    /// Starts a backup of one guest without the data beneath these mounts. `OK` of the task does not prove that the
    /// archive is there.
    fn backup(&self, vmid: Vmid, storage: &StorageName, leaves_out: &[MountPath]) -> Reply<'_, Upid>;

    /// Starts removing a backup that is listed together with a newer one. `OK` of the task does not prove that it is
    /// gone.
    fn remove_backup(&self, own: &OwnBackup) -> Reply<'_, Upid>;

    /// The text of the configuration inside an archive, to be judged before it is restored. It may hold an old
    /// bootstrap token.
    fn archive_config(&self, role: Role, archive: &VolumeId) -> Reply<'_, Secret>;

    /// The entries of all storages by their names, as far as `observe` may see: their configured values.
    fn storage_entries(&self) -> Reply<'_, BTreeMap<String, EntrySeen>>;

    /// All storages of the node, as far as `observe` may see.
    fn storages(&self) -> Reply<'_, Vec<StorageStatus>>;

    fn storage_status(&self, storage: &StorageName) -> Reply<'_, StorageStatus>;

    /// The content of a storage, as far as the role may see: an archive is listed only for a token that may back the
    /// guest up.
    fn storage_content(
        &self,
        role: Role,
        storage: &StorageName,
        kind: ContentKind,
        of: Option<Vmid>,
    ) -> Reply<'_, Vec<StoredVolume>>;

    /// Our own tasks of one kind for one guest since a moment, newest first: used to find the task of a lost reply.
    fn find_tasks(&self, query: TaskQuery) -> Reply<'_, Vec<TaskRow>>;

    /// Tasks of any user that destroyed the guest of this number since a moment, as far as `observe` may see; newest
    /// first.
    fn destroyed_since(&self, vmid: Vmid, since_epoch_s: u64) -> Reply<'_, Vec<TaskRow>>;

    /// Backup jobs that run on the node, started by any user, as far as `observe` may see. A node runs one at a time.
    fn running_backups(&self) -> Reply<'_, Vec<TaskRow>>;

    /// Tasks of any kind that run on the node, started by any user, as far as `observe` may see.
    fn running_tasks(&self) -> Reply<'_, Vec<Upid>>;

    /// How a task is. Asked with the token that started it.
    fn task_status(&self, upid: &Upid) -> Reply<'_, TaskStatus>;

    /// Lines of a task's log. Asked with the token that started it.
    fn task_log(&self, upid: &Upid, window: LogWindow) -> Reply<'_, TaskLog>;

    /// Asks a task of our own to stop.
    fn task_stop(&self, upid: &Upid) -> Reply<'_, ()>;

    /// Starts destroying a guest that this operation made. It must be stopped and unprotected.
    fn destroy(&self, proof: UndoProof) -> Reply<'_, Upid>;

    /// Starts destroying a guest that an operator signed for. It must be stopped and unprotected. `OK` of the task
    /// does not prove that its volumes are gone.
    fn destroy_signed(&self, proof: DestroyProof) -> Reply<'_, Upid>;
}

/// Reads the permissions behind each wanted [`Sight`](visibility::Sight), path by path.
///
/// # Errors
/// When Proxmox cannot be called. Lacking permissions is an answer, not an error.
pub async fn prove_sight(
    pve: &dyn Pve,
    role: Role,
    wanted: &[visibility::NeededPrivilege],
) -> Result<Result<SightProof, visibility::Blind>, PveError> {
    let mut all = Vec::new();
    for want in wanted {
        let on_path = pve.permissions(role, Some(want.path.clone())).await?;
        all.extend(on_path.iter().map(|(path, set)| (path.to_owned(), set.clone())));
    }
    Ok(SightProof::from_permissions(wanted, &all.into_iter().collect()))
}
