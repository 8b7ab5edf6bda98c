//! Steps of a backup: take, follow, find.
//!
//! ```text
//! task ended well or with an error ─▶ the archive is listed, or it is not
//! how it ended is not known        ─▶ not captured, lock left: the guest may stay frozen: parked at once
//!                                  ─▶ captured, local archive: no process finishes it: over at once
//!                                  ─▶ captured, backup server: its client goes on: followed while it is listed
//! ```

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{KeyFingerprint, MountPath, StorageName, Vmid};
use jiff::Timestamp;

use super::context::{Checked, Context, Started, StepOutput};
use super::disks;
use super::identity::{free_config, vmid};
use super::step_window;
use super::trouble::StepError;
use crate::model::hardware::HardwareAddress;
use crate::model::limits;
use crate::model::records::{HeldMounts, VolumeId};
use crate::model::storage::TargetRecord;
use crate::operation::Operation;
use crate::operation::log::Finding;
use crate::plan::schedule::space;
use crate::plan::{bulk, offsite};
use crate::port::disk_marker::{Before, Expected};
use crate::port::pve::read::StoredVolume;
use crate::port::pve::task::TaskEnd;
use crate::port::pve::volume::{Disk, InBackup};
use crate::port::pve::{ContentKind, GuestConfig, LogWindow, PveError, Role, TaskStatus, Upid};

/// How often to look for an archive whose worker is gone.
const LOOK: Duration = Duration::from_secs(30);

/// More archives than can be made within one second.
const RECORDS: u32 = 8;

/// The line that names the archive comes after about twenty others. In mode `suspend` it also comes after the messages
/// of the first copy about changed files. This many are read at once, and this many in all.
const LINES: u64 = 500;
const LINES_MAX: u64 = 20_000;

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    let task = Task::of(context).await?;
    if let Listed::Whole(found) = listed(context, &task).await? {
        return happened(context, &task, found).await;
    }
    match task.end {
        Ended::None | Ended::Clearly => Ok(Checked::Not),
        Ended::NotYet => Err(StepError::at_work("the backup still runs: it is followed to its end")),
        Ended::NoOneKnows => unwatched(context, &task).await,
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let config = free_config(context).await?;
    sealed_on_the_way(context).await?;
    let leaves_out = leaves_out(context, &config)?;
    has_room(context).await?;
    step_window::begin(context).await?;
    Ok(Started::Task(context.ports.pve.backup(vmid(context)?, storage(context)?, &leaves_out).await?))
}

fn storage<'a>(context: &'a Context<'_>) -> Result<&'a StorageName, StepError> {
    match &context.progress.operation {
        Operation::Provision(provision) => provision.backup_storage.as_ref(),
        operation => operation.backup().map(|backup| &backup.storage),
    }
    .ok_or_else(|| StepError::fault("this operation has no backup storage"))
}

/// Checked once more: a first backup was planned with its guest, and others fill the storage while this one waits for
/// its slot. A storage that does not answer blocks no backup.
async fn has_room(context: &Context<'_>) -> Result<(), StepError> {
    let (storage, ports) = (storage(context)?, context.ports);
    let Ok(status) = ports.pve.storage_status(storage).await else { return Ok(()) };
    if !status.active {
        return Ok(());
    }
    let backups = ports.store.backups(context.progress.operation.uid(), RECORDS).await?;
    let used = ports.pve.guest_status(vmid(context)?).await.map_or(0, |seen| seen.disk_used);
    // A backup server stores only new data.
    let takes = if status.kind == "pbs" { 0 } else { space::takes(&backups, storage, used) };
    let room = space::Room { total: status.total, available: status.available };
    space::fits(storage, room, takes).map_err(|full| StepError::give_up(full.code, full.message))
}

/// Mounts whose data belongs to another target, as far as they can be left out. A mount that is no volume, or that has
/// another mount below it, is included rather than lost.
fn leaves_out(context: &Context<'_>, config: &GuestConfig) -> Result<Vec<MountPath>, StepError> {
    let intended = match &context.progress.operation {
        Operation::Provision(provision) => bulk::elsewhere(&provision.guest.volumes, None, storage(context)?),
        operation => operation.backup().map(|backup| backup.leaves_out.clone()).unwrap_or_default(),
    };
    let in_backup = |disk: &&Disk| disk.volume().is_some() && disk.in_backup == InBackup::Yes;
    let paths = || config.mounts.values().filter_map(|disk| disk.mount.as_deref());
    let is_there = |path: &MountPath| {
        config.mounts.values().filter(in_backup).any(|disk| disk.mount.as_deref() == Some(path.as_str()))
    };
    let is_alone = |path: &MountPath| !paths().any(|other| other.starts_with(&format!("{path}/")));
    Ok(intended.into_iter().filter(|path| is_there(path) && is_alone(path)).collect())
}

