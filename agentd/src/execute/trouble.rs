//! Errors of a step, and what may follow.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::chain;

use crate::port::pve::{PveError, RetryClass};
use crate::port::store::StoreError;

/// What may follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepRecovery {
    /// It may have happened without an answer: check the actual state.
    Look,
    /// Another try, if any is left.
    Again,
    /// The same call may be sent later, for as long as it takes: Proxmox is away, closed to us, or still at work on it.
    Away,
    /// Nothing happened; another process holds the guest or storage for a while.
    Busy,
    /// No more tries.
    GiveUp,
    /// Leave everything as it is, for a person who does this.
    Park(String),
}

/// A try that did not succeed.
#[derive(Clone, Debug)]
pub(super) struct StepError {
    pub problem: ErrorBody,
    pub next: StepRecovery,
}

impl StepError {
    pub(super) fn give_up(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { problem: ErrorBody::new(code, message), next: StepRecovery::GiveUp }
    }

    pub(super) fn again(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { problem: ErrorBody::new(code, message), next: StepRecovery::Again }
    }

    pub(super) fn park(code: ErrorCode, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: ErrorBody::new(code, message), next: StepRecovery::Park(remedy.into()) }
    }

    /// What this operation began still runs in Proxmox: neither done nor failed, and not to be cleared away by anyone.
    pub(super) fn at_work(message: impl Into<String>) -> Self {
        Self { problem: ErrorBody::new(ErrorCode::Unavailable, message), next: StepRecovery::Away }
    }

    /// A fault of our own, such as a step that this operation cannot have.
    pub(super) fn fault(message: impl Into<String>) -> Self {
        Self::park(ErrorCode::Internal, message, "report this with the journal of the operation")
    }
}

impl From<PveError> for StepError {
    fn from(error: PveError) -> Self {
        let next = match &error {
            PveError::PinMismatch { .. }
            | PveError::CertificateRefused { .. }
            | PveError::Unauthorised { .. }
            | PveError::NoToken { .. } => StepRecovery::Away,
            PveError::DigestChanged => StepRecovery::Again,
            other => match other.retry_class() {
                RetryClass::Again => StepRecovery::Away,
                RetryClass::Later => StepRecovery::Busy,
                RetryClass::LookFirst => StepRecovery::Look,
                RetryClass::Never => StepRecovery::GiveUp,
            },
        };
        Self { problem: ErrorBody::new(error.code(), chain(&error)), next }
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        // Without the store nothing may continue; what was begun stays as it is until it answers again.
        Self { problem: ErrorBody::new(ErrorCode::Internal, chain(&error)), next: StepRecovery::Away }
    }
}
