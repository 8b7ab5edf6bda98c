//! Users of a part: what else in its document names it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::part::DocumentPart;
use crate::desired::{BulkBackup, DesiredDocument, DesiredGuest, VolumeKind};
use crate::id::TargetName;

/// A field that names a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartUser {
    /// Of what, such as `guest web-1`.
    pub of: String,
    /// The field in it, such as `volumes.db.storage`.
    pub field: String,
}

impl fmt::Display for PartUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.of, self.field)
    }
}

/// Every field of the document that names the part, in the document's order.
#[must_use]
pub fn users(part: &DocumentPart, document: &DesiredDocument) -> Vec<PartUser> {
    match part {
        DocumentPart::Guest(_) | DocumentPart::Volume(..) => Vec::new(),
        DocumentPart::Policy(name) => {
            let under = document.guests.iter().filter(|guest| guest.policy.as_ref() == Some(name));
            under.map(|guest| of_guest(guest, "policy".to_owned())).collect()
        }
        DocumentPart::StorageTarget(name) => {
            let tiers = document.policies.iter().flat_map(|policy| {
                let local = policy.tiers.local.as_ref().map(|tier| ("tiers.local.target", &tier.target));
                let off_site = policy.tiers.off_site.as_ref();
                let off_site = off_site.map(|tier| ("tiers.off_site.backup.target", &tier.backup.target));
                let named = local.into_iter().chain(off_site);
                named.filter(|(_, target)| target.as_str() == name.as_str()).map(|(field, _)| PartUser {
                    of: format!("policy {}", policy.name),
                    field: field.to_owned(),
                })
            });
            tiers.chain(document.guests.iter().flat_map(|guest| disks(guest, name))).collect()
        }
    }
}

fn disks<'d>(guest: &'d DesiredGuest, name: &'d TargetName) -> impl Iterator<Item = PartUser> + 'd {
    let root = guest.storage.as_ref().filter(|storage| *storage == name);
    let root = root.map(|_| of_guest(guest, "storage".to_owned()));
    let volumes = guest.volumes.iter().flat_map(move |volume| {
        let lies = volume.storage.as_ref().filter(|storage| *storage == name);
        let lies = lies.map(|_| of_guest(guest, format!("volumes.{}.storage", volume.name)));
        let kept = match &volume.kind {
            VolumeKind::Bulk(BulkBackup::BackupTo(target)) if target.as_str() == name.as_str() => {
                Some(of_guest(guest, format!("volumes.{}.kind", volume.name)))
            }
            VolumeKind::Bulk(_) | VolumeKind::Hot => None,
        };
        lies.into_iter().chain(kept)
    });
    root.into_iter().chain(volumes)
}

fn of_guest(guest: &DesiredGuest, field: String) -> PartUser {
    PartUser { of: format!("guest {}", guest.name), field }
}