/// Which mounts the archive holds, by the configuration under which it was taken.
fn held(config: &GuestConfig, leaves_out: &[MountPath]) -> HeldMounts {
    let volumes = config.mounts.values().filter(|disk| disk.volume().is_some());
    let taken = volumes.filter(|disk| disk.in_backup == InBackup::Yes).filter_map(|disk| disk.mount.clone());
    let (left_out, holds) = taken.partition(|path| leaves_out.iter().any(|out| out.as_str() == path));
    HeldMounts { holds, left_out }
}

/// The key that it must be encrypted with: the promised one, else that of its backup server, no matter what requested
/// it.
async fn key(context: &Context<'_>) -> Result<Option<KeyFingerprint>, StepError> {
    let promised = context.progress.operation.backup().and_then(|backup| backup.key.clone());
    if promised.is_some() {
        return Ok(promised);
    }
    let (storage, targets) = (storage(context)?, context.ports.store.storage_targets().await?);
    let approved = targets.iter().find(|target| target.approval.name.as_str() == storage.as_str());
    Ok(approved.and_then(|target| offsite::key(&target.approval)).cloned())
}

/// Data that must be encrypted does not leave the host for a storage that would store it unencrypted.
async fn sealed_on_the_way(context: &Context<'_>) -> Result<(), StepError> {
    let Some(key) = key(context).await? else { return Ok(()) };
    let storage = storage(context)?;
    let entries = context.ports.pve.storage_entries().await?;
    let entry = entries.get(storage.as_str());
    let is =
        |field: &str, value: &str| entry.and_then(|entry| entry.get(field)).is_some_and(|text| text == value);
    if is("type", "pbs") && is("encryption-key", key.as_str()) {
        return Ok(());
    }
    let text = format!(
        "storage {storage} is no backup server that encrypts with key {key}: nothing is sent to it; attach it with that key"
    );
    Err(StepError::give_up(ErrorCode::BackupUnsealed, text))
}

/// How the task of this try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// There is none.
    None,
    NotYet,
    /// With a status of its own, good or bad.
    Clearly,
    /// Without a status, as for a worker that was killed, or the task is not known any more.
    NoOneKnows,
}

/// How the archive of a try is listed.
enum Listed {
    Whole(StoredVolume),
    /// On a backup server, while its client still sends.
    Unfinished,
    Not,
}

/// The task of this try.
struct Task {
    end: Ended,
    /// The archive's name, once the log has it. From then on the guest is not held still any more.
    archive: Option<String>,
}

impl Task {
    async fn of(context: &Context<'_>) -> Result<Self, StepError> {
        let posted = context.progress.upid(context.place).and_then(|text| text.parse::<Upid>().ok());
        let Some(upid) = posted else {
            return Ok(Self { end: Ended::None, archive: None });
        };
        let pve = &context.ports.pve;
        let end = match pve.task_status(&upid).await {
            Ok(TaskStatus::Running) => Ended::NotYet,
            Ok(TaskStatus::Ended(TaskEnd::Ok | TaskEnd::Warnings(_) | TaskEnd::Failed(_))) => Ended::Clearly,
            Ok(TaskStatus::Ended(TaskEnd::Unexpected) | TaskStatus::StoppedSilently)
            | Err(PveError::NoSuchTask) => Ended::NoOneKnows,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { end, archive: named(context, &upid).await? })
    }
}

