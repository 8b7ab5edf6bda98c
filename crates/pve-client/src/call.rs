//! One request: endpoint, token and parameters.
//!
//! Input: typed values, through one constructor for each endpoint. Output: a [`Call`] that the transport sends as it
//! is. There is no way to make one for another path, and the test at the end walks every endpoint and holds each
//! parameter to the list of what must never be sent. Deliberately absent: sending.

use std::borrow::Cow;

use holdfast_protocol::id::{MountPath, NodeName, SnapshotName, StorageName, Vmid};
use holdfast_protocol::size::DiskGib;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::change::{ConfigUpdate, DiskSlot};
use super::config::Digest;
use super::destroy::DestroyProof;
use super::params::{Params, Value, Verb};
use super::prune::OwnBackup;
use super::reassign::ReassignRequest;
use super::restore::RestoreRequest;
use super::restore_copy::RestoreCopyRequest;
use super::snapshot::{NewSnapshot, OwnSnapshot};
use super::task::{LogWindow, TaskKind, TaskQuery};
use super::undo::UndoProof;
use super::unprotect_proof::LiftProof;
use super::upid::Upid;
use super::visibility::AclPath;
use super::volume::VolumeId;
use super::{ContentKind, Role};
use agent_core::model::filter::{COMMENT, FilterChange, SET};

