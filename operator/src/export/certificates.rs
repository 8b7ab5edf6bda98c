//! Restore certificates of guests: what their last proved test showed.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::restore_certificate::CertificateView;
use serde::Serialize;

use super::ExportRun;
use super::selection::Selection;
use crate::state_errors::ExportError;

/// Guests that are asked for, at most.
const GUESTS_MAX: usize = 5_000;

#[derive(Debug, Serialize)]
struct CertificateRow {
    host: String,
    guest: GuestUid,
    guest_name: String,
    customer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
    backup_taken_at: String,
    backup_bytes: u64,
    tested_at: String,
    verdict: &'static str,
    /// How long a return takes, from the restore to a guest that is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    return_s: Option<u64>,
    checks: Vec<String>,
    reason: String,
    agent_version: String,
    is_countersigned: bool,
}

fn row(view: &CertificateView) -> Option<CertificateRow> {
    let document = view.certificate.read().ok()?;
    Some(CertificateRow {
        host: document.host.name.to_string(),
        guest: document.guest.uid,
        guest_name: document.guest.name.to_string(),
        customer: document.guest.customer.to_string(),
        tier: document.backup.tier.map(|tier| tier.to_string()),
        backup_taken_at: document.backup.taken_at.at().to_string(),
        backup_bytes: document.backup.bytes,
        tested_at: document.test.ended_at.at().to_string(),
        verdict: document.test.verdict.as_str(),
        return_s: document.test.return_s(),
        checks: document.test.checks.iter().map(ToString::to_string).collect(),
        reason: document.test.reason.clone(),
        agent_version: document.agent_version,
        is_countersigned: view.certificate.hub.is_some(),
    })
}

/// Writes them, also those from before the period: they are what is proved.
pub async fn write(run: &mut ExportRun<'_>, selection: &Selection) -> Result<(), ExportError> {
    run.screen.note("restore certificates …");
    let mut file = run.folder.file("certificates.jsonl")?;
    let tested: Vec<_> = selection.guests.iter().filter(|(_, guest)| guest.is_tested).collect();
    for (uid, guest) in tested.iter().take(GUESTS_MAX) {
        let (host, uid) = (guest.host.to_string(), uid.to_string());
        let path = ["v1", "hosts", &host, "guests", &uid, "restore-certificate"];
        let found: Option<CertificateView> = run.hub.find(&path).await?;
        if let Some(row) = found.as_ref().and_then(row) {
            file.push(&row)?;
        }
    }
    if let Some(more) = tested.len().checked_sub(GUESTS_MAX).filter(|more| *more > 0) {
        file.leave_out(more as u64);
        file.remark(format!("of at most {GUESTS_MAX} guests: narrow it with --customer or --filter"));
    }
    run.folder.add(file)
}
