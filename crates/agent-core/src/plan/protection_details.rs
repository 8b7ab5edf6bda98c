//! Details of a tier for reports.
//!
//! What comes in: a tier's newest good backup, all of the guest's by our records, and what their storage said. What
//! goes out: a text to be put behind the reason. Pure. Deliberately absent: the posture itself (`plan/posture`).

use std::collections::BTreeMap;

use holdfast_protocol::id::Vmid;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::storage::report::PrunedBy;

use super::schedule::facts::{Promised, ScheduleFacts};
use crate::model::observed::BackupListing;
use crate::model::offsite::Verification;
use crate::model::records::BackupRecord;

/// As much of a key's fingerprint as the server's own client shows.
const KEY_SHOWN: usize = 23;

fn verified(backup: &BackupRecord, listing: Option<&BackupListing>) -> Option<Verification> {
    match listing? {
        BackupListing::Listed { verified, .. } => verified.get(&backup.archive).copied(),
        BackupListing::Dark(_) => None,
    }
}

/// Whether its server verified a backup and did not find it as it was sent.
#[must_use]
pub fn is_damaged(backup: &BackupRecord, listing: Option<&BackupListing>) -> bool {
    verified(backup, listing).is_some_and(|said| !said.well)
}

/// Backups under VMIDs that the guest no longer has, by count. None of them is pruned: our token does not see the
/// backups under a VMID that is in no pool.
fn former<'a>(backups: impl Iterator<Item = &'a BackupRecord>, now: Option<Vmid>) -> Option<String> {
    let mut counts: BTreeMap<Vmid, usize> = BTreeMap::new();
    for backup in backups.filter(|backup| Some(backup.vmid) != now) {
        *counts.entry(backup.vmid).or_default() += 1;
    }
    let each: Vec<String> = counts.iter().map(|(vmid, count)| format!("{count} under {vmid}")).collect();
    (!each.is_empty())
        .then(|| format!("{} lie under former VMIDs, where no retention removes them", each.join(" and ")))
}

/// The text; none, where there is nothing to say.
#[must_use]
pub fn words(
    promised: &Promised<'_>,
    newest: &BackupRecord,
    known: &ScheduleFacts<'_>,
    listing: Option<&BackupListing>,
) -> String {
    let mut said = Vec::new();
    if promised.tier == Tier::OffSite {
        let key = newest.sealed.as_ref().and_then(|key| key.as_str().get(..KEY_SHOWN));
        said.extend(key.map(|key| format!("encrypted with key {key}…")));
        said.push(match verified(newest, listing) {
            Some(Verification { well: true, at }) => format!("the server found its bytes whole at {at:.0}"),
            Some(Verification { well: false, at }) => format!("the server found it damaged at {at:.0}"),
            None => "never looked through by the server".to_owned(),
        });
        if let Some(BackupListing::Listed { pruned_by: Some(by), .. }) = listing {
            said.push(match by {
                PrunedBy::Agent => "pruned by this agent".to_owned(),
                PrunedBy::Server => "pruned by the server alone".to_owned(),
            });
        }
    }
    let Some(target) = promised.target else { return String::new() };
    let of_tier = || {
        known
            .backups
            .iter()
            .filter(|backup| backup.is_of(promised.tier, target) && backup.missing_since.is_none())
    };
    said.extend(former(of_tier(), known.vmid));
    let elsewhere = of_tier().filter(|backup| backup.storage != newest.storage).count();
    if elsewhere > 0 {
        said.push(format!("{elsewhere} lie on a former target, where no retention removes them"));
    }
    if let Some(BackupListing::Listed { protected, .. }) = listing {
        let kept = of_tier().filter(|backup| protected.contains(&backup.archive)).count();
        if kept > 0 {
            said.push(format!("{kept} are protected in Proxmox and stay whatever the retention says"));
        }
    }
    if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) }
}
