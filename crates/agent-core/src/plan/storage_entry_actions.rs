//! Actions on a storage entry that a signed job requires.
//!
//! What comes in: what the job left to do, the target's status, and the entries as Proxmox showed them since the last
//! try. What goes out: at most one step. An entry that differs from what was approved belongs to somebody: it is
//! reported ([`super::entry`]) and left, and so is one that is there already. Pure. Deliberately absent: leave to do it
//! (`gate/entry`), and trying again (`task/storage`).

use std::collections::BTreeMap;

use holdfast_protocol::storage::report::TargetStatus;

use super::entry::{DISABLED, differences};
use crate::model::storage::{EntryDue, EntrySeen, TargetRecord};

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// It is made.
    Make,
    /// It is used again, after it was let go.
    Enable,
    /// Proxmox uses it no more. It stays, and so does the data there.
    Disable,
}

impl EntryChange {
    /// For the audit.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Make => "its entry in Proxmox is to be made",
            Self::Enable => "its entry in Proxmox is to be used again",
            Self::Disable => "its entry in Proxmox is to be disabled",
        }
    }
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextEntryStep {
    Nothing,
    /// Nothing is owed any more, because of this.
    Settled(&'static str),
    Do(EntryChange),
}

/// Says what is next about one target.
#[must_use]
pub fn outstanding(
    record: &TargetRecord,
    status: TargetStatus,
    entries: Option<&BTreeMap<String, EntrySeen>>,
) -> NextEntryStep {
    let (Some(outstanding), Some(entries)) = (record.entry, entries) else { return NextEntryStep::Nothing };
    let seen = entries.get(record.approval.name.as_str());
    let found = seen.map(|seen| differences(&record.approval, Some(seen)));
    let only_disabled = |found: &Vec<String>| found.iter().all(|what| what == DISABLED) && !found.is_empty();
    match (outstanding.due, found) {
        (EntryDue::Make, Some(found)) if found.is_empty() => {
            NextEntryStep::Settled("its entry is as it was signed for")
        }
        (EntryDue::Make, Some(found)) if only_disabled(&found) => NextEntryStep::Do(EntryChange::Enable),
        (EntryDue::Make, Some(_)) => {
            NextEntryStep::Settled("another entry of that name is there, and is left as it is")
        }
        // Proxmox looks whether it is mounted when the entry is made.
        (EntryDue::Make, None) if waits(record, status) => NextEntryStep::Nothing,
        (EntryDue::Make, None) => NextEntryStep::Do(EntryChange::Make),
        (EntryDue::Disable, None) => NextEntryStep::Settled("it has no entry, or Proxmox hides it"),
        (EntryDue::Disable, Some(found)) if found.is_empty() => NextEntryStep::Do(EntryChange::Disable),
        (EntryDue::Disable, Some(found)) if only_disabled(&found) => {
            NextEntryStep::Settled("its entry is disabled")
        }
        (EntryDue::Disable, Some(_)) => {
            NextEntryStep::Settled("the entry of that name is not as it was signed for, and is left as it is")
        }
    }
}

fn waits(record: &TargetRecord, status: TargetStatus) -> bool {
    record.approval.backend.uuid().is_some() && status != TargetStatus::Mounted
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::storage::TargetState;
    use serde_json::json;

    use super::*;
    use crate::model::storage::EntryAction;

    fn record(backend: serde_json::Value, due: Option<EntryDue>) -> TargetRecord {
        let approval = serde_json::from_value(
            json!({ "name": "bk1", "class": "slow", "role": "local-backup", "backend": backend }),
        );
        let mark = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
        let status = match due {
            Some(EntryDue::Disable) => TargetState::Disconnected,
            Some(EntryDue::Make) | None => TargetState::Attached,
        };
        let entry = due.map(|due| EntryAction { due, job: mark });
        TargetRecord { approval: approval.unwrap(), status, mark, marked: None, entry }
    }

    fn entries(more: Option<serde_json::Value>) -> BTreeMap<String, EntrySeen> {
        let base = json!({ "type": "nfs", "server": "nas", "export": "/srv/bk", "content": "backup" });
        let of = |more: serde_json::Value| {
            let mut entry: EntrySeen = serde_json::from_value(base.clone()).unwrap();
            entry.extend(serde_json::from_value::<EntrySeen>(more).unwrap());
            entry
        };
        more.map(|more| ("bk1".to_owned(), of(more))).into_iter().collect()
    }

    #[test]
    fn one_step_or_none_by_what_is_there() {
        let nfs = || json!({ "nfs": { "server": "nas", "export": "/srv/bk" } });
        let (make, off) = (Some(EntryDue::Make), Some(EntryDue::Disable));
        let settled = |outstanding: NextEntryStep| matches!(outstanding, NextEntryStep::Settled(_));
        let of = |due, there: Option<serde_json::Value>| {
            outstanding(&record(nfs(), due), TargetStatus::ByProxmox, Some(&entries(there)))
        };
        assert_eq!(of(make, None), NextEntryStep::Do(EntryChange::Make));
        assert!(settled(of(make, Some(json!({})))));
        assert_eq!(of(make, Some(json!({ "disable": "1" }))), NextEntryStep::Do(EntryChange::Enable));
        assert!(settled(of(make, Some(json!({ "export": "/srv/other" })))), "never overwritten");
        assert!(settled(of(make, Some(json!({ "export": "/srv/other", "disable": "1" })))));
        assert_eq!(of(off, Some(json!({}))), NextEntryStep::Do(EntryChange::Disable));
        for there in [None, Some(json!({ "disable": "1" })), Some(json!({ "type": "dir" }))] {
            assert!(settled(of(off, there)));
        }
        assert_eq!(of(None, None), NextEntryStep::Nothing);
        let unasked = outstanding(&record(nfs(), make), TargetStatus::ByProxmox, None);
        assert_eq!(unasked, NextEntryStep::Nothing, "before Proxmox was asked nothing is known");
    }

    #[test]
    fn a_disk_has_its_entry_made_once_it_is_mounted() {
        let usb = json!({ "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b" } });
        let disk = record(usb, Some(EntryDue::Make));
        for status in [TargetStatus::Absent, TargetStatus::Unmarked, TargetStatus::Wrong] {
            assert_eq!(outstanding(&disk, status, Some(&BTreeMap::new())), NextEntryStep::Nothing);
        }
        let mounted = outstanding(&disk, TargetStatus::Mounted, Some(&BTreeMap::new()));
        assert_eq!(mounted, NextEntryStep::Do(EntryChange::Make));
    }
}
