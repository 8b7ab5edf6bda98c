//! Steps of a restored copy.
//!
//! The archive contains what made the guest the guest. So the restore call itself sets the copy's identity with a line
//! that names this very operation. By that line the copy is known from its first moment on. Deliberately absent:
//! starting it.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, StorageName, Vmid};
use holdfast_protocol::secret::Secret;

use super::archive_check::{archive, made};
use super::context::{Checked, Context, PENDING, Started, StepOutput};
use super::identity::{own_copy, vmid};
use super::step_config::change;
use super::step_room::{Restored, lacks};
use super::trouble::StepError;
use crate::gate::archive::{Lines, Nets, judge_backup};
use crate::gate::layout::{Layout, layout};
use crate::gate::warrant::road;
use crate::gate::{Approved, Effect, Verdict, gate};
use crate::model::disks::Content;
use crate::model::limits;
use crate::model::mark::{self, Mark};
use crate::model::net::ResolverText;
use crate::model::records::{self, Place};
use crate::operation::{Operation, RestoreCopy};
use crate::port::pve::change::{Description, Tag};
use crate::port::pve::config::Switch;
use crate::port::pve::read::Power;
use crate::port::pve::restore::BootstrapEnv;
use crate::port::pve::visibility::{NeededPrivilege, Sight};
use crate::port::pve::volume::Backing;
use crate::port::pve::{
    AclPath, ConfigChange, ContentKind, GuestConfig, PveError, RestoreCopyRequest, Role, VolumeId,
    prove_sight,
};

pub(super) fn spec<'a>(context: &'a Context<'_>) -> Result<&'a RestoreCopy, StepError> {
    match &context.progress.operation {
        Operation::RestoreCopy(copy_of) => Ok(copy_of),
        other => Err(StepError::fault(format!("a {} makes no copy", other.kind().as_str()))),
    }
}

fn from(copy_of: &RestoreCopy) -> Result<VolumeId, StepError> {
    archive(copy_of.archive().map_err(|wrong| StepError::fault(wrong.to_string()))?)
}

/// What a backup left out although its configuration does not say so.
pub(super) async fn left_out(
    context: &Context<'_>,
    guest: GuestUid,
    archive: &str,
) -> Result<Vec<String>, StepError> {
    let backups = context.ports.store.outstanding(guest, context.ports.clock.now()).await?.backups;
    let known = backups.into_iter().find(|backup| backup.archive.as_str() == archive);
    Ok(known.and_then(|backup| backup.mounts).map(|mounts| mounts.left_out).unwrap_or_default())
}

/// Is it the guest's own backup, and can a copy be made of it?
pub(super) async fn judge(context: &Context<'_>) -> Result<Layout, StepError> {
    let copy_of = spec(context)?;
    let guest = copy_of.guest();
    match context.ports.store.guest(guest.uid).await?.map(|record| record.place) {
        Some(Place::Made { vmid, .. }) if vmid == guest.vmid => {}
        _ => {
            let text = format!(
                "our records do not know {} as guest {} any more, as it was signed for: a new signature is needed",
                guest.name, guest.vmid
            );
            return Err(StepError::give_up(ErrorCode::TargetChanged, text));
        }
    }
    let text = context.ports.pve.archive_config(Role::Allocate, &from(copy_of)?).await?;
    let left_out = left_out(context, guest.uid, from(copy_of)?.as_str()).await?;
    Lines::read(text.expose())
        .and_then(|lines| {
            judge_backup(&lines, guest.uid, Nets::Rewritten)?;
            Ok(layout(&lines)?.without(&left_out))
        })
        .map_err(|refused| StepError::give_up(ErrorCode::Forbidden, refused.to_string()))
}

pub(super) async fn judged(context: &Context<'_>) -> Result<Started, StepError> {
    let layout = judge(context).await?;
    let copy_of = spec(context)?;
    let archive = records::VolumeId::new(from(copy_of)?.as_str());
    for (storage, disks) in shares(copy_of, &layout) {
        let restored = Restored {
            guest: copy_of.guest().uid,
            archive: &archive,
            disks,
            content: Content::Held,
            most_percent: limits::SNAPSHOT_FILL_MAX_PERCENT,
        };
        if let Some(why) = lacks(context, storage, restored).await? {
            let text = format!(
                "disks of the copy would lie on {storage}, which {why}: nothing is restored until there is room"
            );
            return Err(StepError::give_up(ErrorCode::StorageFull, text));
        }
    }
    let mut note = format!("its own backup {archive}");
    if !layout.left_out.is_empty() {
        note.push_str(&format!("; not in any backup, and not made: {}", layout.left_out.join(", ")));
    }
    Ok(Started::Learnt(StepOutput::note(note)))
}

