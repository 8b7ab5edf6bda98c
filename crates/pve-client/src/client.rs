//! [`Pve`] for a real server.
//!
//! Input: typed requests. Output: typed answers. Repeating is decided by `retry`, here it is only done.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::id::{MountPath, NodeName, SnapshotName, StorageName, Vmid};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::size::DiskGib;
use serde_json::Value as Json;

use super::call::Call;
use super::change::{ConfigUpdate, DiskSlot};
use super::config::{Digest, GuestConfig};
use super::destroy::DestroyProof;
use super::error::PveError;
use super::filter;
use super::https::Https;
use super::prune::OwnBackup;
use super::read::entries;
use super::read::{Interface, LxcStatus, NodeStatus, StorageStatus, StoredVolume, TaskRow, Version};
use super::reassign::ReassignRequest;
use super::resources::Resources;
use super::restore::RestoreRequest;
use super::restore_copy::RestoreCopyRequest;
use super::retry::{Pace, RetryState, pause_before_next};
use super::sender::{Answer, PveSettings, Sender, SetUpError};
use super::snapshot::{CanSnapshot, NewSnapshot, OwnSnapshot, Snapshot};
use super::task::{LogWindow, TaskKind, TaskLog, TaskQuery, TaskStatus};
use super::tokens::ApiToken;
use super::transport::Transport;
use super::undo::UndoProof;
use super::unprotect_proof::LiftProof;
use super::upid::Upid;
use super::visibility::{AclPath, Permissions};
use super::volume::VolumeId;
use super::wire::Unreadable;
use super::{ContentKind, Pve, Reply, Role, VmidUse};
use agent_core::model::filter::{FilterChange, FilterFacts};
use agent_core::model::storage::EntrySeen;

/// Whose guests a client works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pool {
    /// Those that are ours to keep.
    Guests,
    /// Scratch guests: with their own token, which reaches no others.
    Scratch,
}

impl Pool {
    /// The token of a call. Reading a backup's content needs the right over its guest, which the scratch token lacks.
    fn role(self, call: &Call) -> Role {
        match (self, call.role()) {
            (Self::Scratch, Role::Operate | Role::Allocate) if !call.reads_archive() => Role::Scratch,
            (_, role) => role,
        }
    }
}

/// Speaks to one node.
pub struct PveClient {
    sender: Arc<Sender>,
    pool: Pool,
    node: NodeName,
    pace: Arc<dyn Pace>,
}

impl PveClient {
    /// Makes a client over HTTPS. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address, a token or the trust cannot be used.
    pub fn new(settings: &PveSettings, pace: Arc<dyn Pace>) -> Result<Self, SetUpError> {
        let https = Https::new(&settings.url, &settings.trust)?;
        Self::over(Arc::new(https), settings.node.clone(), &settings.tokens, pace)
    }

    /// Makes a client on another carrier.
    ///
    /// # Errors
    /// When a token cannot be used.
    pub fn over(
        transport: Arc<dyn Transport>,
        node: NodeName,
        tokens: &BTreeMap<Role, ApiToken>,
        pace: Arc<dyn Pace>,
    ) -> Result<Self, SetUpError> {
        let sender = Arc::new(Sender::new(transport, tokens)?);
        Ok(Self { sender, pool: Pool::Guests, node, pace })
    }

    /// The same for scratch guests, where there is a token for them.
    #[must_use]
    pub fn for_scratch(&self) -> Option<Self> {
        self.sender.tokens().has(Role::Scratch).then(|| Self {
            sender: Arc::clone(&self.sender),
            pool: Pool::Scratch,
            node: self.node.clone(),
            pace: Arc::clone(&self.pace),
        })
    }

    /// The tokens of now.
    #[must_use]
    pub fn tokens(&self) -> BTreeMap<Role, ApiToken> {
        self.sender.tokens().all()
    }

    /// A client with other tokens over the same carrier, to try them before they are used.
    ///
    /// # Errors
    /// When a token cannot be used.
    pub fn with_tokens(&self, tokens: &BTreeMap<Role, ApiToken>) -> Result<Self, SetUpError> {
        Self::over(self.sender.transport(), self.node.clone(), tokens, Arc::clone(&self.pace))
    }

