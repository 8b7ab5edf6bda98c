//! Text of a verified restore certificate.

use restore_certificate::verify::Proof;

use super::table::list;
use crate::certificate_text::{Fact, Facts, not_proved, proved, signatures};

/// What it says, what is proved, and what is not.
pub fn proof(proof: &Proof) -> String {
    let facts = Facts::of(&proof.document);
    let lines = |name: &'static str, lines: Vec<String>| lines.into_iter().map(move |line| (name, line));
    let rows: Vec<Fact> = [facts.guest, facts.backup, facts.test]
        .into_iter()
        .flatten()
        .chain([("Reason", facts.reason)])
        .chain(lines("Check", facts.checks))
        .chain(signatures(proof))
        .chain(lines("Proved", proved(proof)))
        .chain(lines("Not proved", not_proved(proof)))
        .collect();
    list(&rows)
}
