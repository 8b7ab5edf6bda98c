//! What an approval allows to be asked of a backup server.
//!
//! What comes in: the record that a signed job left, and the sealed credentials that the document carries. What goes out: a
//! [`ServerWarrant`], without which nothing opens those credentials for this. Asking takes nothing away: it is Free while the
//! target is attached, with the credentials that were signed for and no others. Pure. Deliberately absent: removing.

use holdfast_protocol::storage::{Approval, Sealed, StorageRole, TargetState};

use crate::model::storage::TargetRecord;

/// Leave to ask the server of one target.
#[derive(Clone, Debug)]
pub struct ServerWarrant {
    approval: Approval,
    creds: Sealed,
}

impl ServerWarrant {
    /// What the record of a target allows; none where it allows nothing.
    #[must_use]
    pub fn of(record: &TargetRecord, offered: Option<&Sealed>) -> Option<Self> {
        let ours =
            record.status == TargetState::Attached && record.approval.role == StorageRole::OffsiteBackup;
        let creds =
            offered.filter(|creds| creds.digest().is_some() && creds.digest() == record.approval.creds)?;
        ours.then(|| Self { approval: record.approval.clone(), creds: creds.clone() })
    }

    /// What was signed for.
    #[must_use]
    pub const fn approval(&self) -> &Approval {
        &self.approval
    }

    /// The credentials that were signed for.
    #[must_use]
    pub const fn creds(&self) -> &Sealed {
        &self.creds
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::storage::StorageTarget;
    use serde_json::json;

    use super::*;

    fn target(role: &str, creds: &str) -> StorageTarget {
        let hash = vec!["86"; 32].join(":");
        let backend =
            json!({ "pbs": { "server": "10.66.0.1", "datastore": "s", "fingerprint": hash, "key": hash } });
        serde_json::from_value(json!({ "name": "off1", "class": "slow", "role": role, "state": "attached",
            "backend": backend, "label": "away", "default": false, "schedulable": true,
            "creds": format!("YWdlLWVuY3J5cHRpb24ub3JnL3Yx{creds}") }))
        .unwrap()
    }

    #[test]
    fn only_what_was_signed_for_and_is_attached_is_asked() {
        let (own, other) = (target("offsite-backup", "aaaa"), target("offsite-backup", "aaab"));
        let record = |of: &StorageTarget, status| TargetRecord {
            approval: Approval::of(of),
            status,
            mark: "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap(),
            marked: None,
            entry: None,
        };
        let attached = record(&own, TargetState::Attached);
        assert!(ServerWarrant::of(&attached, own.creds.as_ref()).is_some());
        assert!(ServerWarrant::of(&attached, other.creds.as_ref()).is_none());
        assert!(ServerWarrant::of(&attached, None).is_none());
        assert!(ServerWarrant::of(&record(&own, TargetState::Disconnected), own.creds.as_ref()).is_none());
        let share = record(&target("local-backup", "aaaa"), TargetState::Attached);
        assert!(ServerWarrant::of(&share, own.creds.as_ref()).is_none());
    }
}
