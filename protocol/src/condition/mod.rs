//! Conditions: what is wrong with a host, its guests or the hub.
//!
//! A condition lasts. Its coming and its going are events; an event alone is no condition. What is one and the same
//! condition is decided by its code and its subject. Deliberately absent: incidents and notices, which the hub derives
//! from what hosts report.
//!
//! | module | contents |
//! | --- | --- |
//! | [`table`] | every code with what is known of it |
//! | [`severity`] | how urgent, and whether data is at risk |
//! | [`subject`] | what a condition is about |
//! | [`cause`] | classes by which conditions are grouped and inhibited |
//! | [`set`] | all conditions of a host at one time |

pub mod cause;
pub mod set;
pub mod severity;
pub mod subject;
pub mod table;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cause::{Cause, Inhibits};
pub use set::ConditionSet;
pub use severity::{DataRisk, Severity};
pub use subject::{CertificateUse, DiskSerial, Subject, SubjectKind, TokenName};
pub use table::{ConditionCode, ConditionSpec};

use crate::text::texts;

texts! {
    /// A sentence of a condition.
    ConditionText, 1..=400, "a condition's text is 1 to 400 characters without control characters",
        |text| !text.chars().any(char::is_control);
}

impl ConditionText {
    /// Makes any text fit: control characters become spaces, and the rest is cut off.
    #[must_use]
    pub fn clipped(text: &str) -> Self {
        let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
        let clipped: String = plain.take(400).collect();
        Self::try_from(clipped).unwrap_or_else(|_| Self("-".to_owned()))
    }
}

/// A condition, as its host or the hub reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedCondition {
    /// What is wrong, for programs.
    pub code: ConditionCode,
    /// With what.
    pub subject: Subject,
    /// Since when, by the reporter's clock.
    pub since: Timestamp,
    /// How urgent it is.
    pub severity: Severity,
    /// What is wrong, for operators.
    pub message: ConditionText,
    /// What to do, with the command to run.
    pub remedy: ConditionText,
}

/// Why a condition cannot be about a subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} is about {allowed}, never about a {found}")]
pub struct SubjectMismatch {
    code: ConditionCode,
    allowed: String,
    found: SubjectKind,
}

impl ReportedCondition {
    /// With the severity and the remedy of the table.
    #[must_use]
    pub fn new(code: ConditionCode, subject: Subject, since: Timestamp, message: &str) -> Self {
        let spec = code.spec();
        let (message, remedy) = (ConditionText::clipped(message), ConditionText::clipped(spec.remedy));
        Self { code, subject, since, severity: spec.severity, message, remedy }
    }

    /// What makes two reports one condition.
    #[must_use]
    pub const fn identity(&self) -> (ConditionCode, &Subject) {
        (self.code, &self.subject)
    }

    /// Checks that the table has this code for this kind of subject.
    ///
    /// # Errors
    /// [`SubjectMismatch`].
    pub fn check(&self) -> Result<(), SubjectMismatch> {
        let (subjects, found) = (self.code.spec().subjects, self.subject.kind());
        if subjects.contains(&found) {
            return Ok(());
        }
        let names: Vec<&str> = subjects.iter().map(|kind| kind.as_str()).collect();
        Err(SubjectMismatch { code: self.code, allowed: names.join(" or "), found })
    }
}

#[cfg(test)]
mod tests;