    /// Uses these tokens from the next call on, here and in the client for scratch guests.
    ///
    /// # Errors
    /// When a token cannot be used; those of before stay.
    pub fn take_tokens(&self, tokens: &BTreeMap<Role, ApiToken>) -> Result<(), SetUpError> {
        Ok(self.sender.tokens().replace(tokens)?)
    }

    /// Sends a call, and repeats it where that is allowed.
    async fn answer(&self, call: &Call) -> Result<Answer, PveError> {
        let began = self.pace.now();
        let mut times = 0;
        loop {
            let error = match self.sender.send(call, self.pool.role(call)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            times += 1;
            let tried = RetryState { times, since_first: self.pace.now().saturating_sub(began) };
            match pause_before_next(call.endpoint().verb(), &error, tried, self.pace.chance_percent()) {
                Some(pause) => {
                    tracing::debug!(call = call.endpoint().text(), times, %error, "Proxmox will be asked again");
                    self.pace.sleep(pause).await;
                }
                None => return Err(error),
            }
        }
    }

    async fn ask<T>(
        &self,
        call: Call,
        read: impl FnOnce(&Answer) -> Result<T, Unreadable> + Send,
    ) -> Result<T, PveError> {
        let answer = self.answer(&call).await?;
        read(&answer).map_err(|Unreadable(what)| PveError::Garbled { call: call.endpoint().text(), what })
    }

    fn data<'a, T: Send + 'a>(
        &'a self,
        call: Call,
        read: fn(&Json) -> Result<T, Unreadable>,
    ) -> Reply<'a, T> {
        Box::pin(self.ask(call, move |answer| read(&answer.data)))
    }

    fn started(&self, call: Call) -> Reply<'_, Upid> {
        self.data(call, |data| {
            let name = data.as_str().ok_or_else(|| Unreadable("data: a task name is expected".to_owned()))?;
            name.parse().map_err(|_| Unreadable(format!("data: {name:?} is not a task name")))
        })
    }

    fn done(&self, call: Call) -> Reply<'_, ()> {
        self.data(call, |_| Ok(()))
    }

    /// The token that started a task. Tasks of others may be read by a token with audit rights on the node.
    fn owner_of(&self, upid: &Upid) -> Role {
        self.sender.tokens().holder(upid.owner()).unwrap_or(Role::Observe)
    }
}

