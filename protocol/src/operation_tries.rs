//! Repeated failures of one operation as one line.
//!
//! What comes in: operations, the oldest first. What goes out: the same list, but of undone operations of one kind on
//! one guest with one code only the last, with their count. An agent counts further back than its report reaches, and
//! says so with the operation. Deliberately absent: the layout of a line.

use jiff::Timestamp;

use crate::operation::{OperationStatus, OperationView};

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries<'a> {
    /// The operation, or the last of those that came to nothing alike.
    pub last: &'a OperationView,
    /// How many of them there were, as far as the list and the agent know.
    pub count: u32,
    /// When the first of them was opened.
    pub first_at: Timestamp,
}

impl Tries<'_> {
    /// Whether two operations came to nothing in the same way.
    fn is_like(&self, other: &OperationView) -> bool {
        let code = |one: &OperationView| one.problem.as_ref().map(|problem| problem.code);
        let undone = |one: &OperationView| one.status == OperationStatus::Undone;
        undone(self.last)
            && undone(other)
            && self.last.kind == other.kind
            && self.last.guest == other.guest
            && self.last.name == other.name
            && code(self.last) == code(other)
    }
}

/// The lines, each in the place of its last operation.
#[must_use]
pub fn tries(operations: &[OperationView]) -> Vec<Tries<'_>> {
    let mut lines: Vec<Tries<'_>> = Vec::new();
    for operation in operations {
        let (mut count, mut first_at) =
            operation.alike.map_or((1, operation.opened_at), |alike| (alike.count, alike.first_at));
        if let Some(place) = lines.iter().position(|line| line.is_like(operation)) {
            let before = lines.remove(place);
            count = before.count.saturating_add(count);
            first_at = first_at.min(before.first_at);
        }
        lines.push(Tries { last: operation, count, first_at });
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operation::Alike;

    fn view(n: u32, kind: &str, guest: u32, end: (&str, Option<&str>)) -> OperationView {
        let uid = |n: u32| format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}");
        let mut view = json!({ "id": uid(n), "kind": kind, "guest": uid(guest), "name": format!("web-{guest}"),
            "status": end.0, "steps": [], "opened_at": format!("2026-11-21T10:{n:02}:00Z") });
        if let Some(code) = end.1 {
            view["problem"] = json!({ "code": code, "message": format!("the {n}th time") });
        }
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn failed_tries_of_one_cause_are_one_line_and_bury_nothing() {
        let all = [
            view(1, "backup", 1, ("undone", Some("STORAGE_FULL"))),
            view(2, "provision", 2, ("done", None)),
            view(3, "backup", 1, ("undone", Some("STORAGE_FULL"))),
            view(4, "backup", 2, ("undone", Some("STORAGE_FULL"))),
            view(5, "backup", 1, ("undone", Some("LOCKED"))),
            view(6, "backup", 1, ("undone", Some("STORAGE_FULL"))),
            view(7, "provision", 2, ("done", None)),
            view(8, "start", 1, ("parked", Some("PARKED"))),
            view(9, "start", 1, ("parked", Some("PARKED"))),
        ];
        let found = tries(&all);
        let lines: Vec<(String, u32)> =
            found.iter().map(|line| (line.last.opened_at.strftime("%M").to_string(), line.count)).collect();
        let printed: Vec<(&str, u32)> =
            lines.iter().map(|(minute, count)| (minute.as_str(), *count)).collect();
        assert_eq!(printed, [("02", 1), ("04", 1), ("05", 1), ("06", 3), ("07", 1), ("08", 1), ("09", 1)]);
        let failed = found.iter().find(|line| line.count == 3).unwrap();
        assert_eq!(failed.first_at, all[0].opened_at);
    }

    #[test]
    fn what_the_agent_counted_beyond_its_list_is_added() {
        let mut all = [
            view(1, "backup", 1, ("undone", Some("LOCKED"))),
            view(9, "backup", 1, ("undone", Some("LOCKED"))),
        ];
        let first_at = "2026-11-20T10:00:00Z".parse().unwrap();
        all[1].alike = Some(Alike { count: 41, first_at });
        let [line] = tries(&all[1..])[..] else { panic!("one line") };
        assert_eq!((line.count, line.first_at), (41, first_at));
        let [line] = tries(&all)[..] else { panic!("one line") };
        assert_eq!((line.count, line.first_at), (42, first_at));
    }
}
