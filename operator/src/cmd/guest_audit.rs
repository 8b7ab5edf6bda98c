//! `holdfast guest audit`: the newest audit records about one guest.
//!
//! In: what the hub keeps of a guest, and the ends of the host's audit that it kept. Out: the records, none of them where one is not
//! what its hash says; and which of them are ends that were kept, or contradict one.

use holdfast_protocol::guest_audit::GuestAuditView;
use holdfast_protocol::id::{GuestUid, HostName};
use holdfast_protocol::local::audit::AuditRecord;
use holdfast_protocol::operator::{AuditEvidence, KeptHead};
use serde::Serialize;

use crate::cmd_errors::AuditError;
use crate::error::CliError;
use crate::hub::Hub;
use crate::render;
use crate::screen::Screen;

/// Records that hold: the document for programs.
#[derive(Debug, Serialize)]
pub struct GuestAudit {
    pub host: HostName,
    pub uid: GuestUid,
    /// Of the present epoch of its host, oldest first.
    pub records: Vec<AuditRecord>,
    /// Of earlier epochs.
    pub earlier: Vec<AuditRecord>,
    /// Numbers of the records that are ends that the hub kept.
    pub kept: Vec<i64>,
    /// Numbers under which the hub kept another line: evidence of another history.
    pub contradicted: Vec<i64>,
}

pub async fn run((host, uid): (HostName, GuestUid), hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let path = uid.to_string();
    let view: GuestAuditView = hub.get(&["v1", "hosts", host.as_str(), "guests", &path, "audit"]).await?;
    // A customer sees the records and their hashes; the ends are those of the whole host.
    let path = ["v1", "hosts", host.as_str(), "audit-heads"];
    let evidence: Option<AuditEvidence> = hub.find_permitted(&path, &[]).await?;
    let heads = evidence.map(|evidence| evidence.heads).unwrap_or_default();
    let audit = compare((host, uid), view, &heads)?;
    screen.show(&audit, render::audit::records)
}

/// Holds the records to their hashes, and those of the present epoch to its ends.
fn compare(
    (host, uid): (HostName, GuestUid),
    GuestAuditView { records, earlier }: GuestAuditView,
    heads: &[KeptHead],
) -> Result<GuestAudit, AuditError> {
    if let Some(odd) = earlier.iter().chain(&records).find(|record| !record.holds()) {
        return Err(AuditError::Record { number: odd.line.number });
    }
    let (mut kept, mut contradicted) = (Vec::new(), Vec::new());
    for AuditRecord { line, .. } in &records {
        let head = heads.iter().find(|head| i64::try_from(head.number) == Ok(line.number));
        match head {
            Some(head) if head.chain == line.chain => kept.push(line.number),
            Some(_) => contradicted.push(line.number),
            None => {}
        }
    }
    Ok(GuestAudit { host, uid, records, earlier, kept, contradicted })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::samples;

    #[test]
    fn records_are_held_to_their_hashes_and_to_kept_ends() {
        let good = samples::guest_audit();
        let head = |number: i64, chain: &str| -> KeptHead {
            samples::read(json!({ "number": number, "chain": chain, "at": "2026-11-21T02:00:00Z" }))
        };
        let held = |view: &GuestAuditView, heads: &[KeptHead]| {
            let found = compare(("box7".parse().unwrap(), samples::guest_uid()), view.clone(), heads)?;
            Ok::<_, AuditError>((found.kept, found.contradicted))
        };
        let (first, last) = (&good.records[0].line, &good.records[1].line);
        assert_eq!(held(&good, &[]).unwrap(), (vec![], vec![]));
        assert_eq!(
            held(&good, &[head(last.number, &last.chain), head(99, "")]).unwrap(),
            (vec![last.number], vec![])
        );
        assert_eq!(held(&good, &[head(last.number, &first.chain)]).unwrap(), (vec![], vec![last.number]));
        let earlier = GuestAuditView { records: Vec::new(), earlier: good.records.clone() };
        assert_eq!(
            held(&earlier, &[head(last.number, &first.chain)]).unwrap(),
            (vec![], vec![]),
            "numbers of another epoch"
        );
        let mut bad = good.clone();
        bad.records[0].line.detail.push('x');
        assert!(matches!(held(&bad, &[]), Err(AuditError::Record { number }) if number == first.number));
    }
}
