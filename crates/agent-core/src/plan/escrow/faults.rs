//! Faults of recovery codes and of the copies of wrapped keys.
//!
//! In: every code of this host, the state of the copies, which off-site targets are attached, the time. Out: the faults as
//! values, for conditions, and as problems, for operators.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::storage::TargetState;
use holdfast_recovery::escrow::CodeNumber;
use jiff::Timestamp;

use super::{current, drill_due, is_unproved};
use crate::model::escrow::{CodeStatus, Codes, CopyPlace};
use crate::model::storage::TargetRecord;
use crate::plan::offsite::key;

/// What is wrong with a recovery code, or with a copy of its wrapped key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EscrowFault {
    /// No code of this host opens the key of a target.
    NoCode {
        /// Which target.
        target: TargetName,
    },
    /// A lost host's code that was not typed here yet.
    Unproved { target: TargetName, code: CodeNumber },
    /// The words were not typed for too long.
    DrillDue {
        target: TargetName,
        code: CodeNumber,
        /// By when they were to be typed.
        since: Timestamp,
    },
    /// A copy is lost, or not as it should be.
    Copy {
        code: CodeNumber,
        place: CopyPlace,
        /// What is wrong with it, in words.
        problem: String,
    },
}

impl EscrowFault {
    /// What an operator must know and do.
    #[must_use]
    pub fn problem(&self) -> ErrorBody {
        let (code, text) = match self {
            Self::NoCode { target } => (
                ErrorCode::EscrowMissing,
                format!(
                    "off-site {target}: this box has made no recovery code for its key, and without one its backups are lost with the \
                     box: run `agentd escrow create` here"
                ),
            ),
            Self::Unproved { target, code } => (
                ErrorCode::EscrowDrill,
                format!(
                    "off-site {target}: recovery code {code} is the lost box's, and its words were not typed here yet: the holder \
                     of sheet {code} runs `agentd escrow drill --code {code}` here"
                ),
            ),
            Self::DrillDue { target, code, .. } => (
                ErrorCode::EscrowDrill,
                format!(
                    "off-site {target}: recovery code {code} was not typed for more than 180 days: the holder of the sheet \
                     runs `agentd escrow drill` here"
                ),
            ),
            Self::Copy { code, place, problem } => (
                ErrorCode::EscrowCopy,
                format!("the wrapped key of recovery code {code} at {place}: {problem}"),
            ),
        };
        ErrorBody::new(code, text)
    }
}

/// Everything that is wrong with codes and copies.
#[must_use]
pub fn faults(known: &Codes, targets: &[TargetRecord], now: Timestamp) -> Vec<EscrowFault> {
    let attached = targets.iter().filter(|record| record.status == TargetState::Attached);
    let mut found: Vec<EscrowFault> = attached
        .filter_map(|record| key(&record.approval).map(|key| (record.approval.name.clone(), key)))
        .filter_map(|(target, key)| match current(&known.codes, key) {
            None => Some(EscrowFault::NoCode { target }),
            Some(code) if is_unproved(code) => Some(EscrowFault::Unproved { target, code: code.number() }),
            Some(code) => {
                let since = drill_due(code).filter(|due| *due < now)?;
                Some(EscrowFault::DrillDue { target, code: code.number(), since })
            }
        })
        .collect();
    let kept = |number| {
        known
            .codes
            .iter()
            .any(|code| code.number() == number && matches!(code.status, CodeStatus::Kept { .. }))
    };
    found.extend(known.copies.iter().filter(|copy| kept(copy.code)).filter_map(|copy| {
        let (code, place, problem) = (copy.code, copy.place.clone(), copy.problem.clone()?);
        Some(EscrowFault::Copy { code, place, problem })
    }));
    found
}

/// What an operator must know and do.
#[must_use]
pub fn problems(known: &Codes, targets: &[TargetRecord], now: Timestamp) -> Vec<ErrorBody> {
    faults(known, targets, now).iter().map(EscrowFault::problem).collect()
}