macro_rules! endpoints {
    ($($name:ident = $text:literal, $verb:ident, $limit:expr;)*) => {
        /// Every endpoint we use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Endpoint { $($name),* }

        impl Endpoint {
            #[cfg(test)]
            pub(super) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// As errors and traces name it.
            pub(super) const fn text(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            pub(super) const fn verb(self) -> Verb {
                match self { $(Self::$name => Verb::$verb),* }
            }

            /// The longest answer that is read.
            pub(super) const fn body_max(self) -> usize {
                match self { $(Self::$name => $limit),* }
            }
        }
    };
}

/// A list of a large cluster: 10,000 guests at some 500 bytes are 5 MB.
const LIST_MAX: usize = 8 << 20;
/// Everything else. A description is at most 8 KiB, an `env` at most 120 KiB.
const PLAIN_MAX: usize = 512 << 10;

endpoints! {
    Version = "GET /version", Get, PLAIN_MAX;
    Permissions = "GET /access/permissions", Get, PLAIN_MAX;
    Resources = "GET /cluster/resources", Get, LIST_MAX;
    VmidFree = "GET /cluster/nextid", Get, PLAIN_MAX;
    NodeStatus = "GET /nodes/{node}/status", Get, PLAIN_MAX;
    Restore = "POST /nodes/{node}/lxc", Post, PLAIN_MAX;
    GuestConfig = "GET /nodes/{node}/lxc/{vmid}/config", Get, PLAIN_MAX;
    Configure = "PUT /nodes/{node}/lxc/{vmid}/config", Put, PLAIN_MAX;
    FirewallOptions = "GET /nodes/{node}/lxc/{vmid}/firewall/options", Get, PLAIN_MAX;
    SetFirewallOptions = "PUT /nodes/{node}/lxc/{vmid}/firewall/options", Put, PLAIN_MAX;
    AddressSets = "GET /nodes/{node}/lxc/{vmid}/firewall/ipset", Get, PLAIN_MAX;
    MakeAddressSet = "POST /nodes/{node}/lxc/{vmid}/firewall/ipset", Post, PLAIN_MAX;
    AddressSet = "GET /nodes/{node}/lxc/{vmid}/firewall/ipset/{name}", Get, PLAIN_MAX;
    AllowAddress = "POST /nodes/{node}/lxc/{vmid}/firewall/ipset/{name}", Post, PLAIN_MAX;
    ForbidAddress = "DELETE /nodes/{node}/lxc/{vmid}/firewall/ipset/{name}/{cidr}", Delete, PLAIN_MAX;
    Resize = "PUT /nodes/{node}/lxc/{vmid}/resize", Put, PLAIN_MAX;
    MoveVolume = "POST /nodes/{node}/lxc/{vmid}/move_volume", Post, PLAIN_MAX;
    LxcStatus = "GET /nodes/{node}/lxc/{vmid}/status/current", Get, PLAIN_MAX;
    Start = "POST /nodes/{node}/lxc/{vmid}/status/start", Post, PLAIN_MAX;
    Stop = "POST /nodes/{node}/lxc/{vmid}/status/stop", Post, PLAIN_MAX;
    Shutdown = "POST /nodes/{node}/lxc/{vmid}/status/shutdown", Post, PLAIN_MAX;
    Interfaces = "GET /nodes/{node}/lxc/{vmid}/interfaces", Get, PLAIN_MAX;
    Snapshots = "GET /nodes/{node}/lxc/{vmid}/snapshot", Get, LIST_MAX;
    CanSnapshot = "GET /nodes/{node}/lxc/{vmid}/feature", Get, PLAIN_MAX;
    Snapshot = "POST /nodes/{node}/lxc/{vmid}/snapshot", Post, PLAIN_MAX;
    RemoveSnapshot = "DELETE /nodes/{node}/lxc/{vmid}/snapshot/{snapname}", Delete, PLAIN_MAX;
    RollBack = "POST /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback", Post, PLAIN_MAX;
    Backup = "POST /nodes/{node}/vzdump", Post, PLAIN_MAX;
    ArchiveConfig = "GET /nodes/{node}/vzdump/extractconfig", Get, PLAIN_MAX;
    StorageEntries = "GET /storage", Get, LIST_MAX;
    Storages = "GET /nodes/{node}/storage", Get, LIST_MAX;
    StorageStatus = "GET /nodes/{node}/storage/{storage}/status", Get, PLAIN_MAX;
    StorageContent = "GET /nodes/{node}/storage/{storage}/content", Get, LIST_MAX;
    RemoveBackup = "DELETE /nodes/{node}/storage/{storage}/content/{volume}", Delete, PLAIN_MAX;
    Tasks = "GET /nodes/{node}/tasks", Get, LIST_MAX;
    TaskStatus = "GET /nodes/{node}/tasks/{upid}/status", Get, PLAIN_MAX;
    TaskLog = "GET /nodes/{node}/tasks/{upid}/log", Get, LIST_MAX;
    TaskStop = "DELETE /nodes/{node}/tasks/{upid}", Delete, PLAIN_MAX;
    Destroy = "DELETE /nodes/{node}/lxc/{vmid}", Delete, PLAIN_MAX;
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    endpoint: Endpoint,
    role: Role,
    vmid: Option<Vmid>,
    storage: Option<StorageName>,
    path: String,
    params: Params,
}

/// Characters that may be in a path segment unescaped.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

impl Call {
    pub(super) fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Whether it reads the content of an archive.
    pub(super) fn reads_archive(&self) -> bool {
        self.endpoint == Endpoint::ArchiveConfig
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }

    pub(super) fn vmid(&self) -> Option<Vmid> {
        self.vmid
    }

    pub(super) fn storage(&self) -> Option<&str> {
        self.storage.as_ref().map(StorageName::as_str)
    }

    /// Below `/api2/json`.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn params(&self) -> &[(Cow<'static, str>, Value)] {
        &self.params
    }

    fn plain(endpoint: Endpoint, role: Role, path: String) -> Self {
        Self { endpoint, role, vmid: None, storage: None, path, params: Vec::new() }
    }

    fn guest(endpoint: Endpoint, role: Role, node: &NodeName, vmid: Vmid, tail: &str) -> Self {
        let path = format!("/nodes/{node}/lxc/{vmid}{tail}");
        Self { vmid: Some(vmid), ..Self::plain(endpoint, role, path) }
    }

    fn storage_part(
        endpoint: Endpoint,
        role: Role,
        node: &NodeName,
        storage: &StorageName,
        tail: &str,
    ) -> Self {
        let path = format!("/nodes/{node}/storage/{storage}{tail}");
        Self { storage: Some(storage.clone()), ..Self::plain(endpoint, role, path) }
    }

    fn task(endpoint: Endpoint, role: Role, node: &NodeName, upid: &Upid, tail: &str) -> Self {
        let name = utf8_percent_encode(upid.as_str(), SEGMENT);
        Self { vmid: upid.vmid(), ..Self::plain(endpoint, role, format!("/nodes/{node}/tasks/{name}{tail}")) }
    }

    fn with(self, params: Params) -> Self {
        Self { params, ..self }
    }

    pub(super) fn version() -> Self {
        Self::plain(Endpoint::Version, Role::Observe, "/version".to_owned())
    }

    pub(super) fn permissions(role: Role, path: Option<&AclPath>) -> Self {
        let params = path.map(|path| ("path".into(), path.as_str().into())).into_iter().collect();
        Self::plain(Endpoint::Permissions, role, "/access/permissions".to_owned()).with(params)
    }

    pub(super) fn resources() -> Self {
        Self::plain(Endpoint::Resources, Role::Observe, "/cluster/resources".to_owned())
    }

    pub(super) fn vmid_free(vmid: Vmid) -> Self {
        let call = Self::plain(Endpoint::VmidFree, Role::Observe, "/cluster/nextid".to_owned());
        Self { vmid: Some(vmid), ..call }.with(vec![("vmid".into(), vmid.into())])
    }

    pub(super) fn node_status(node: &NodeName) -> Self {
        Self::plain(Endpoint::NodeStatus, Role::Observe, format!("/nodes/{node}/status"))
    }

    pub(super) fn restore(node: &NodeName, request: &RestoreRequest) -> Self {
        let call = Self::plain(Endpoint::Restore, Role::Allocate, format!("/nodes/{node}/lxc"));
        Self { vmid: Some(request.vmid), ..call }.with(request.params())
    }

    pub(super) fn restore_copy(node: &NodeName, request: &RestoreCopyRequest) -> Self {
        let call = Self::plain(Endpoint::Restore, Role::Allocate, format!("/nodes/{node}/lxc"));
        Self { vmid: Some(request.vmid), ..call }.with(request.params())
    }

    /// By `operate`: an observer is refused the whole configuration while `env` is set.
    pub(super) fn guest_config(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::GuestConfig, Role::Operate, node, vmid, "/config")
    }

    pub(super) fn configure(node: &NodeName, vmid: Vmid, update: &ConfigUpdate) -> Self {
        Self::guest(Endpoint::Configure, Role::Operate, node, vmid, "/config").with(update.params())
    }

    pub(super) fn firewall_options(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::FirewallOptions, Role::Observe, node, vmid, "/firewall/options")
    }

    pub(super) fn address_sets(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::AddressSets, Role::Observe, node, vmid, "/firewall/ipset")
    }

    pub(super) fn address_set(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::AddressSet, Role::Observe, node, vmid, &format!("/firewall/ipset/{SET}"))
    }

    /// It sets only those two options, and unsets none. In the address set it changes only its own entries.
    pub(super) fn change_filter(node: &NodeName, vmid: Vmid, change: FilterChange) -> Self {
        let call = |endpoint, tail: &str| Self::guest(endpoint, Role::Operate, node, vmid, tail);
        let set = format!("/firewall/ipset/{SET}");
        let comment = || ("comment".into(), COMMENT.into());
        match change {
            FilterChange::MakeSet => call(Endpoint::MakeAddressSet, "/firewall/ipset")
                .with(vec![("name".into(), SET.into()), comment()]),
            FilterChange::Allow(address) => call(Endpoint::AllowAddress, &set)
                .with(vec![("cidr".into(), address.to_string().into()), comment()]),
            FilterChange::SwitchOn => call(Endpoint::SetFirewallOptions, "/firewall/options")
                .with(vec![("ipfilter".into(), Value::On), ("macfilter".into(), Value::On)]),
            FilterChange::Forbid(address) => call(Endpoint::ForbidAddress, &format!("{set}/{address}")),
        }
    }

    pub(super) fn unprotect(node: &NodeName, proof: &LiftProof, digest: &Digest) -> Self {
        let params = vec![("delete".into(), "protection".into()), ("digest".into(), digest.as_str().into())];
        Self::guest(Endpoint::Configure, Role::Operate, node, proof.vmid(), "/config").with(params)
    }

    /// To an absolute size: a repeat cannot grow the disk twice.
    pub(super) fn resize(
        node: &NodeName,
        vmid: Vmid,
        disk: DiskSlot,
        size: DiskGib,
        digest: &Digest,
    ) -> Self {
        let params = vec![
            ("disk".into(), disk.key().into()),
            ("size".into(), format!("{}G", size.get()).into()),
            ("digest".into(), digest.as_str().into()),
        ];
        Self::guest(Endpoint::Resize, Role::Operate, node, vmid, "/resize").with(params)
    }

    pub(super) fn reassign(node: &NodeName, request: &ReassignRequest) -> Self {
        Self::guest(Endpoint::MoveVolume, Role::Operate, node, request.from, "/move_volume")
            .with(request.params())
    }

    pub(super) fn guest_status(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::LxcStatus, Role::Observe, node, vmid, "/status/current")
    }

    pub(super) fn start(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::Start, Role::Operate, node, vmid, "/status/start")
    }

    pub(super) fn stop(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::Stop, Role::Operate, node, vmid, "/status/stop")
    }

    /// Asks the guest to shut down; past the timeout the task fails and the guest runs on. A caller that needs it off
    /// sends a stop.
    pub(super) fn shutdown(node: &NodeName, vmid: Vmid, timeout_s: u32) -> Self {
        let params = vec![("timeout".into(), timeout_s.into())];
        Self::guest(Endpoint::Shutdown, Role::Operate, node, vmid, "/status/shutdown").with(params)
    }

    pub(super) fn interfaces(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::Interfaces, Role::Observe, node, vmid, "/interfaces")
    }

    pub(super) fn snapshots(node: &NodeName, vmid: Vmid) -> Self {
        Self::guest(Endpoint::Snapshots, Role::Observe, node, vmid, "/snapshot")
    }

    /// By `operate`, as the present configuration: the snapshot may hold an old bootstrap.
    pub(super) fn snapshot_config(node: &NodeName, vmid: Vmid, name: &SnapshotName) -> Self {
        let params = vec![("snapshot".into(), name.as_str().into())];
        Self::guest(Endpoint::GuestConfig, Role::Operate, node, vmid, "/config").with(params)
    }

    pub(super) fn can_snapshot(node: &NodeName, vmid: Vmid) -> Self {
        let params = vec![("feature".into(), "snapshot".into())];
        Self::guest(Endpoint::CanSnapshot, Role::Observe, node, vmid, "/feature").with(params)
    }

    pub(super) fn snapshot(node: &NodeName, vmid: Vmid, new: &NewSnapshot) -> Self {
        let params = vec![
            ("snapname".into(), new.name.as_str().into()),
            ("description".into(), new.line.as_str().into()),
        ];
        Self::guest(Endpoint::Snapshot, Role::Operate, node, vmid, "/snapshot").with(params)
    }

    /// Bare: `force` would forget a snapshot whose data stays.
    pub(super) fn remove_snapshot(node: &NodeName, own: &OwnSnapshot) -> Self {
        let tail = format!("/snapshot/{}", own.name());
        Self::guest(Endpoint::RemoveSnapshot, Role::Operate, node, own.vmid(), &tail)
    }

    /// Without `start`: the guest stays off until the restored state was checked.
    pub(super) fn roll_back(node: &NodeName, own: &OwnSnapshot) -> Self {
        let tail = format!("/snapshot/{}/rollback", own.name());
        Self::guest(Endpoint::RollBack, Role::Operate, node, own.vmid(), &tail)
    }

    /// A whole backup of one guest, except the data beneath these mounts. It removes none of the older ones: that is
    /// decided elsewhere.
    pub(super) fn backup(
        node: &NodeName,
        vmid: Vmid,
        storage: &StorageName,
        leaves_out: &[MountPath],
    ) -> Self {
        let mut params: Params = vec![
            ("vmid".into(), vmid.into()),
            ("storage".into(), storage.as_str().into()),
            ("mode".into(), "snapshot".into()),
            ("compress".into(), "zstd".into()),
            ("remove".into(), "0".into()),
            // Without an address this sends nothing; the usual mode mails root for each backup.
            ("notification-mode".into(), "legacy-sendmail".into()),
        ];
        // A path has no pattern characters. The folder itself stays in the backup, as the mount point.
        params
            .extend(leaves_out.iter().map(|path| ("exclude-path".into(), Value::Text(format!("{path}/?*")))));
        let call = Self::plain(Endpoint::Backup, Role::Operate, format!("/nodes/{node}/vzdump"));
        Self { vmid: Some(vmid), ..call }.with(params)
    }

    /// Without parameters. The volume was listed as this guest's backup on this storage; no disk has such a name.
    pub(super) fn remove_backup(node: &NodeName, own: &OwnBackup) -> Self {
        let volume = utf8_percent_encode(own.archive().as_str(), SEGMENT);
        let tail = format!("/content/{volume}");
        let call = Self::storage_part(Endpoint::RemoveBackup, Role::Operate, node, own.storage(), &tail);
        Self { vmid: Some(own.vmid()), ..call }
    }

    pub(super) fn archive_config(node: &NodeName, role: Role, archive: &VolumeId) -> Self {
        let params = vec![("volume".into(), archive.as_str().into())];
        Self::plain(Endpoint::ArchiveConfig, role, format!("/nodes/{node}/vzdump/extractconfig")).with(params)
    }

    pub(super) fn storage_entries() -> Self {
        Self::plain(Endpoint::StorageEntries, Role::Observe, "/storage".to_owned())
    }

    pub(super) fn storages(node: &NodeName) -> Self {
        Self::plain(Endpoint::Storages, Role::Observe, format!("/nodes/{node}/storage"))
    }

    pub(super) fn storage_status(node: &NodeName, storage: &StorageName) -> Self {
        Self::storage_part(Endpoint::StorageStatus, Role::Observe, node, storage, "/status")
    }

    pub(super) fn storage_content(
        node: &NodeName,
        role: Role,
        storage: &StorageName,
        kind: ContentKind,
        of: Option<Vmid>,
    ) -> Self {
        let mut params: Params = vec![("content".into(), kind.text().into())];
        params.extend(of.map(|vmid| ("vmid".into(), vmid.into())));
        Self::storage_part(Endpoint::StorageContent, role, node, storage, "/content").with(params)
    }

    pub(super) fn tasks(node: &NodeName, query: &TaskQuery) -> Self {
        // A task that is named after two guests, or after a guest and a storage, is found under no number.
        let of_one = !matches!(query.kind, TaskKind::MoveVolume | TaskKind::RemoveBackup);
        let of_one = of_one.then(|| ("vmid".into(), query.vmid.into()));
        let mut params: Params = of_one.into_iter().collect();
        params.extend([
            ("source".into(), "all".into()),
            ("typefilter".into(), query.kind.text().into()),
            ("since".into(), query.since_epoch_s.into()),
            ("limit".into(), TaskQuery::ROWS_MAX.into()),
        ]);
        let call = Self::plain(Endpoint::Tasks, query.role, format!("/nodes/{node}/tasks"));
        Self { vmid: Some(query.vmid), ..call }.with(params)
    }

    /// Backup jobs that run on the node, started by any user.
    pub(super) fn running_backups(node: &NodeName) -> Self {
        let params = vec![
            ("source".into(), "active".into()),
            ("typefilter".into(), TaskKind::Backup.text().into()),
            ("limit".into(), TaskQuery::ROWS_MAX.into()),
        ];
        Self::plain(Endpoint::Tasks, Role::Observe, format!("/nodes/{node}/tasks")).with(params)
    }

    /// Proxmox's own default is 50 rows.
    pub(super) fn running_tasks(node: &NodeName) -> Self {
        let params = vec![("source".into(), "active".into()), ("limit".into(), TaskQuery::ROWS_MAX.into())];
        Self::plain(Endpoint::Tasks, Role::Observe, format!("/nodes/{node}/tasks")).with(params)
    }

    pub(super) fn task_status(node: &NodeName, role: Role, upid: &Upid) -> Self {
        Self::task(Endpoint::TaskStatus, role, node, upid, "/status")
    }

    pub(super) fn task_log(node: &NodeName, role: Role, upid: &Upid, window: LogWindow) -> Self {
        let params = vec![("start".into(), window.start.into()), ("limit".into(), window.limit.into())];
        Self::task(Endpoint::TaskLog, role, node, upid, "/log").with(params)
    }

    pub(super) fn task_stop(node: &NodeName, role: Role, upid: &Upid) -> Self {
        Self::task(Endpoint::TaskStop, role, node, upid, "")
    }

    /// Without any parameter: no parameter of this call does anything that we want.
    pub(super) fn destroy(node: &NodeName, proof: &UndoProof) -> Self {
        Self::guest(Endpoint::Destroy, Role::Allocate, node, proof.vmid(), "")
    }

    /// The same call, for the other witness: a signature opens the destroy of this guest, not its parameters.
    pub(super) fn destroy_signed(node: &NodeName, proof: &DestroyProof) -> Self {
        Self::guest(Endpoint::Destroy, Role::Allocate, node, proof.vmid(), "")
    }
}

#[cfg(test)]
mod tests;