/// The bytes of its disks, by storage.
fn shares<'a>(copy_of: &'a RestoreCopy, layout: &Layout) -> BTreeMap<&'a StorageName, u64> {
    let mounts = layout.mounts.values().map(|mount| (copy_of.storage_of(&mount.path), mount.size));
    let mut shares: BTreeMap<&StorageName, u64> = BTreeMap::new();
    for (storage, size) in mounts.chain([(&copy_of.storage, layout.rootfs)]) {
        *shares.entry(storage).or_default() += u64::from(size.get()) << 30;
    }
    shares
}

/// Judged once more, right before: the archive may have been exchanged meanwhile.
pub(super) async fn restore(context: &Context<'_>) -> Result<Started, StepError> {
    let copy_of = spec(context)?;
    match gate(&Effect::RestoreCopy, road(copy_of.warrant()), &Approved::default()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => return Err(StepError::fault(why)),
    }
    let layout = judge(context).await?;
    let guest = copy_of.guest();
    let source = from(copy_of)?;
    let text = mark::copy_description(guest.uid, context.progress.id, source.as_str());
    let fault = |text: String| StepError::fault(text);
    let request = RestoreCopyRequest {
        vmid: vmid(context)?,
        archive: source,
        storage: copy_of.storage.clone(),
        elsewhere: layout
            .mounts
            .iter()
            .map(|(slot, mount)| (*slot, copy_of.storage_of(&mount.path).clone()))
            .collect(),
        pool: copy_of.pool.clone(),
        nets: layout.nets,
        bridge: copy_of.bridge.clone(),
        plugged: None,
        env: BootstrapEnv::new(Secret::new(PENDING.to_owned())).map_err(|error| fault(error.to_string()))?,
        hostname: copy_of
            .hostname()
            .ok_or_else(|| fault(format!("{} has no name for a copy", guest.name)))?,
        description: Description::try_from(text).map_err(|error| fault(error.to_string()))?,
        rootfs: layout.rootfs,
        mounts: layout.mounts.into_iter().map(|(slot, mount)| (slot, (mount.path, mount.size))).collect(),
        caps: None,
        resolver: ResolverText::default(),
    };
    Ok(Started::Task(context.ports.pve.restore_copy(&request).await?))
}

/// What must still be set on it.
fn unset(context: &Context<'_>, config: &GuestConfig) -> Result<Vec<ConfigChange>, StepError> {
    let (of, by) = (context.progress.operation.uid(), context.progress.id);
    let mut changes = Vec::new();
    if mark::read(&config.tags, &config.description) != (Mark::Copy { of, by }) {
        let tags = mark::copy_tags(by).iter().map(|tag| tag.parse::<Tag>()).collect::<Result<Vec<_>, _>>();
        changes.push(ConfigChange::Tags(tags.map_err(|error| StepError::fault(error.to_string()))?));
    }
    if config.env.is_some() {
        changes.push(ConfigChange::ClearEnv);
    }
    // A container that is to take its guest's place takes the guest's volumes first, and a protected one takes none.
    let protects = matches!(context.progress.operation, Operation::RestoreCopy(_));
    if protects && config.protection == Switch::Off {
        changes.push(ConfigChange::Protect);
    }
    Ok(changes)
}

/// Nothing has to be set on a container that is to take its guest's place.
pub(super) fn fresh(context: &Context<'_>, config: &GuestConfig) -> Result<(), StepError> {
    if unset(context, config)?.is_empty() {
        return Ok(());
    }
    let text = "the mark or the environment of the new container is not as it was set: somebody changed it";
    Err(StepError::give_up(ErrorCode::TargetChanged, text))
}

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_copy(context).await?;
    let bridge = match &context.progress.operation {
        Operation::RebaseGuest(rebase) => &rebase.successor.bridge,
        Operation::RestoreCopy(copy_of) => &copy_of.bridge,
        other => return Err(StepError::fault(format!("a {} makes no copy", other.kind().as_str()))),
    };
    made(&config, bridge)?;
    Ok(if unset(context, &config)?.is_empty() {
        Checked::Happened(StepOutput::nothing())
    } else {
        Checked::Not
    })
}

