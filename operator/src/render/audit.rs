//! Text of a verified audit.

use super::table::list;
use crate::cmd::audit::AuditVerification;

/// What was proved of it, and by what.
pub fn holds(holds: &AuditVerification) -> String {
    let reported = holds.reported.map_or_else(
        || "not compared with what its host reported (--host HOST does)".to_owned(),
        |number| format!("line {number} is the one that its host reported last"),
    );
    let lines = match holds.missing {
        0 => holds.lines.to_string(),
        missing => format!("{} to {}; nothing is proved of the {missing} before", missing + 1, holds.lines),
    };
    list(&[
        ("Audit", "holds: nothing was changed, cut out or put in between".to_owned()),
        ("Lines", lines),
        ("Head", holds.head.clone()),
        ("Its end", reported),
    ])
}
