//! The history of desired documents, as differences.

use holdfast_protocol::desired::{Desired, DesiredDocument};
use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::operator::DesiredVersion;
use holdfast_protocol::resource::diff::{
    ChangedGuest, DocumentDiff, FieldChange, NamedGuest, PromisesInForce, WeakerGuest, diff,
};
use jiff::Timestamp;
use serde::Serialize;

use super::ExportRun;
use super::selection::Selection;
use crate::hub::HubError;
use crate::state_errors::ExportError;

/// A version of a host's document, as what it changed.
#[derive(Debug, Serialize)]
struct DocumentRow<'a> {
    host_id: HostId,
    host: &'a HostName,
    generation: u64,
    put_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether this version of the command can read it; where not, its changes are not known.
    is_readable: bool,
    /// None for the first one that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_generation: Option<u64>,
    settings: Vec<FieldChange>,
    /// Targets whose sealed credentials were exchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    credentials_changed: Vec<String>,
    guests_added: Vec<NamedGuest>,
    guests_changed: Vec<ChangedGuest>,
    guests_no_longer_named: Vec<NamedGuest>,
    guests_less_protected: Vec<WeakerGuest>,
}

/// Writes all versions of the period.
pub async fn write(run: &mut ExportRun<'_>, selection: &Selection) -> Result<(), ExportError> {
    run.screen.note("history of documents …");
    let mut file = run.folder.file("documents.jsonl")?;
    for (id, name) in &selection.hosts {
        let versions = versions(run, *id).await?;
        for (place, version) in versions.iter().enumerate() {
            if !run.period.has(version.put_at) {
                continue;
            }
            let before = versions.get(place + 1);
            match row((*id, name), before, version, selection) {
                Some(row) => file.push(&row)?,
                None => file.leave_out(1),
            }
        }
    }
    if !selection.is_everything() {
        file.remark(
            "versions that change no selected guest are left out, with author and reason of the others",
        );
    }
    run.folder.add(file)
}

/// Of a host, newest first, down to the one before the period.
async fn versions(run: &ExportRun<'_>, host: HostId) -> Result<Vec<DesiredVersion>, ExportError> {
    let id = host.to_string();
    let path = ["v1", "hosts", &id, "desired", "history"];
    let (mut versions, mut cursor) = (Vec::<DesiredVersion>::new(), None::<String>);
    loop {
        let page = match run.hub.page(&path, &[], cursor.as_deref()).await {
            Ok(page) => page,
            // The host was let go since.
            Err(HubError::Refused { problem, .. })
                if problem.code == holdfast_protocol::code::ErrorCode::NotFound =>
            {
                return Ok(versions);
            }
            Err(error) => return Err(error.into()),
        };
        versions.extend(page.items);
        let is_before = versions.last().is_some_and(|last| last.put_at < run.period.from);
        match page.next {
            Some(next) if !is_before => cursor = Some(next),
            _ => return Ok(versions),
        }
    }
}

/// The document without credentials, and without guests of others.
fn document(version: &DesiredVersion, selection: &Selection) -> Option<DesiredDocument> {
    let parsed = Desired::parse(version.document.as_bytes()).ok()?;
    let mut document = parsed.document().clone();
    for target in &mut document.storage {
        target.creds = None;
    }
    if !selection.is_everything() {
        document.storage.clear();
        document.guests.retain(|guest| selection.has(guest.uid));
        let used: Vec<_> = document.guests.iter().filter_map(|guest| guest.policy.clone()).collect();
        document.policies.retain(|policy| used.contains(&policy.name));
    }
    Some(document)
}

fn credentials_changed(before: Option<&DesiredVersion>, after: &DesiredVersion) -> Vec<String> {
    let of = |version: &DesiredVersion| {
        let parsed = Desired::parse(version.document.as_bytes()).ok();
        parsed.map(|parsed| parsed.document().storage.clone()).unwrap_or_default()
    };
    let old = before.map(of).unwrap_or_default();
    let changed = of(after).into_iter().filter(|target| {
        let earlier = old.iter().find(|earlier| earlier.name == target.name);
        earlier.map(|earlier| &earlier.creds) != Some(&target.creds) && target.creds.is_some()
    });
    changed.map(|target| target.name.to_string()).collect()
}

fn row<'a>(
    (host_id, host): (HostId, &'a HostName),
    before: Option<&DesiredVersion>,
    after: &DesiredVersion,
    selection: &Selection,
) -> Option<DocumentRow<'a>> {
    let new = document(after, selection);
    let old = before.and_then(|before| document(before, selection));
    let found = new.as_ref().map(|new| diff(old.as_ref(), new, &PromisesInForce::new()));
    let everything = selection.is_everything();
    if !everything && found.as_ref().is_none_or(DocumentDiff::is_empty) {
        return None;
    }
    let is_readable = found.is_some();
    let found = found.unwrap_or_else(|| DocumentDiff::unknown(after.generation));
    let named =
        |guest: holdfast_protocol::desired::DesiredGuest| NamedGuest { name: guest.name, uid: guest.uid };
    Some(DocumentRow {
        host_id,
        host,
        generation: after.generation.number(),
        put_at: after.put_at,
        by: everything.then(|| after.author.to_string()),
        reason: everything.then(|| after.reason.as_str().to_owned()),
        is_readable,
        before_generation: before.map(|before| before.generation.number()),
        settings: if everything { found.settings } else { Vec::new() },
        credentials_changed: if everything { credentials_changed(before, after) } else { Vec::new() },
        guests_added: found.added.into_iter().map(named).collect(),
        guests_changed: found.changed,
        guests_no_longer_named: found.unnamed,
        guests_less_protected: found.weaker,
    })
}
