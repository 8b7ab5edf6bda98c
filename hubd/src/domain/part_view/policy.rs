//! Backup policies: the promises of the guests under them.

use holdfast_protocol::desired::DesiredDocument;
use holdfast_protocol::protection::BackupPolicy;
use holdfast_protocol::report::Sections;
use holdfast_protocol::resource::diff::NamedGuest;
use holdfast_protocol::resource::effects::report_of;
use holdfast_protocol::resource::view::{GuestUnderPolicy, PartReport, PolicyReport};

use super::guest::promise_differences;
use super::{ReportedPart, differs};

pub(super) fn reported(
    policy: &BackupPolicy,
    document: Option<&DesiredDocument>,
    sections: &Sections,
) -> ReportedPart {
    let under = document.iter().flat_map(|document| &document.guests);
    let under = under.filter(|guest| guest.policy.as_ref() == Some(&policy.name));
    let guests: Vec<GuestUnderPolicy> = under
        .filter_map(|guest| {
            let report = report_of(sections, guest.uid)?;
            let guest_name = NamedGuest { name: guest.name.clone(), uid: guest.uid };
            let differs = promise_differences(guest, document, report);
            let differs = differs.iter().map(ToString::to_string).collect();
            Some(GuestUnderPolicy { guest: guest_name, differs })
        })
        .collect();
    if guests.is_empty() {
        return ReportedPart::default();
    }
    let off = guests.iter().filter(|guest| !guest.differs.is_empty());
    let differences =
        off.map(|guest| differs(format!("guest {}", guest.guest.name), None, Some(guest.differs.join("; "))));
    ReportedPart {
        differences: differences.collect(),
        value: Some(PartReport::Policy(PolicyReport { guests })),
        applied: Vec::new(),
    }
}
