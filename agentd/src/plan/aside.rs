//! What is said beside the word about a tier: of an off-site one its key, what the server found, and who removes its backups;
//! of any the backups that no retention reaches.
//!
//! What comes in: a tier's newest good backup, all of the guest's by our records, and what their storage said. What goes out:
//! words to be put behind the reason. Pure. Deliberately absent: the word itself (`plan/posture`).

use holdfast_protocol::protection::Tier;
use holdfast_protocol::storage::report::PrunedBy;

use super::schedule::{Known, Promised};
use crate::model::observed::Shelf;
use crate::model::offsite::Verification;
use crate::model::record::BackupRecord;

/// As much of a key's fingerprint as the server's own client shows.
const KEY_SHOWN: usize = 23;

fn verified(backup: &BackupRecord, shelf: Option<&Shelf>) -> Option<Verification> {
    match shelf? {
        Shelf::Listed { verified, .. } => verified.get(&backup.archive).copied(),
        Shelf::Dark(_) => None,
    }
}

/// Whether its server looked through a backup and did not find it as it was sent.
#[must_use]
pub fn is_damaged(backup: &BackupRecord, shelf: Option<&Shelf>) -> bool {
    verified(backup, shelf).is_some_and(|said| !said.well)
}

/// The words; none, where there is nothing to say.
#[must_use]
pub fn words(
    promised: &Promised<'_>,
    newest: &BackupRecord,
    known: &Known<'_>,
    shelf: Option<&Shelf>,
) -> String {
    let mut said = Vec::new();
    if promised.tier == Tier::OffSite {
        let key = newest.sealed.as_ref().and_then(|key| key.as_str().get(..KEY_SHOWN));
        said.extend(key.map(|key| format!("encrypted with key {key}…")));
        said.push(match verified(newest, shelf) {
            Some(Verification { well: true, at }) => format!("the server found its bytes whole at {at:.0}"),
            Some(Verification { well: false, at }) => format!("the server found it damaged at {at:.0}"),
            None => "never looked through by the server".to_owned(),
        });
        if let Some(Shelf::Listed { pruned_by: Some(by), .. }) = shelf {
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
    let former =
        of_tier().filter(|backup| backup.vmid != newest.vmid || backup.storage != newest.storage).count();
    if former > 0 {
        said.push(format!(
            "{former} older ones lie under a former number or target, where no retention removes them"
        ));
    }
    if let Some(Shelf::Listed { protected, .. }) = shelf {
        let kept = of_tier().filter(|backup| protected.contains(&backup.archive)).count();
        if kept > 0 {
            said.push(format!("{kept} are protected in Proxmox and stay whatever the retention says"));
        }
    }
    if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) }
}
