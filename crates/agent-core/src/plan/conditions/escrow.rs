//! Conditions of recovery codes and wrapped keys.

use holdfast_protocol::condition::{ConditionCode, Subject};

use super::{Finding, HostKnowledge};
use crate::plan::escrow::{EscrowFault, faults};

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    faults(known.codes, known.targets, known.now).iter().map(of).collect()
}

fn of(fault: &EscrowFault) -> Finding {
    let message = fault.problem().message;
    match fault {
        EscrowFault::NoCode { target } => {
            let subject = Subject::StorageTarget { target: target.clone() };
            Finding::new(ConditionCode::EscrowMissing, subject, message)
        }
        EscrowFault::Unproved { code, .. } => {
            Finding::new(ConditionCode::EscrowDrill, Subject::RecoveryCode { code: *code }, message)
        }
        EscrowFault::DrillDue { code, since, .. } => {
            let subject = Subject::RecoveryCode { code: *code };
            Finding::new(ConditionCode::EscrowDrill, subject, message).since(*since)
        }
        EscrowFault::Copy { code, .. } => {
            Finding::new(ConditionCode::EscrowCopy, Subject::RecoveryCode { code: *code }, message)
        }
    }
}