impl Pve for PveClient {
    fn version(&self) -> Reply<'_, Version> {
        self.data(Call::version(), Version::read)
    }

    fn permissions(&self, role: Role, path: Option<AclPath>) -> Reply<'_, Permissions> {
        self.data(Call::permissions(role, path.as_ref()), Permissions::read)
    }

    fn resources(&self) -> Reply<'_, Resources> {
        self.data(Call::resources(), Resources::read)
    }

    fn vmid_use(&self, vmid: Vmid) -> Reply<'_, VmidUse> {
        Box::pin(async move {
            match self.answer(&Call::vmid_free(vmid)).await {
                Ok(_) => Ok(VmidUse::Free),
                Err(PveError::AlreadyExists { .. }) => Ok(VmidUse::Taken),
                Err(error) => Err(error),
            }
        })
    }

    fn node_status(&self) -> Reply<'_, NodeStatus> {
        self.data(Call::node_status(&self.node), NodeStatus::read)
    }

    fn restore(&self, request: &RestoreRequest) -> Reply<'_, Upid> {
        self.started(Call::restore(&self.node, request))
    }

    fn restore_copy(&self, request: &RestoreCopyRequest) -> Reply<'_, Upid> {
        self.started(Call::restore_copy(&self.node, request))
    }

    fn guest_config(&self, vmid: Vmid) -> Reply<'_, GuestConfig> {
        self.data(Call::guest_config(&self.node, vmid), GuestConfig::read)
    }

    fn configure(&self, vmid: Vmid, update: &ConfigUpdate) -> Reply<'_, ()> {
        self.done(Call::configure(&self.node, vmid, update))
    }

    fn guest_filter(&self, vmid: Vmid) -> Reply<'_, FilterFacts> {
        Box::pin(async move {
            let options = Call::firewall_options(&self.node, vmid);
            let options = self.ask(options, |answer| filter::options(&answer.data)).await?;
            let sets = Call::address_sets(&self.node, vmid);
            if !self.ask(sets, |answer| filter::has_set(&answer.data)).await? {
                return Ok(options);
            }
            let entries = Call::address_set(&self.node, vmid);
            let allowed = self.ask(entries, |answer| filter::entries(&answer.data)).await?;
            Ok(FilterFacts { allowed: Some(allowed), ..options })
        })
    }

    fn change_filter(&self, vmid: Vmid, change: FilterChange) -> Reply<'_, ()> {
        self.done(Call::change_filter(&self.node, vmid, change))
    }

    fn unprotect(&self, proof: &LiftProof, digest: &Digest) -> Reply<'_, ()> {
        self.done(Call::unprotect(&self.node, proof, digest))
    }

    fn resize(&self, vmid: Vmid, disk: DiskSlot, size: DiskGib, digest: &Digest) -> Reply<'_, Upid> {
        self.started(Call::resize(&self.node, vmid, disk, size, digest))
    }

    fn reassign(&self, request: &ReassignRequest) -> Reply<'_, Upid> {
        self.started(Call::reassign(&self.node, request))
    }

    fn guest_status(&self, vmid: Vmid) -> Reply<'_, LxcStatus> {
        self.data(Call::guest_status(&self.node, vmid), LxcStatus::read_one)
    }

    fn start(&self, vmid: Vmid) -> Reply<'_, Upid> {
        self.started(Call::start(&self.node, vmid))
    }

    fn stop(&self, vmid: Vmid) -> Reply<'_, Upid> {
        self.started(Call::stop(&self.node, vmid))
    }

    fn shutdown(&self, vmid: Vmid, timeout_s: u32) -> Reply<'_, Upid> {
        self.started(Call::shutdown(&self.node, vmid, timeout_s))
    }

    fn interfaces(&self, vmid: Vmid) -> Reply<'_, Vec<Interface>> {
        self.data(Call::interfaces(&self.node, vmid), Interface::read_list)
    }

    fn snapshots(&self, vmid: Vmid) -> Reply<'_, Vec<Snapshot>> {
        self.data(Call::snapshots(&self.node, vmid), Snapshot::read_list)
    }

    fn snapshot_config(&self, vmid: Vmid, name: &SnapshotName) -> Reply<'_, GuestConfig> {
        self.data(Call::snapshot_config(&self.node, vmid, name), GuestConfig::read)
    }

    fn can_snapshot(&self, vmid: Vmid) -> Reply<'_, CanSnapshot> {
        self.data(Call::can_snapshot(&self.node, vmid), CanSnapshot::read)
    }

    fn snapshot(&self, vmid: Vmid, new: &NewSnapshot) -> Reply<'_, Upid> {
        self.started(Call::snapshot(&self.node, vmid, new))
    }

    fn remove_backup(&self, own: &OwnBackup) -> Reply<'_, Upid> {
        self.started(Call::remove_backup(&self.node, own))
    }

    fn remove_snapshot(&self, own: &OwnSnapshot) -> Reply<'_, Upid> {
        self.started(Call::remove_snapshot(&self.node, own))
    }

    fn roll_back(&self, own: &OwnSnapshot) -> Reply<'_, Upid> {
        self.started(Call::roll_back(&self.node, own))
    }

    fn backup(&self, vmid: Vmid, storage: &StorageName, leaves_out: &[MountPath]) -> Reply<'_, Upid> {
        self.started(Call::backup(&self.node, vmid, storage, leaves_out))
    }

    fn archive_config(&self, role: Role, archive: &VolumeId) -> Reply<'_, Secret> {
        self.data(Call::archive_config(&self.node, role, archive), |data| {
            let text = data.as_str().ok_or_else(|| Unreadable("data: a text is expected".to_owned()))?;
            Ok(Secret::new(text.to_owned()))
        })
    }

    fn storage_entries(&self) -> Reply<'_, BTreeMap<String, EntrySeen>> {
        self.data(Call::storage_entries(), entries)
    }

    fn storages(&self) -> Reply<'_, Vec<StorageStatus>> {
        self.data(Call::storages(&self.node), StorageStatus::read_list)
    }

    fn storage_status(&self, storage: &StorageName) -> Reply<'_, StorageStatus> {
        let storage = storage.clone();
        let call = Call::storage_status(&self.node, &storage);
        Box::pin(self.ask(call, move |answer| StorageStatus::read_one(&storage, &answer.data)))
    }

    fn storage_content(
        &self,
        role: Role,
        storage: &StorageName,
        kind: ContentKind,
        of: Option<Vmid>,
    ) -> Reply<'_, Vec<StoredVolume>> {
        self.data(Call::storage_content(&self.node, role, storage, kind, of), StoredVolume::read_list)
    }

    fn find_tasks(&self, query: TaskQuery) -> Reply<'_, Vec<TaskRow>> {
        Box::pin(async move {
            let call = Call::tasks(&self.node, &query);
            let role = self.pool.role(&call);
            let rows = self.ask(call, |answer| TaskRow::read_list(&answer.data)).await?;
            // Proxmox filters by kind and guest, but a token with audit rights on the node sees the tasks of all users.
            let ours = |upid: &Upid| {
                upid.kind() == query.kind.text()
                    && upid.vmid() == Some(query.vmid)
                    && upid.start_epoch_s() >= query.since_epoch_s
                    && self.sender.tokens().role_of(upid.owner()) == Some(role)
            };
            let mut found: Vec<TaskRow> = rows.into_iter().filter(|row| ours(&row.upid)).collect();
            found.sort_by_key(|row| std::cmp::Reverse(row.upid.start_epoch_s()));
            Ok(found)
        })
    }

    fn destroyed_since(&self, vmid: Vmid, since_epoch_s: u64) -> Reply<'_, Vec<TaskRow>> {
        Box::pin(async move {
            let query = TaskQuery { vmid, kind: TaskKind::Destroy, role: Role::Observe, since_epoch_s };
            let rows =
                self.ask(Call::tasks(&self.node, &query), |answer| TaskRow::read_list(&answer.data)).await?;
            let of_it = |upid: &Upid| {
                upid.kind() == query.kind.text()
                    && upid.vmid() == Some(vmid)
                    && upid.start_epoch_s() >= since_epoch_s
            };
            let mut found: Vec<TaskRow> = rows.into_iter().filter(|row| of_it(&row.upid)).collect();
            found.sort_by_key(|row| std::cmp::Reverse(row.upid.start_epoch_s()));
            Ok(found)
        })
    }

    fn running_backups(&self) -> Reply<'_, Vec<TaskRow>> {
        Box::pin(async move {
            let rows = self
                .ask(Call::running_backups(&self.node), |answer| TaskRow::read_list(&answer.data))
                .await?;
            let runs = |row: &TaskRow| row.end.is_none() && row.upid.kind() == TaskKind::Backup.text();
            Ok(rows.into_iter().filter(runs).collect())
        })
    }

    fn running_tasks(&self) -> Reply<'_, Vec<Upid>> {
        Box::pin(async move {
            let rows =
                self.ask(Call::running_tasks(&self.node), |answer| TaskRow::read_list(&answer.data)).await?;
            Ok(rows.into_iter().filter(|row| row.end.is_none()).map(|row| row.upid).collect())
        })
    }

    fn task_status(&self, upid: &Upid) -> Reply<'_, TaskStatus> {
        self.data(Call::task_status(&self.node, self.owner_of(upid), upid), TaskStatus::read)
    }

    fn task_log(&self, upid: &Upid, window: LogWindow) -> Reply<'_, TaskLog> {
        let call = Call::task_log(&self.node, self.owner_of(upid), upid, window);
        Box::pin(self.ask(call, |answer| TaskLog::read(&answer.data, answer.total.as_ref())))
    }

    fn task_stop(&self, upid: &Upid) -> Reply<'_, ()> {
        self.done(Call::task_stop(&self.node, self.owner_of(upid), upid))
    }

    fn destroy(&self, proof: UndoProof) -> Reply<'_, Upid> {
        self.started(Call::destroy(&self.node, &proof))
    }

    fn destroy_signed(&self, proof: DestroyProof) -> Reply<'_, Upid> {
        self.started(Call::destroy_signed(&self.node, &proof))
    }
}
