//! What a signature allows to be done to a target's entry in Proxmox.
//!
//! What comes in: the record that a signed job left in the store, the sealed credentials that the document carries, and
//! which targets root named for this. What goes out: an [`EntryWarrant`], without which nothing opens the sealed token or
//! the credentials. Pure. Deliberately absent: whether there is anything left to do (`plan/owed`).

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{JobId, TargetName};
use holdfast_protocol::storage::{Approval, Sealed, TargetState};

use crate::model::storage::{EntryDue, EntryOwed, TargetRecord};

/// Leave for one thing about one entry, with the credentials that were signed for.
#[derive(Clone, Debug)]
pub struct EntryWarrant {
    approval: Approval,
    owed: EntryOwed,
    creds: Option<Sealed>,
}

/// Why there is no leave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLeave {
    /// No signature is waiting for its effect.
    #[error("no signed job is about its entry")]
    NotOwed,
    /// The record says otherwise by now.
    #[error("it is {0} by now")]
    Standing(TargetState),
    /// Root did not name it.
    #[error(
        "root has not named it for the agent to make: run `agentd setup` with --target {0}, or make the entry by hand"
    )]
    NotNamed(TargetName),
    /// The document's credentials are not those that were signed for.
    #[error(
        "the sealed credentials in the document are not those that were signed for: put the signed ones back, or sign the new ones"
    )]
    OtherCreds,
}

impl NoLeave {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NotOwed | Self::NotNamed(_) => ErrorCode::NeedsSignature,
            Self::Standing(_) | Self::OtherCreds => ErrorCode::TargetChanged,
        }
    }
}

impl EntryWarrant {
    /// What the record of a target allows.
    ///
    /// # Errors
    /// [`NoLeave`].
    pub fn of(
        record: &TargetRecord,
        offered: Option<&Sealed>,
        named: &BTreeSet<TargetName>,
    ) -> Result<Self, NoLeave> {
        let owed = record.entry.ok_or(NoLeave::NotOwed)?;
        let attached = record.standing == TargetState::Attached;
        if attached != (owed.due == EntryDue::Make) {
            return Err(NoLeave::Standing(record.standing));
        }
        if !named.contains(&record.approval.name) {
            return Err(NoLeave::NotNamed(record.approval.name.clone()));
        }
        let creds = match owed.due {
            EntryDue::Disable => None,
            EntryDue::Make => {
                let signed = &record.approval.creds;
                // Both or neither, the same bytes, and none only where there is nobody to log in: without them a share
                // would be taken as everybody's.
                let same =
                    offered.and_then(Sealed::digest) == *signed && offered.is_some() == signed.is_some();
                if !same || (record.approval.medium.needs_creds() && offered.is_none()) {
                    return Err(NoLeave::OtherCreds);
                }
                offered.cloned()
            }
        };
        Ok(Self { approval: record.approval.clone(), owed, creds })
    }

    /// What was signed for.
    #[must_use]
    pub const fn approval(&self) -> &Approval {
        &self.approval
    }

    /// What is to be done, and by which job.
    #[must_use]
    pub const fn owed(&self) -> EntryOwed {
        self.owed
    }

    /// The job.
    #[must_use]
    pub const fn job(&self) -> JobId {
        self.owed.job
    }

    /// The credentials that were signed for.
    #[must_use]
    pub const fn creds(&self) -> Option<&Sealed> {
        self.creds.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::storage::StorageTarget;
    use serde_json::json;

    use super::*;

    fn sealed(end: &str) -> Sealed {
        Sealed::try_from(format!("YWdlLWVuY3J5cHRpb24ub3JnL3Yx{end}")).unwrap()
    }

    fn record(due: Option<EntryDue>, standing: TargetState, creds: Option<Sealed>) -> TargetRecord {
        let wanted: StorageTarget = serde_json::from_value(json!({ "name": "nas1", "class": "slow",
            "role": "vzdump-target", "state": "attached", "medium": { "cifs": { "server": "nas", "share": "bk" } },
            "label": "nas", "default": false, "schedulable": true, "creds": creds }))
        .unwrap();
        let mark: JobId = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
        let entry = due.map(|due| EntryOwed { due, job: mark });
        TargetRecord { approval: Approval::of(&wanted), standing, mark, marked: None, entry }
    }

    #[test]
    fn only_a_signed_and_named_target_with_its_own_credentials_has_leave() {
        let named: BTreeSet<TargetName> = BTreeSet::from(["nas1".parse().unwrap()]);
        let (mine, other) = (sealed("aaaa"), sealed("aaab"));
        let attached = record(Some(EntryDue::Make), TargetState::Attached, Some(mine.clone()));
        let leave = EntryWarrant::of(&attached, Some(&mine), &named).unwrap();
        assert_eq!((leave.creds(), leave.approval()), (Some(&mine), &attached.approval));
        let of = |record: &TargetRecord, offered: Option<&Sealed>| {
            EntryWarrant::of(record, offered, &named).map(|_| ()).unwrap_err()
        };
        for offered in [None, Some(&other)] {
            assert_eq!(of(&attached, offered), NoLeave::OtherCreds);
        }
        let open = record(Some(EntryDue::Make), TargetState::Attached, None);
        assert_eq!(of(&open, Some(&mine)), NoLeave::OtherCreds);
        assert_eq!(of(&open, None), NoLeave::OtherCreds, "never without a password");
        let nobody = record(None, TargetState::Attached, Some(mine.clone()));
        assert_eq!(of(&nobody, Some(&mine)), NoLeave::NotOwed);
        let unnamed = EntryWarrant::of(&attached, Some(&mine), &BTreeSet::new()).unwrap_err();
        assert!(matches!(unnamed, NoLeave::NotNamed(_)));
        for (due, standing) in [
            (EntryDue::Make, TargetState::Disconnected),
            (EntryDue::Make, TargetState::Decommissioned),
            (EntryDue::Disable, TargetState::Attached),
        ] {
            let odd = record(Some(due), standing, Some(mine.clone()));
            assert_eq!(of(&odd, Some(&mine)), NoLeave::Standing(standing));
        }
        // Letting go opens no credentials, whatever the document says.
        let gone = record(Some(EntryDue::Disable), TargetState::Disconnected, Some(mine.clone()));
        assert!(EntryWarrant::of(&gone, Some(&other), &named).unwrap().creds().is_none());
    }
}
