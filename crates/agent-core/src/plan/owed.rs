//! What is left to do to a target's entry in Proxmox after a signed job: nothing, one call, or only to say that it is done.
//!
//! What comes in: what the job left to do, how the target stands, and the entries as Proxmox showed them since the last
//! try. What goes out: at most one step. An entry that differs from what was approved is somebody's: it is told
//! ([`super::entry`]) and left, and so is one that is there already. Pure. Deliberately absent: leave to do it
//! (`gate/entry`), and trying again (`task/storage`).

use std::collections::BTreeMap;

use holdfast_protocol::storage::report::TargetStanding;

use super::entry::{DISABLED, differences};
use crate::model::storage::{EntryDue, EntrySeen, TargetRecord};

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDeed {
    /// It is made.
    Make,
    /// It is used again, after it was let go.
    Enable,
    /// Proxmox uses it no more. It stays, and so does what lies there.
    Disable,
}

impl EntryDeed {
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
pub enum Owed {
    /// None now.
    Nothing,
    /// Nothing is owed any more, because of this.
    Settled(&'static str),
    /// This.
    Do(EntryDeed),
}

/// Says what is next about one target.
#[must_use]
pub fn owed(
    record: &TargetRecord,
    standing: TargetStanding,
    entries: Option<&BTreeMap<String, EntrySeen>>,
) -> Owed {
    let (Some(owed), Some(entries)) = (record.entry, entries) else { return Owed::Nothing };
    let seen = entries.get(record.approval.name.as_str());
    let found = seen.map(|seen| differences(&record.approval, Some(seen)));
    let only_disabled = |found: &Vec<String>| found.iter().all(|what| what == DISABLED) && !found.is_empty();
    match (owed.due, found) {
        (EntryDue::Make, Some(found)) if found.is_empty() => {
            Owed::Settled("its entry is as it was signed for")
        }
        (EntryDue::Make, Some(found)) if only_disabled(&found) => Owed::Do(EntryDeed::Enable),
        (EntryDue::Make, Some(_)) => {
            Owed::Settled("another entry of that name is there, and is left as it is")
        }
        // Proxmox looks whether it is mounted when the entry is made.
        (EntryDue::Make, None) if waits(record, standing) => Owed::Nothing,
        (EntryDue::Make, None) => Owed::Do(EntryDeed::Make),
        (EntryDue::Disable, None) => Owed::Settled("it has no entry, or Proxmox hides it"),
        (EntryDue::Disable, Some(found)) if found.is_empty() => Owed::Do(EntryDeed::Disable),
        (EntryDue::Disable, Some(found)) if only_disabled(&found) => Owed::Settled("its entry is disabled"),
        (EntryDue::Disable, Some(_)) => {
            Owed::Settled("the entry of that name is not as it was signed for, and is left as it is")
        }
    }
}

fn waits(record: &TargetRecord, standing: TargetStanding) -> bool {
    record.approval.medium.uuid().is_some() && standing != TargetStanding::Mounted
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::storage::TargetState;
    use serde_json::json;

    use super::*;
    use crate::model::storage::EntryOwed;

    fn record(medium: serde_json::Value, due: Option<EntryDue>) -> TargetRecord {
        let approval = serde_json::from_value(
            json!({ "name": "bk1", "class": "slow", "role": "vzdump-target", "medium": medium }),
        );
        let mark = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
        let standing = match due {
            Some(EntryDue::Disable) => TargetState::Disconnected,
            Some(EntryDue::Make) | None => TargetState::Attached,
        };
        let entry = due.map(|due| EntryOwed { due, job: mark });
        TargetRecord { approval: approval.unwrap(), standing, mark, marked: None, entry }
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
        let settled = |owed: Owed| matches!(owed, Owed::Settled(_));
        let of = |due, there: Option<serde_json::Value>| {
            owed(&record(nfs(), due), TargetStanding::ByProxmox, Some(&entries(there)))
        };
        assert_eq!(of(make, None), Owed::Do(EntryDeed::Make));
        assert!(settled(of(make, Some(json!({})))));
        assert_eq!(of(make, Some(json!({ "disable": "1" }))), Owed::Do(EntryDeed::Enable));
        assert!(settled(of(make, Some(json!({ "export": "/srv/other" })))), "never overwritten");
        assert!(settled(of(make, Some(json!({ "export": "/srv/other", "disable": "1" })))));
        assert_eq!(of(off, Some(json!({}))), Owed::Do(EntryDeed::Disable));
        for there in [None, Some(json!({ "disable": "1" })), Some(json!({ "type": "dir" }))] {
            assert!(settled(of(off, there)));
        }
        assert_eq!(of(None, None), Owed::Nothing);
        let unasked = owed(&record(nfs(), make), TargetStanding::ByProxmox, None);
        assert_eq!(unasked, Owed::Nothing, "before Proxmox was asked nothing is known");
    }

    #[test]
    fn a_disk_has_its_entry_made_once_it_is_mounted() {
        let usb = json!({ "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b" } });
        let disk = record(usb, Some(EntryDue::Make));
        for standing in [TargetStanding::Absent, TargetStanding::Unmarked, TargetStanding::Wrong] {
            assert_eq!(owed(&disk, standing, Some(&BTreeMap::new())), Owed::Nothing);
        }
        let mounted = owed(&disk, TargetStanding::Mounted, Some(&BTreeMap::new()));
        assert_eq!(mounted, Owed::Do(EntryDeed::Make));
    }
}
