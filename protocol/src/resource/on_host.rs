//! Parts that a host still has when a document leaves them out.
//!
//! In: the part, its content, the last report. Out: nothing, or what stays on the host without a name in the document, with
//! the commands that let it go. Leaving something out destroys nothing: a guest becomes unmanaged and runs on, and a storage
//! target stays attached. So it is asked for by its name ([`OnHost::Leave`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effects::{is_made, report_of};
use super::part::{DocumentPart, PartContent};
use crate::code::ErrorCode;
use crate::desired::DesiredDocument;
use crate::report::Sections;
use crate::storage::report::TargetStatus;

/// What is done about what the host still has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnHost {
    /// The removal is refused.
    #[default]
    Refuse,
    /// It stays there, and the document no longer names it.
    Leave,
}

/// Something that is on the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} is on {host} ({state}), and leaving it out would {becomes}. Nothing was removed: {instead}")]
pub struct StillOnHost {
    /// Which part.
    pub part: String,
    /// Which host.
    pub host: String,
    /// How it is there.
    pub state: String,
    /// What would become of it.
    pub becomes: &'static str,
    /// The commands.
    pub instead: String,
}

impl StillOnHost {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        ErrorCode::OnHost
    }
}

/// What the last report still shows of a part.
#[must_use]
pub fn still_on_host(
    part: &DocumentPart,
    document: &DesiredDocument,
    (host, sections): (&str, &Sections),
) -> Option<StillOnHost> {
    let found = |part: String, state: String, becomes, instead| {
        Some(StillOnHost { part, host: host.to_owned(), state, becomes, instead })
    };
    match (part, part.read(document)?) {
        (DocumentPart::Guest(_), PartContent::Guest(guest)) => {
            let report = report_of(sections, guest.uid).filter(|report| is_made(Some(report)))?;
            let name = &guest.name;
            let vmid = report.vmid.map_or_else(|| "made".to_owned(), |vmid| format!("VMID {vmid}"));
            let instead = format!(
                "`holdfast guest remove {host} {name} --leave` lets it go on there unmanaged, and `holdfast sign {host} {name}` destroys it then"
            );
            found(format!("guest {name}"), vmid, "let it run on unmanaged", instead)
        }
        (DocumentPart::Volume(guest, name), PartContent::Volume(volume)) => {
            let owner = document.guests.iter().find(|one| guest.names(one))?;
            let report = report_of(sections, owner.uid).filter(|report| is_made(Some(report)))?;
            let state = format!("mounted at {} where it was made", volume.mount);
            let instead = format!(
                "`?on_host=leave` lets it stay mounted without a name; `holdfast sign {host} {} --move-volume` gives its data to another guest",
                report.name
            );
            let part = format!("volume {name} of guest {}", owner.name);
            found(part, state, "keep its data mounted without a name", instead)
        }
        (DocumentPart::StorageTarget(name), _) => {
            let report = sections.storage.iter().flatten().find(|report| report.name == *name)?;
            match report.status {
                TargetStatus::Detached | TargetStatus::Held => None,
                TargetStatus::Mounted
                | TargetStatus::Unmarked
                | TargetStatus::ByProxmox
                | TargetStatus::Absent
                | TargetStatus::Dropped
                | TargetStatus::Wrong
                | TargetStatus::Refused => {
                    let state = report.status.as_str().to_owned();
                    let instead = format!(
                        "`holdfast storage set {host} {name} state=decommissioned` and `holdfast sign {host} {name}` detach it first"
                    );
                    found(format!("storage target {name}"), state, "not detach it", instead)
                }
            }
        }
        (DocumentPart::Policy(_) | DocumentPart::Guest(_) | DocumentPart::Volume(..), _) => None,
    }
}