pub(super) async fn tag_copy(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_copy(context).await?;
    if let Some(kind) = config.lock.clone() {
        return Err(PveError::Locked { kind }.into());
    }
    let changes = unset(context, &config)?;
    change(context, config, changes).await
}

/// Everything that must hold of a copy that is left for a person.
pub(super) async fn check(context: &Context<'_>) -> Result<Vec<String>, StepError> {
    let (vmid, copy_of) = (vmid(context)?, spec(context)?);
    let config = own_copy(context).await?;
    let mut wrong = isolated(copy_of, &config);
    if !unset(context, &config)?.is_empty() {
        wrong.push("its mark, its bootstrap token or its protection is not as it was set".to_owned());
    }
    if context.ports.pve.guest_status(vmid).await?.power != Power::Stopped {
        wrong.push("it runs: somebody started it".to_owned());
    }
    wrong.extend(shared_address(context, copy_of.guest().vmid, &config).await?);
    wrong.extend(unlisted(context, vmid).await?);
    Ok(wrong)
}

fn isolated(copy_of: &RestoreCopy, config: &GuestConfig) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut hold = |right: bool, what: String| {
        if !right {
            wrong.push(what);
        }
    };
    hold(config.unprivileged == Switch::On, "it is privileged".to_owned());
    hold(config.onboot == Switch::Off, "it would start with the node".to_owned());
    hold(config.template == Switch::Off, "it is a template".to_owned());
    hold(config.lock.is_none(), format!("it is locked ({:?})", config.lock));
    hold(config.raw_lxc.is_empty(), "it has raw lxc lines".to_owned());
    let wanted = copy_of.hostname();
    hold(
        config.hostname.as_deref() == wanted.as_ref().map(holdfast_protocol::id::GuestName::as_str),
        format!("its name is {:?}", config.hostname),
    );
    for (number, net) in &config.nets {
        hold(net.split(',').any(|part| part == "link_down=1"), format!("net{number} is plugged in"));
    }
    for disk in config.mounts.values().chain(&config.rootfs) {
        hold(matches!(disk.backing, Backing::Volume(_)), format!("{:?} is no volume", disk.backing));
    }
    wrong
}

fn address(net: &str) -> Option<&str> {
    net.split(',').find_map(|part| part.strip_prefix("hwaddr="))
}

/// A hardware address that the guest has as well. When the guest cannot be seen there is nothing to compare with: the
/// restore call names no address, so Proxmox made new ones.
async fn shared_address(
    context: &Context<'_>,
    guest: Vmid,
    config: &GuestConfig,
) -> Result<Option<String>, StepError> {
    let guests = match context.ports.pve.guest_config(guest).await {
        Ok(guest) => guest.nets,
        Err(PveError::Gone { .. } | PveError::Permission { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let theirs: BTreeSet<&str> = guests.values().filter_map(|net| address(net)).collect();
    let shared = config.nets.values().filter_map(|net| address(net)).find(|own| theirs.contains(own));
    Ok(shared.map(|own| format!("it has the hardware address {own} of its guest")))
}

/// A volume of it that its storage does not list. `OK` of a restore proves no disk.
async fn unlisted(context: &Context<'_>, vmid: Vmid) -> Result<Option<String>, StepError> {
    let volumes = context.progress.volumes();
    let named = volumes.iter().filter_map(|volume| volume.as_str().split_once(':')?.0.parse().ok());
    let storages: BTreeSet<StorageName> = named.collect();
    let mut wanted = vec![NeededPrivilege { path: AclPath::guest(vmid), sight: Sight::DisksOf }];
    wanted.extend(
        storages.iter().map(|name| NeededPrivilege { path: AclPath::storage(name), sight: Sight::Disks }),
    );
    if let Err(blind) = prove_sight(context.ports.pve.as_ref(), Role::Operate, &wanted).await? {
        return Ok(Some(format!("its volumes cannot be listed: {blind}")));
    }
    let mut listed = BTreeSet::new();
    for storage in &storages {
        let list = context
            .ports
            .pve
            .storage_content(Role::Operate, storage, ContentKind::Rootdir, Some(vmid))
            .await?;
        listed.extend(list.into_iter().map(|entry| entry.volid.as_str().to_owned()));
    }
    let missing = volumes.iter().find(|volume| !listed.contains(volume.as_str()));
    Ok(missing.map(|volume| format!("its volume {volume} is not listed")))
}
