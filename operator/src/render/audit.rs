//! Text of a verified audit.

use holdfast_protocol::local::audit::AuditRecord;
use jiff::Timestamp;

use super::table::{Field, NOTHING, list, plain, table};
use super::time::stamp;
use crate::cmd::audit::AuditVerification;
use crate::cmd::guest_audit::GuestAudit;
use crate::screen::Style;

/// Records about one guest.
pub fn records(audit: &GuestAudit, style: Style) -> String {
    if audit.records.is_empty() && audit.earlier.is_empty() {
        return "The hub has no audit record of this guest yet.\n".to_owned();
    }
    let earlier = audit.earlier.iter().map(|record| row(record, " (earlier epoch)"));
    let rows = earlier.chain(audit.records.iter().map(|record| row(record, "")));
    let table = table(&["NUMBER", "AT", "ACTION", "OPERATION", "DETAIL"], rows, style);
    let mut text = format!(
        "{table}\nEach record is what its hash says; {} of {} are ends of the audit that the hub kept.\n",
        audit.kept.len(),
        audit.records.len()
    );
    for number in &audit.contradicted {
        text.push_str(&format!(
            "Evidence: the hub kept another line {number} of this host. Another history was shown to it.\n"
        ));
    }
    text
}

fn row(AuditRecord { line, .. }: &AuditRecord, epoch: &str) -> Vec<Field> {
    let at = Timestamp::from_microsecond(line.at_us).map_or_else(|_| NOTHING.to_owned(), stamp);
    vec![
        plain(format!("{}{epoch}", line.number)),
        plain(at),
        plain(&line.action),
        plain(line.operation.as_deref().unwrap_or(NOTHING)),
        plain(&line.detail),
    ]
}

/// What was proved of it, and by what.
pub fn holds(holds: &AuditVerification) -> String {
    let reported = match (holds.reported, holds.kept) {
        (Some(number), Some(kept)) => {
            format!(
                "line {number} is the one that its host reported last; so are {kept} ends that the hub kept"
            )
        }
        (Some(number), None) => format!("line {number} is the one that its host reported last"),
        (None, _) => "not compared with what its host reported (--host HOST does)".to_owned(),
    };
    let lines = match holds.missing {
        0 => holds.lines.to_string(),
        missing => format!("{} to {}; nothing is proved of the {missing} before", missing + 1, holds.lines),
    };
    let mut rows = vec![
        ("Audit", "holds: nothing was changed, cut out or put in between".to_owned()),
        ("Lines", lines),
        ("Head", holds.head.clone()),
        ("Its end", reported),
    ];
    for broken in &holds.breaks {
        let text = format!(
            "{:.0}: the host reported line {} as its end, after line {}: another history was shown to the hub",
            broken.at, broken.found.number, broken.kept.number
        );
        rows.push(("Evidence", text));
    }
    list(&rows)
}
