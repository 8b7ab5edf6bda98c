//! Changes to a storage entry that a signature allows.
//!
//! What comes in: the record that a signed job left in the store, the sealed credentials that the document carries, and
//! which targets root named for this. What goes out: an [`EntryWarrant`], without which nothing opens the sealed token or
//! the credentials. Pure. Deliberately absent: whether there is anything left to do (`plan/owed`).

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{JobId, TargetName};
use holdfast_protocol::storage::{Approval, Sealed, TargetState};

use crate::model::storage::{EntryAction, EntryDue, TargetRecord};

/// Leave for one thing about one entry, with the credentials that were signed for.
#[derive(Clone, Debug)]
pub struct EntryWarrant {
    approval: Approval,
    outstanding: EntryAction,
    creds: Option<Sealed>,
}

/// Why there is no leave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLeave {
    /// No signature is waiting for its effect.
    #[error("no signed job is about its entry")]
    NothingDue,
    /// The record says otherwise by now.
    #[error("it is {0} by now")]
    WrongState(TargetState),
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
            Self::NothingDue | Self::NotNamed(_) => ErrorCode::NeedsSignature,
            Self::WrongState(_) | Self::OtherCreds => ErrorCode::TargetChanged,
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
        let outstanding = record.entry.ok_or(NoLeave::NothingDue)?;
        let attached = record.status == TargetState::Attached;
        if attached != (outstanding.due == EntryDue::Make) {
            return Err(NoLeave::WrongState(record.status));
        }
        if !named.contains(&record.approval.name) {
            return Err(NoLeave::NotNamed(record.approval.name.clone()));
        }
        let creds = match outstanding.due {
            EntryDue::Disable => None,
            EntryDue::Make => {
                let signed = &record.approval.creds;
                // Both or neither, with the same bytes. None only where no login is needed: without credentials a share
                // would be taken as everybody's.
                let same =
                    offered.and_then(Sealed::digest) == *signed && offered.is_some() == signed.is_some();
                if !same || (record.approval.backend.needs_creds() && offered.is_none()) {
                    return Err(NoLeave::OtherCreds);
                }
                offered.cloned()
            }
        };
        Ok(Self { approval: record.approval.clone(), outstanding, creds })
    }

    /// What was signed for.
    #[must_use]
    pub const fn approval(&self) -> &Approval {
        &self.approval
    }

    /// What is to be done, and by which job.
    #[must_use]
    pub const fn outstanding(&self) -> EntryAction {
        self.outstanding
    }

    #[must_use]
    pub const fn job(&self) -> JobId {
        self.outstanding.job
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

    fn record(due: Option<EntryDue>, status: TargetState, creds: Option<Sealed>) -> TargetRecord {
        let wanted: StorageTarget = serde_json::from_value(json!({ "name": "nas1", "class": "slow",
            "role": "local-backup", "state": "attached", "backend": { "cifs": { "server": "nas", "share": "bk" } },
            "label": "nas", "default": false, "schedulable": true, "creds": creds }))
        .unwrap();
        let mark: JobId = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
        let entry = due.map(|due| EntryAction { due, job: mark });
        TargetRecord { approval: Approval::of(&wanted), status, mark, marked: None, entry }
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
        let no_one = record(None, TargetState::Attached, Some(mine.clone()));
        assert_eq!(of(&no_one, Some(&mine)), NoLeave::NothingDue);
        let unnamed = EntryWarrant::of(&attached, Some(&mine), &BTreeSet::new()).unwrap_err();
        assert!(matches!(unnamed, NoLeave::NotNamed(_)));
        for (due, status) in [
            (EntryDue::Make, TargetState::Disconnected),
            (EntryDue::Make, TargetState::Decommissioned),
            (EntryDue::Disable, TargetState::Attached),
        ] {
            let odd = record(Some(due), status, Some(mine.clone()));
            assert_eq!(of(&odd, Some(&mine)), NoLeave::WrongState(status));
        }
        // Letting go opens no credentials, whatever the document says.
        let gone = record(Some(EntryDue::Disable), TargetState::Disconnected, Some(mine.clone()));
        assert!(EntryWarrant::of(&gone, Some(&other), &named).unwrap().creds().is_none());
    }
}