/// What the task's log calls the archive.
async fn named(context: &Context<'_>, upid: &Upid) -> Result<Option<String>, StepError> {
    let mut start = 0;
    while start < LINES_MAX {
        let log = match context.ports.pve.task_log(upid, LogWindow { start, limit: LINES }).await {
            Ok(log) => log.lines,
            Err(PveError::NoSuchTask) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let name = log.iter().find_map(|line| archive_in(line));
        let read = u64::try_from(log.len()).unwrap_or(u64::MAX);
        if name.is_some() || read < LINES {
            return Ok(name);
        }
        start = start.saturating_add(read);
    }
    Ok(None)
}

/// The text after the colon in the archive's name: `vzdump-lxc-300-….tar.zst`, or `ct/300/2026-11-21T04:36:17Z`. Only
/// the beginning of a line counts: the rest may be a name from inside the guest.
fn archive_in(line: &str) -> Option<String> {
    const MOMENTS: [&str; 2] =
        ["INFO: creating vzdump archive '", "INFO: creating Proxmox Backup Server archive '"];
    let rest = MOMENTS.iter().find_map(|moment| line.strip_prefix(moment))?;
    let path = rest.split('\'').next()?;
    let name = if path.starts_with('/') { path.rsplit('/').next()? } else { path };
    (!name.is_empty()).then(|| name.to_owned())
}

/// The archive of this try is the one that its task named. Without that name, it is one that is younger than the intent
/// and that no other operation of ours took. Without a task no archive belongs to this try. A name decides when there
/// is one, because Proxmox derives an archive's time from a name in the node's local time. In the hour that autumn
/// repeats, that time is an hour too early.
async fn listed(context: &Context<'_>, task: &Task) -> Result<Listed, StepError> {
    if task.end == Ended::None {
        return Ok(Listed::Not);
    }
    let others = others(context).await?;
    let since = intended_s(context);
    let (pve, vmid) = (&context.ports.pve, vmid(context)?);
    let list = pve.storage_content(Role::Operate, storage(context)?, ContentKind::Backup, Some(vmid)).await?;
    let is_this = |entry: &StoredVolume| match &task.archive {
        Some(name) => entry.volid.ends_with(&format!("/{name}")),
        None => entry.made_epoch_s.is_some_and(|made| made >= since),
    };
    let ours = list.into_iter().filter(|entry| entry.vmid == Some(vmid) && is_this(entry));
    // A backup that still runs on a backup server is listed already, with size 1.
    let (whole, unfinished): (Vec<_>, Vec<_>) = ours.partition(|entry| entry.size > 1);
    let whole = whole.into_iter().filter(|entry| !others.contains(entry.volid.as_str()));
    Ok(match whole.max_by_key(|entry| entry.made_epoch_s) {
        Some(entry) => Listed::Whole(entry),
        None if unfinished.is_empty() => Listed::Not,
        None => Listed::Unfinished,
    })
}

/// When this try was meant, in whole seconds; the end of time where it was not.
fn intended_s(context: &Context<'_>) -> u64 {
    let since = context.progress.intended_at(context.place).map(|at| at.as_second());
    since.and_then(|second| u64::try_from(second).ok()).unwrap_or(u64::MAX)
}

/// The last archives of this guest that other operations of ours took.
async fn others(context: &Context<'_>) -> Result<BTreeSet<String>, StepError> {
    let records = context.ports.store.backups(context.progress.operation.uid(), RECORDS).await?;
    let others = records.into_iter().filter(|record| record.taken_by != context.progress.id);
    Ok(others.map(|record| record.archive.as_str().to_owned()).collect())
}

/// What a dead disk accepted exists only in the kernel's memory: its archive is listed all the same.
async fn disk_works(context: &Context<'_>, archive: &str) -> Result<(), StepError> {
    let (storage, targets) = (storage(context)?, context.ports.store.storage_targets().await?);
    let is_this = |target: &&TargetRecord| target.approval.name.as_str() == storage.as_str();
    let Some(target) = targets.iter().filter(|target| target.marked.is_some()).find(is_this) else {
        return Ok(());
    };
    let expected =
        Expected { target: target.approval.name.clone(), mark: target.mark, before: Before::Marked };
    context.ports.targets.disk(expected).await.map_err(|says| {
        let text = format!(
            "{archive} is listed, but the disk of storage {storage} does not work: {says}; the archive counts as none; look at \
             the disk's cable and at `dmesg`"
        );
        StepError::give_up(ErrorCode::StorageGone, text)
    })
}

async fn happened(context: &Context<'_>, task: &Task, entry: StoredVolume) -> Result<Checked, StepError> {
    disk_works(context, &entry.volid).await?;
    step_window::found(context).await?;
    // It is no older than the request for it, whatever its name says.
    let made = entry.made_epoch_s.map(|second| second.max(intended_s(context)));
    let made = made.and_then(|second| i64::try_from(second).ok());
    let at = made.and_then(|second| Timestamp::from_second(second).ok());
    let at = at.unwrap_or_else(|| context.ports.clock.now());
    let note = Some(format!("{} ({} MiB)", entry.volid, entry.size >> 20));
    let sealed = entry.sealed.clone();
    let lacks = match key(context).await? {
        Some(key) => (sealed.as_ref() != Some(&key)).then(|| format!("not encrypted with key {key}")),
        // No key was named for it, and a backup that goes to a backup server unencrypted is always reported.
        None => (entry.format.starts_with("pbs-") && sealed.is_none()).then(|| "not encrypted".to_owned()),
    };
    let unsealed = lacks.map(|lacks| {
        let text = format!(
            "{} is {lacks}, by the word of its storage: it counts as none; look at the entry of that storage in Proxmox",
            entry.volid
        );
        Finding::Condition(ErrorBody::new(ErrorCode::BackupUnsealed, text))
    });
    let archive = VolumeId::new(entry.volid);
    let config = context.ports.pve.guest_config(vmid(context)?).await?;
    let mounts = held(&config, &leaves_out(context, &config)?);
    let disks = disks::then(&config, &mounts).map(Box::new);
    let hardware = config.nets.get(&0).and_then(|net| HardwareAddress::of(net));
    let mounts = Some(mounts);
    let mut facts =
        vec![Finding::BackupFound { archive, bytes: entry.size, at, sealed, mounts, hardware, disks }];
    facts.extend(unsealed);
    if task.end == Ended::NoOneKnows
        && let Some(lock) = config.lock
    {
        let (text, remedy) = locked(vmid(context)?, &lock);
        facts.push(Finding::Condition(ErrorBody::new(ErrorCode::Locked, text).with("remedy", remedy)));
    }
    Ok(Checked::Happened(StepOutput { facts, note }))
}

fn locked(vmid: Vmid, lock: &str) -> (String, String) {
    let text = format!("the backup of guest {vmid} lost its worker, which left the guest locked ({lock})");
    (text, format!("pct unlock {vmid}"))
}

async fn lock(context: &Context<'_>) -> Result<Option<String>, StepError> {
    Ok(context.ports.pve.guest_config(vmid(context)?).await?.lock)
}

/// Its worker died or its task is no longer known, and there is no archive yet.
async fn unwatched(context: &Context<'_>, task: &Task) -> Result<Checked, StepError> {
    let vmid = vmid(context)?;
    let Some(archive) = task.archive.as_deref() else {
        let Some(lock) = lock(context).await? else { return Ok(Checked::Not) };
        let text = format!(
            "the backup of guest {vmid} died while it held the guest still ({lock}): the guest may stand FROZEN, although \
             Proxmox says that it runs"
        );
        let remedy = format!(
            "pct unlock {vmid}; lxc-unfreeze -n {vmid}; then take a backup, which clears what is left"
        );
        return Err(StepError::park(ErrorCode::Locked, text, remedy));
    };
    let until = context.ports.clock.monotonic() + Duration::from_secs(limits::ORPHAN_WAIT_S);
    let mut seen_before = true;
    loop {
        let seen = match listed(context, task).await? {
            Listed::Whole(found) => return happened(context, task, found).await,
            Listed::Unfinished => {
                context.say("its worker died, and the backup server still receives: followed to its end");
                true
            }
            Listed::Not => false,
        };
        // No process works on the guest any more: the node removed the lock after a reboot, or a person did.
        let lock = lock(context).await?;
        if lock.is_none() && !seen {
            return Ok(Checked::Not);
        }
        // A client may not have begun to send yet, so it is looked for twice.
        let is_over = !(seen || is_sent(archive) && seen_before);
        if is_over || context.ports.clock.monotonic() >= until {
            return Err(dead(vmid, archive, lock.as_deref()));
        }
        seen_before = seen;
        context.ports.clock.sleep(LOOK).await;
    }
}

/// Whether an archive is on a backup server, to which a client sends it: that client can outlive its worker. A local archive
/// gets its name from the worker, and so never without it.
fn is_sent(archive: &str) -> bool {
    !archive.starts_with("vzdump-")
}

/// The guest runs, and its next backup clears what is left once the lock is gone; that is tried by schedule.
fn dead(vmid: Vmid, archive: &str, lock: Option<&str>) -> StepError {
    let text = match lock {
        Some(lock) => format!(
            "the backup of guest {vmid} lost its worker, so there will be no {archive}, and the guest stays locked ({lock}): no \
             other backup of it can be taken until `pct unlock {vmid}` was run on the node; the next one clears what is left"
        ),
        None => format!("the backup of guest {vmid} lost its worker, and {archive} was not finished"),
    };
    let code = if lock.is_some() { ErrorCode::Locked } else { ErrorCode::Unavailable };
    StepError::give_up(code, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_the_archive() {
        for (line, name) in [
            (
                "INFO: creating vzdump archive '/mnt/backup2/dump/vzdump-lxc-300-2026_11_21-04_02_15.tar.zst'",
                Some("vzdump-lxc-300-2026_11_21-04_02_15.tar.zst"),
            ),
            (
                "INFO: creating Proxmox Backup Server archive 'ct/300/2026-11-21T04:36:17Z'",
                Some("ct/300/2026-11-21T04:36:17Z"),
            ),
            ("INFO: create storage snapshot 'vzdump'", None),
            ("INFO: creating vzdump archive ''", None),
            (
                "INFO: file has vanished: \"/INFO: creating vzdump archive '/dump/vzdump-lxc-300-x.tar'\"",
                None,
            ),
        ] {
            assert_eq!(archive_in(line).as_deref(), name, "{line}");
        }
    }
}
