//! Backups in windows that guests asked for.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, StorageName};
use holdfast_protocol::protection::Tier;

use super::points::Around;
use super::tier::OutstandingPoint;
use super::{Promised, backups_of, known, outstanding, promised, space, target};
use crate::model::records::BackupWhy;
use crate::operation::{Backup, DuePoint, Target};
use crate::plan::{Context, bulk};

/// The backup, for the tier that is named; without one for the fastest that is due, else for the local one.
///
/// # Errors
/// What keeps it from being taken, for the guest that asked.
pub(in crate::plan) fn backup(
    context: &Context<'_>,
    guest: GuestUid,
    target: Target,
    tier: Option<Tier>,
) -> Result<Backup, ErrorBody> {
    let inputs = context.inputs;
    let Some((promised, outstanding)) = chosen(context, guest, tier) else {
        let storage =
            inputs.policy.backup_storage.clone().filter(|_| tier.is_none_or(|tier| tier == Tier::Local));
        let storage = storage.ok_or_else(|| no_storage(tier))?;
        return plain(context, target, storage);
    };
    target::judge(inputs, &promised).map_err(|closed| ErrorBody::new(closed.code, closed.message))?;
    if let Some(storage) = promised.target {
        space::judge(inputs.observed, backups_of(inputs.records, guest), (storage, promised.tier))?;
    }
    let open = outstanding.last.filter(super::tier::DueBackup::is_open);
    let due = open.map(|due| DuePoint {
        tier: promised.tier,
        point: due.point,
        begun: due.begun,
        at: inputs.time.at,
    });
    let storage = promised.target.cloned().ok_or_else(|| no_storage(tier))?;
    let why = if due.is_some() { BackupWhy::Schedule } else { BackupWhy::Asked };
    let leaves_out = bulk::leaves_out(inputs, guest, &storage);
    Ok(Backup { target, storage, why, due, key: promised.key.cloned(), leaves_out })
}

/// A backup for no policy, to a storage of the host.
///
/// # Errors
/// [`ErrorCode::StorageFull`].
pub(in crate::plan) fn plain(
    context: &Context<'_>,
    target: Target,
    storage: StorageName,
) -> Result<Backup, ErrorBody> {
    let (inputs, guest) = (context.inputs, target.uid);
    space::judge(inputs.observed, backups_of(inputs.records, guest), (&storage, Tier::Local))?;
    let (why, leaves_out) = (BackupWhy::Asked, bulk::leaves_out(inputs, guest, &storage));
    Ok(Backup { target, storage, why, due: None, key: None, leaves_out })
}

/// A backup of one tier, now, whatever is due: it covers no point of the schedule, since no programs stand still for
/// it.
///
/// # Errors
/// What keeps it from being taken, for the caller that requested it.
pub(in crate::plan) fn now(
    context: &Context<'_>,
    guest: GuestUid,
    target: Target,
    tier: Tier,
) -> Result<Backup, ErrorBody> {
    let backup = backup(context, guest, target, Some(tier))?;
    Ok(Backup { why: BackupWhy::Asked, due: None, ..backup })
}

/// A backup that something else waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) enum FirstBackup {
    /// One is due: the schedule takes it, with the guest's programs at rest where that is promised.
    Due,
    /// None is.
    Now(Backup),
}

/// How a guest gets a backup before something else: by its schedule where one is due, else one for no point of it.
///
/// # Errors
/// What keeps it from being taken.
pub(in crate::plan) fn first(
    context: &Context<'_>,
    guest: GuestUid,
    target: Target,
) -> Result<FirstBackup, ErrorBody> {
    let backup = backup(context, guest, target, None)?;
    Ok(match backup.due {
        Some(_) => FirstBackup::Due,
        None => FirstBackup::Now(backup),
    })
}

/// The tier of the guest's promise that is meant.
fn chosen<'a>(
    context: &Context<'a>,
    guest: GuestUid,
    tier: Option<Tier>,
) -> Option<(Promised<'a>, OutstandingPoint)> {
    let inputs = context.inputs;
    let records = inputs.records;
    let promise = records.protections.get(&guest)?;
    let place = records.guests.binary_search_by_key(&guest, |record| record.uid).ok()?;
    let known = known(inputs, records.guests.get(place)?);
    let all: Vec<_> = promised(promise)
        .into_iter()
        .filter(|promised| promised.target.is_some())
        .map(|promised| {
            (promised, outstanding(&known, &promised, Around::of(promised.schedule, inputs.time.at)))
        })
        .collect();
    let of = |wanted: Tier| all.iter().find(|(promised, _)| promised.tier == wanted).copied();
    let due =
        || all.iter().find(|(_, outstanding)| outstanding.last.is_some_and(|due| due.is_open())).copied();
    match tier {
        Some(tier) => of(tier),
        None => due().or_else(|| of(Tier::Local)),
    }
}

/// The error of a host that has no storage for such a backup.
fn no_storage(tier: Option<Tier>) -> ErrorBody {
    let text = match tier {
        Some(Tier::OffSite) => {
            "no off-site backup is promised to this guest: an operator must put it under a policy that has one"
        }
        Some(Tier::Snapshot) => "a snapshot is no backup: ask for one by itself",
        _ => "this box has no storage for backups: an operator must name one in its settings",
    };
    ErrorBody::new(ErrorCode::Unavailable, text)
}
