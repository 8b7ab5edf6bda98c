//! Guests and their volumes, as reported next to the document.

use std::collections::BTreeSet;

use holdfast_protocol::desired::{DesiredDocument, DesiredGuest, DesiredVolume, RunState};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::protection::compare::Change;
use holdfast_protocol::protection::guest::kind_words;
use holdfast_protocol::protection::{KeptVolume, Protection, compare};
use holdfast_protocol::report::{GuestReport, GuestStatus, Running, Sections};
use holdfast_protocol::resource::GuestRef;
use holdfast_protocol::resource::effects::report_of;
use holdfast_protocol::resource::view::{AppliedField, PartDifference, PartReport};

use super::{ReportedPart, differs};

/// The report of a guest: by its identity, or by its name where the document does not have it.
pub(super) fn report<'s>(
    guest: &GuestRef,
    content: Option<&DesiredGuest>,
    sections: &'s Sections,
) -> Option<&'s GuestReport> {
    if let Some(content) = content {
        return report_of(sections, content.uid);
    }
    match guest {
        GuestRef::Uid(uid) => report_of(sections, *uid),
        GuestRef::Name(name) => {
            let ours = sections.guests.iter().flatten().filter(|report| report.uid.is_some());
            ours.into_iter().find(|report| report.name == name.as_str())
        }
    }
}

/// Guests of ours that are on the host and that the document does not name.
#[must_use]
pub fn unnamed_guests(document: Option<&DesiredDocument>, sections: &Sections) -> Vec<GuestUid> {
    let named: BTreeSet<GuestUid> =
        document.iter().flat_map(|document| &document.guests).map(|guest| guest.uid).collect();
    let reported = sections.guests.iter().flatten().filter_map(|report| report.uid);
    reported.filter(|uid| !named.contains(uid)).collect()
}

pub(super) fn reported(
    content: Option<&DesiredGuest>,
    document: Option<&DesiredDocument>,
    report: Option<&GuestReport>,
) -> ReportedPart {
    let Some(report) = report else { return ReportedPart::default() };
    let mut differences = Vec::new();
    if let Some(guest) = content {
        differences.extend(of_status(report));
        differences.extend(of_fields(guest, report));
        differences.extend(of_promise(guest, document, report));
    }
    let applied = report.fields.iter().filter_map(|field| {
        let (path, applied) = (field.field.path().to_owned(), field.applied.clone()?);
        Some(AppliedField { field: path, applied })
    });
    ReportedPart {
        applied: applied.collect(),
        value: Some(PartReport::Guest(Box::new(report.clone()))),
        differences,
    }
}

fn of_status(report: &GuestReport) -> Option<PartDifference> {
    let is = match report.status {
        GuestStatus::Managed => return None,
        GuestStatus::Unmanaged => "unmanaged",
        GuestStatus::Absent => "absent",
        GuestStatus::Missing => "missing",
        GuestStatus::Foreign => "foreign",
        GuestStatus::Broken => "broken",
        GuestStatus::Parked => "parked",
        GuestStatus::RestoredCopy => "restored copy",
    };
    Some(differs("status", Some("managed".to_owned()), Some(is.to_owned())))
}

/// What the agent says of a field goes before what can be compared here.
fn of_fields(guest: &DesiredGuest, report: &GuestReport) -> Vec<PartDifference> {
    let mut all: Vec<PartDifference> = report
        .fields
        .iter()
        .filter(|field| !field.is_settled())
        .map(|field| differs(field.field.path(), field.desired.clone(), field.observed.clone()))
        .collect();
    let mut compare = |path: &str, desired: String, current: Option<String>| {
        let is_new = !all.iter().any(|one| one.path == path);
        if let Some(current) = current.filter(|current| is_new && *current != desired) {
            all.push(differs(path, Some(desired), Some(current)));
        }
    };
    let made = report.status != GuestStatus::Absent;
    compare("name", guest.name.to_string(), made.then(|| report.name.clone()));
    compare("run", desired_run(guest.run).to_owned(), running(report.run).map(str::to_owned));
    let size = report.size;
    compare("size.cores", guest.size.cores.get().to_string(), size.map(|size| size.cores.get().to_string()));
    compare(
        "size.memory_mib",
        guest.size.memory_mib.to_string(),
        size.map(|size| size.memory_mib.to_string()),
    );
    compare("size.swap_mib", guest.size.swap_mib.to_string(), size.map(|size| size.swap_mib.to_string()));
    compare(
        "size.rootfs_gib",
        guest.size.rootfs_gib.to_string(),
        size.map(|size| size.rootfs_gib.to_string()),
    );
    compare(
        "network.address",
        guest.network.address.to_string(),
        report.address.map(|address| address.to_string()),
    );
    if let (Some(wanted), Some(heard)) = (&guest.controller, &report.controller) {
        compare("controller.version", wanted.version.as_str().to_owned(), Some(heard.version.clone()));
    }
    all
}

