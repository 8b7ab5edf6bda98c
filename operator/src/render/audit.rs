//! An audit that holds.

use super::table::list;
use crate::cmd::audit::Holds;

/// What was proved of it, and by what.
pub fn holds(holds: &Holds) -> String {
    let reported = holds.reported.map_or_else(
        || "not compared with what its host reported (--host HOST does)".to_owned(),
        |number| format!("line {number} is the one that its host reported last"),
    );
    list(&[
        ("Audit", "holds: nothing was changed, cut out or put in between".to_owned()),
        ("Lines", holds.lines.to_string()),
        ("Head", holds.head.clone()),
        ("Its end", reported),
    ])
}
