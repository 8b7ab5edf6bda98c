//! The judge of signatures in the hostile hub suite.
//!
//! A signature allows what its text shows, and nothing else.
//!
//! In: the texts that operators signed, the requests that reached the node, and the agent's books. Out: effects that no
//! text names, in words. Deliberately absent: that a job is taken once, and by whom it was signed ([`super::judge`]).

use std::collections::{BTreeMap, BTreeSet};

use agentd::port::store::roster::RosterTexts;
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::{Act, Target};
use holdfast_protocol::operation::OperationKind;
use rusqlite::Connection;

use super::desk::{Desk, Ordered};
use crate::fixtures::ARCHIVE;
use crate::log::Effect;

/// A permission, as a request names it: a snapshot of a guest by its number, or an archive.
type Opened = (&'static str, String);

/// What the texts permit, and how often.
fn named<'a>(ordered: impl Iterator<Item = &'a Ordered>) -> BTreeMap<Opened, usize> {
    let mut named = BTreeMap::new();
    for opened in ordered.filter_map(names) {
        *named.entry(opened).or_default() += 1;
    }
    named
}

/// The request on the node that the text of a job permits by name. Other jobs are judged by their operations
/// ([`in_the_books`]), and a destroy by its task as well ([`super::judge`]).
fn names(job: &Ordered) -> Option<Opened> {
    match &job.act {
        Act::Rollback(args) => {
            let Target::Guest { vmid: Some(vmid), .. } = &job.target else { return None };
            Some(("rollback", format!("{}/{}", vmid.number(), args.snapshot)))
        }
        Act::Restore(args) => Some(("restore", args.archive.as_str().to_owned())),
        Act::AdoptGuest(_)
        | Act::AllowGrowth(_)
        | Act::ApproveRelease(_)
        | Act::AttachStorage(_)
        | Act::BreakGlass(_)
        | Act::BackupNow(_)
        | Act::Cancel(_)
        | Act::DeleteBackup(_)
        | Act::DestroyGuest(_)
        | Act::DiscardCopy(_)
        | Act::DetachStorage(_)
        | Act::ReassignVolume(_)
        | Act::RebaseGuest(_)
        | Act::LoosenPolicy(_)
        | Act::PolicyUpdate(_)
        | Act::ReleaseBrake(_)
        | Act::RestoreHost(_)
        | Act::RestoreTest(_)
        | Act::SwapGuest(_)
        | Act::SetTunnelToken(_)
        | Act::WithdrawRestore(_) => None,
    }
}

/// The operations that may be opened for a job. Its id is theirs.
const fn operations(act: &Act) -> &'static [OperationKind] {
    match act {
        Act::AdoptGuest(_) => &[OperationKind::AdoptGuest],
        Act::BackupNow(_) => &[OperationKind::Backup, OperationKind::QuiescedBackup],
        Act::DeleteBackup(_) => &[OperationKind::PruneBackup],
        Act::DestroyGuest(_) => &[OperationKind::Destroy],
        Act::DiscardCopy(_) => &[OperationKind::DiscardCopy],
        Act::ReassignVolume(_) => &[OperationKind::ReassignVolume],
        Act::RebaseGuest(_) => &[OperationKind::RebaseGuest],
        Act::Restore(_) => &[OperationKind::RestoreCopy],
        Act::RestoreTest(_) => &[OperationKind::RestoreTest],
        Act::Rollback(_) => &[OperationKind::RollBack],
        Act::SwapGuest(_) => &[OperationKind::SwapGuest],
        Act::AllowGrowth(_)
        | Act::ApproveRelease(_)
        | Act::AttachStorage(_)
        | Act::BreakGlass(_)
        | Act::Cancel(_)
        | Act::DetachStorage(_)
        | Act::LoosenPolicy(_)
        | Act::PolicyUpdate(_)
        | Act::ReleaseBrake(_)
        | Act::RestoreHost(_)
        | Act::SetTunnelToken(_)
        | Act::WithdrawRestore(_) => &[],
    }
}

/// Operations that nothing but a signed job opens.
const SIGNED_ONLY: [OperationKind; 7] = [
    OperationKind::AdoptGuest,
    OperationKind::Destroy,
    OperationKind::DiscardCopy,
    OperationKind::ReassignVolume,
    OperationKind::RebaseGuest,
    OperationKind::RestoreCopy,
    OperationKind::SwapGuest,
];

/// Operations that no text names, that are of another kind or guest than their text says, or that began after its end.
#[must_use]
pub fn operations_beyond(books: &Connection, desk: &Desk) -> Vec<String> {
    let mut select =
        books.prepare("SELECT id, kind, guest, opened_at FROM operation ORDER BY serial").unwrap();
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .unwrap()
        .map(Result::unwrap);
    let wrong = |(id, kind, guest, opened_at): (String, String, String, i64)| {
        let job = id.parse::<JobId>().ok().and_then(|id| desk.ordered.get(&id));
        let Some(job) = job else {
            let signed_only = SIGNED_ONLY.iter().any(|only| only.as_str() == kind);
            return signed_only.then(|| format!("{kind} of guest {guest} was opened, and no text names it"));
        };
        let allowed = operations(&job.act).iter().any(|allowed| allowed.as_str() == kind);
        if !allowed || job.guest.is_none_or(|named| named.to_string() != guest) {
            let verb = job.act.verb();
            return Some(format!("job {id} is {verb:?} of {:?}, and opened {kind} of {guest}", job.guest));
        }
        (opened_at > job.until.as_microsecond()).then(|| format!("job {id} was begun after its end"))
    };
    rows.filter_map(wrong).collect()
}