const fn desired_run(run: RunState) -> &'static str {
    match run {
        RunState::Running => "running",
        RunState::Stopped => "stopped",
    }
}

const fn running(run: Running) -> Option<&'static str> {
    match run {
        Running::Running => Some("running"),
        Running::Stopped => Some("stopped"),
        Running::Unknown => None,
    }
}

/// What of the promise in force is not what the document asks for, by the rules of the agent.
pub(super) fn promise_differences(
    guest: &DesiredGuest,
    document: Option<&DesiredDocument>,
    report: &GuestReport,
) -> Vec<Change> {
    let Some(in_force) = report.protection.as_ref().and_then(|protection| protection.in_force.as_ref())
    else {
        return Vec::new();
    };
    let policies = document.map_or(&[][..], |document| &document.policies);
    let wanted = Protection::of_document(guest, policies).unwrap_or_else(|| Protection::of_volumes(guest));
    let compared = compare(in_force, &wanted);
    compared.raised.into_iter().chain(compared.loosened).collect()
}

fn of_promise(
    guest: &DesiredGuest,
    document: Option<&DesiredDocument>,
    report: &GuestReport,
) -> Vec<PartDifference> {
    // The name of a facet stands before its values.
    let one = |change: Change| {
        let text = change.to_string();
        let facet = text.split_once(": from ").map_or(text.as_str(), |(facet, _)| facet);
        differs(format!("protection {facet}"), Some(change.to), Some(change.from))
    };
    promise_differences(guest, document, report).into_iter().map(one).collect()
}

/// A report does not have sizes and names of volumes; what it has is what becomes of their data.
pub(super) fn volume(
    owner: Option<&DesiredGuest>,
    volume: &DesiredVolume,
    sections: &Sections,
) -> ReportedPart {
    let report = owner.and_then(|owner| report_of(sections, owner.uid));
    let in_force = report.and_then(|report| report.protection.as_ref()?.in_force.as_ref());
    let kept: Option<&KeptVolume> =
        in_force.and_then(|promise| promise.volumes.iter().find(|kept| kept.name == volume.name));
    let Some(kept) = kept else { return ReportedPart::default() };
    let mut differences = Vec::new();
    if kept.kind != volume.kind {
        differences.push(differs("kind", Some(kind_words(&volume.kind)), Some(kind_words(&kept.kind))));
    }
    ReportedPart { value: Some(PartReport::Volume(kept.clone())), differences, applied: Vec::new() }
}

/// A guest that its host has not reported yet, for filters.
#[must_use]
pub fn absent_report(guest: &DesiredGuest) -> GuestReport {
    GuestReport {
        uid: Some(guest.uid),
        name: guest.name.to_string(),
        customer: Some(guest.customer.clone()),
        vmid: guest.vmid,
        former_vmids: Vec::new(),
        status: GuestStatus::Absent,
        run: Running::Unknown,
        unknown_since: None,
        run_as_of: None,
        configuration_as_of: None,
        lock: None,
        wanted: Some(guest.run),
        size: Some(guest.size),
        limits: None,
        address: Some(guest.network.address),
        address_filter: None,
        levels: None,
        volumes: Vec::new(),
        golden: Some(guest.golden.clone()),
        golden_built_at: None,
        root_disk_data: None,
        controller: None,
        protection: None,
        conditions: Vec::new(),
        fields: Vec::new(),
    }
}
