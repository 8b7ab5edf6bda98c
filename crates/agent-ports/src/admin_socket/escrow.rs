//! Messages about recovery codes on the admin socket.

use holdfast_protocol::escrow::by_hand::GuestNumbers;
use holdfast_protocol::id::{CustomerId, TargetName};
use holdfast_protocol::storage::{Approval, Sealed};
use holdfast_recovery::escrow::{CodeNumber, Record};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::escrow::Codes;
use crate::plan::escrow::Purpose;

/// The questions about recovery codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EscrowQuestion {
    /// The state of codes, copies and off-site targets.
    Status,
    /// A number for another code.
    Begin {
        /// Whose off-site backups; it need not be said where there is one target.
        target: Option<TargetName>,
        /// Whose data it is; it need not be said where all guests are one customer's.
        customer: Option<CustomerId>,
        /// The first for this key, or another.
        purpose: Purpose,
    },
    /// The words are about to be shown.
    Shown {
        /// Of which code.
        code: CodeNumber,
        /// Which making of it.
        attempt: Timestamp,
    },
    /// The words were typed back.
    Keep {
        /// Of which code.
        code: CodeNumber,
        /// Which making of it.
        attempt: Timestamp,
        /// The wrapped key, as text.
        file: String,
    },
    /// A wrapped key.
    File {
        /// Of which code; the newest, where it is not said and there is no choice.
        code: Option<CodeNumber>,
        /// Of the key that this older code opens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<CodeNumber>,
    },
    /// The words were typed, and opened it.
    Drilled {
        /// Of which code.
        code: CodeNumber,
    },
    /// A newer one replaced it, and was typed.
    Retire { code: CodeNumber },
}

impl EscrowQuestion {
    /// The record written before the answer, if there is one.
    #[must_use]
    pub const fn writes(&self) -> Option<&'static str> {
        match self {
            Self::Status | Self::File { .. } => None,
            Self::Begin { .. } => Some("code_begun"),
            Self::Shown { .. } => Some("code_shown"),
            Self::Keep { .. } => Some("code_kept"),
            Self::Drilled { .. } => Some("code_drilled"),
            Self::Retire { .. } => Some("code_retired"),
        }
    }
}

/// The answer to an escrow question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscrowAnswer {
    /// The state of all codes.
    Status(Box<EscrowStatus>),
    /// A code has its number.
    Begun(Box<Begun>),
    /// It is written down.
    Noted,
    /// A wrapped key.
    File(Box<Wrapped>),
}

/// The data needed to make a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begun {
    /// The context that the code will be for.
    pub record: Record,
    /// The attempt for this number: an abandoned attempt leaves its number to the next one.
    pub attempt: Timestamp,
    /// The guests here and their numbers, for the sheet.
    pub guests: Vec<GuestNumbers>,
    pub approval: Approval,
    /// The credentials that were signed for, with the key in them.
    pub sealed: Sealed,
}

/// A wrapped key and its expected record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrapped {
    /// The record that it should contain.
    pub record: Record,
    /// The file, as text.
    pub file: String,
}

/// The state of codes, copies and off-site targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EscrowStatus {
    /// Codes and copies.
    #[serde(flatten)]
    pub known: Codes,
    /// Attached off-site targets, and the code that opens the key of each.
    pub targets: Vec<TargetCode>,
    /// The problems as text, and who must do what.
    pub problems: Vec<holdfast_protocol::envelope::ErrorBody>,
}

/// The code in use for one off-site target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetCode {
    pub target: TargetName,
    /// The newest code that opens its key.
    pub code: Option<CodeNumber>,
    /// The date by which its words must be typed again.
    pub drill_due: Option<Timestamp>,
}
