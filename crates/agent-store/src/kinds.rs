//! Kinds of operations as lists for SQL.

use agent_core::operation::{Counted, registry::rules};
use holdfast_protocol::operation::OperationKind;

/// Those of which one may count against the change limit.
pub(crate) fn counted() -> String {
    list(|kind| rules(kind).counted == Counted::Possibly)
}

/// The kinds whose data is read after their end: by the change limit, and, for those that make a guest, as long as the
/// guest exists.
pub(crate) fn read_later() -> String {
    list(|kind| rules(kind).counted == Counted::Possibly || kind == OperationKind::Provision)
}

/// Names of kinds have only letters and underscores, so they need no escaping in quotes.
fn list(is_in: impl Fn(OperationKind) -> bool) -> String {
    let names = OperationKind::ALL.iter().filter(|kind| is_in(**kind));
    names.map(|kind| format!("'{}'", kind.as_str())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_what_is_read_later_and_nothing_else() {
        assert_eq!(counted(), "'reconfigure', 'stop'");
        assert_eq!(read_later(), "'provision', 'reconfigure', 'stop'");
        let plain = |kind: &OperationKind| {
            kind.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        assert!(OperationKind::ALL.iter().all(plain));
    }
}