/// Jobs that were stopped, and no text says so.
#[must_use]
pub fn stopped_beyond(books: &Connection, desk: &Desk) -> Vec<String> {
    let named = |job: &Ordered| match &job.act {
        Act::Cancel(args) => Some(args.job.to_string()),
        _ => None,
    };
    let named: BTreeSet<String> = desk.ordered.values().filter_map(named).collect();
    let mut select = books.prepare("SELECT id FROM job WHERE state = 'cancelled'").unwrap();
    let stopped: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let beyond = stopped.into_iter().filter(|id| !named.contains(id));
    beyond.map(|id| format!("job {id} was stopped, and no text names it")).collect()
}

/// The permission that a successful request used.
fn opened(effect: &Effect) -> Option<Opened> {
    if effect.status != 200 {
        return None;
    }
    if let Some(archive) = effect.archive.as_ref().filter(|archive| *archive != ARCHIVE) {
        return Some(("restore", archive.clone()));
    }
    let (guest, snapshot) = effect.path.split_once("/lxc/")?.1.split_once("/snapshot/")?;
    Some(("rollback", format!("{guest}/{}", snapshot.strip_suffix("/rollback")?)))
}

/// Used permissions that no text, or too few texts, name.
#[must_use]
pub fn beyond<'a>(ordered: impl Iterator<Item = &'a Ordered>, effects: &[Effect]) -> Vec<String> {
    let named = named(ordered);
    let mut done: BTreeMap<Opened, usize> = BTreeMap::new();
    for opened in effects.iter().filter_map(opened) {
        *done.entry(opened).or_default() += 1;
    }
    let most = |opened: &Opened| named.get(opened).copied().unwrap_or_default();
    let beyond = done.iter().filter(|(opened, times)| **times > most(opened));
    beyond
        .map(|(opened, times)| {
            let (kind, what) = opened;
            format!("{kind} of {what}, {times} times, and texts named it {} times", most(opened))
        })
        .collect()
}

/// The volumes that texts release, as the scene names them.
#[must_use]
pub fn let_go(desk: &Desk) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for job in desk.ordered.values() {
        if let (Act::DestroyGuest(_), Target::Guest { fingerprint, .. }) = (&job.act, &job.target) {
            let names = fingerprint.volumes.iter();
            all.extend(names.map(|name| name.strip_suffix(".raw").unwrap_or(name).to_owned()));
        }
    }
    all
}

/// Rosters that came into use without a signed text, and orders that no text took back.
#[must_use]
pub fn in_the_books(books: &Connection, desk: &Desk) -> Vec<String> {
    let texts = |job: &Ordered| match &job.act {
        Act::PolicyUpdate(args) => Some((args.signers.clone(), args.policy.clone())),
        _ => None,
    };
    let RosterTexts { operators, policy } = desk.laid_down();
    let mut rosters: BTreeSet<_> = desk.ordered.values().filter_map(texts).collect();
    rosters.insert((operators, policy));
    let mut wrong = Vec::new();
    let pairs = |sql: &str| -> Vec<(String, String)> {
        let mut select = books.prepare(sql).unwrap();
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    for found in pairs("SELECT operators, policy FROM roster ORDER BY version") {
        if !rosters.contains(&found) {
            wrong.push(format!("a roster is in use that no text shows: {}", found.1));
        }
    }
    for (digest, job) in pairs("SELECT digest, job FROM withdrawn_order") {
        let order = job.parse::<JobId>().ok().and_then(|id| desk.ordered.get(&id));
        let named =
            |job: &Ordered| matches!(&job.act, Act::WithdrawRestore(args) if args.order.as_str() == digest);
        if !order.is_some_and(named) {
            wrong.push(format!("order {digest} was taken back by {job}, which names another or none"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use holdfast_protocol::generation::Generation;
    use holdfast_protocol::job::act::args;

    use super::*;
    use crate::hostile::desk::{Moment, target};

    fn effect(path: &str, archive: Option<&str>) -> Effect {
        Effect {
            at: Duration::ZERO,
            step: "step",
            call: "call",
            path: path.to_owned(),
            status: 200,
            archive: archive.map(str::to_owned),
        }
    }

    #[test]
    fn another_snapshot_and_another_archive_are_found() {
        let mut desk = Desk::default();
        let moment = Moment {
            host: "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02".parse().unwrap(),
            epoch: holdfast_protocol::job::HostEpoch::new(1),
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        let archive = "backup2:backup/vzdump-lxc-300-2026_11_22-02_30_00.tar.zst";
        let rollback = Act::Rollback(args::Rollback { snapshot: "d3".parse().unwrap() });
        let restore = Act::Restore(args::Restore { archive: archive.to_owned().try_into().unwrap() });
        desk.order(moment, rollback, target(1));
        desk.order(moment, restore, target(1));
        drop(desk.release(Generation::new(1)));
        let beyond = |effects: &[Effect]| beyond(desk.ordered.values(), effects).len();
        let right = effect("/api2/json/nodes/pve1/lxc/300/snapshot/d3/rollback", None);
        let restored = effect("/api2/json/nodes/pve1/lxc", Some(archive));
        let made = effect("/api2/json/nodes/pve1/lxc", Some(ARCHIVE));
        assert_eq!(beyond(&[right.clone(), restored.clone(), made]), 0);
        assert_eq!(beyond(&[right.clone(), right]), 1, "one text opens once");
        for path in ["lxc/300/snapshot/d1/rollback", "lxc/301/snapshot/d3/rollback"] {
            assert_eq!(beyond(&[effect(&format!("/api2/json/nodes/pve1/{path}"), None)]), 1, "{path}");
        }
        let other = archive.replace("22", "21");
        assert_eq!(beyond(&[effect("/api2/json/nodes/pve1/lxc", Some(&other))]), 1);
        assert_eq!(beyond(&[restored.clone(), restored]), 1);
    }
}
