//! Text of a verified audit.

use super::table::list;
use crate::cmd::audit::AuditVerification;

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
