//! What went wrong, for the shell: one code per kind, documented in `--help`.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredError;

use crate::ask::AskError;
use crate::blob::BlobError;
use crate::cmd::seal::SealCommandError;
use crate::config::ConfigError;
use crate::draft::DraftError;
use crate::hub::HubError;
use crate::keygen::KeygenError;
use crate::order::OrderError;
use crate::pins::PinError;

/// It is done.
pub const DONE: u8 = 0;
/// It failed.
pub const FAILED: u8 = 1;
/// The command line was wrong.
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 4;
const CONFLICT: u8 = 5;
const REFUSED: u8 = 6;
const TIMED_OUT: u8 = 7;
const UNAVAILABLE: u8 = 69;
const NO_PERMISSION: u8 = 77;

/// For `--help`.
pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 4 not found, 5 conflict (somebody else was faster), \
                              6 refused by policy or waiting for a signature, 7 time-out, 69 the hub does not answer, \
                              77 no permission.";

/// Why the command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The hub.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The login.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file with the document.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The document.
    #[error(transparent)]
    Document(#[from] DesiredError),
    /// A question.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// What is to be signed.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// A host that is not the one that was known.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// An order that is not taken back.
    #[error(transparent)]
    Withdraw(#[from] crate::cmd::withdraw::WithdrawError),
    /// Signing.
    #[error(transparent)]
    Keygen(#[from] KeygenError),
    /// The file with a signed job.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// An operators file that no host would take.
    #[error(transparent)]
    Operators(#[from] holdfast_trust::operators::OperatorsError),
    /// A policy that no host would take.
    #[error(transparent)]
    Policy(#[from] holdfast_trust::policy::PolicyError),
    /// An exported audit.
    #[error(transparent)]
    Audit(#[from] crate::cmd::audit::AuditError),
    /// Credentials that cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealCommandError),
    /// Wrapped keys that are not written, or a page that cannot be made.
    #[error(transparent)]
    Escrow(#[from] crate::cmd::escrow::EscrowCommandError),
    /// A restore invite that is not handed on.
    #[error(transparent)]
    Restore(#[from] crate::cmd::restore::RestoreError),
    /// A job for another host.
    #[error("the job is for host {wanted}, and {host} is {found}: it would refuse it")]
    OtherHost {
        /// As asked for.
        host: String,
        /// Its id.
        found: String,
        /// The job's.
        wanted: String,
    },
    /// No such job.
    #[error("no signed job of {host} is called {job}: `holdfast job list {host}` shows all")]
    NoJob {
        /// Where.
        host: String,
        /// As asked for.
        job: String,
    },
    /// The host has it, and nothing to sign a cancel with was given.
    #[error("{host} has the job already, so only a signed cancel stops it: give your key with --key")]
    CancelNeedsKey {
        /// Where.
        host: String,
    },
    /// The host would not take it.
    #[error("{host} refuses job {job}: {problem}")]
    JobRefused {
        /// Where.
        host: String,
        /// Which.
        job: String,
        /// Why.
        problem: String,
    },
    /// It came to nothing.
    #[error("job {job} came to nothing on {host}: {problem}")]
    JobFailed {
        /// Where.
        host: String,
        /// Which.
        job: String,
        /// Why.
        problem: String,
    },
    /// It was stopped.
    #[error("job {job} of {host} was cancelled")]
    JobCancelled {
        /// Where.
        host: String,
        /// Which.
        job: String,
    },
    /// Not there in time.
    #[error(
        "after {seconds} s job {job} of {host} has not ended; it goes on by itself, look with `holdfast job show {host} {job}`"
    )]
    JobTimedOut {
        /// Where.
        host: String,
        /// Which.
        job: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The hub holds a document that this program cannot read.
    #[error(
        "the hub's document for {host} cannot be read by this holdfast: use one of the hub's release line"
    )]
    Held {
        /// Which host.
        host: String,
        /// Why.
        #[source]
        source: DesiredError,
    },
    /// Nothing was put yet.
    #[error("no document was put to {host} yet: put one with `holdfast desired apply {host} FILE`")]
    NoDocument {
        /// Which host.
        host: String,
    },
    /// No such guest.
    #[error("no guest is called {guest}: `holdfast guest list` shows all, with their hosts")]
    NoGuest {
        /// As asked for.
        guest: String,
    },
    /// Several guests of that name.
    #[error("{guest} is on several hosts ({hosts}): say which with --host, or give the uid")]
    ManyGuests {
        /// As asked for.
        guest: String,
        /// Where.
        hosts: String,
    },
    /// The agent would not take the document.
    #[error("the agent of {host} refuses generation {generation}: {problem}")]
    RefusedByAgent {
        /// Which host.
        host: String,
        /// Which document.
        generation: u64,
        /// Why.
        problem: String,
    },
    /// Some of it waits for an operator's signature.
    #[error("{host} holds back what needs a signature: {effects}")]
    NeedsSignature {
        /// Which host.
        host: String,
        /// What would happen.
        effects: String,
    },
    /// Something stands still and will not go on by itself.
    #[error("{host} needs a person: {reasons}; look at it with `holdfast host show {host}`")]
    Stuck {
        /// Which host.
        host: String,
        /// Why.
        reasons: String,
    },
    /// Not there in time.
    #[error(
        "after {seconds} s {host} is not as wished yet (still: {missing}); it goes on by itself, look with `holdfast host show {host}`"
    )]
    TimedOut {
        /// Which host.
        host: String,
        /// How long was waited.
        seconds: u64,
        /// What is missing.
        missing: String,
    },
    /// No reason can be made of the file's name.
    #[error("give a reason with --reason: {0}")]
    Reason(&'static str),
    /// Nobody reads what we print.
    #[error("the result cannot be printed")]
    Print(#[source] std::io::Error),
    /// Cannot happen for what was read from JSON.
    #[error("the result cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl CliError {
    /// For the shell.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Hub(error) => of_hub(error),
            Self::Config(ConfigError::NotLoggedIn { .. }) => NO_PERMISSION,
            Self::Ask(AskError::NoTerminal { .. }) => USAGE,
            Self::NoGuest { .. } | Self::NoDocument { .. } | Self::NoJob { .. } => NOT_FOUND,
            Self::Order(
                OrderError::Nothing { .. } | OrderError::NoSuch { .. } | OrderError::Unseen { .. },
            ) => NOT_FOUND,
            Self::ManyGuests { .. } | Self::Reason(_) | Self::CancelNeedsKey { .. } => USAGE,
            Self::Order(OrderError::Which { .. }) => USAGE,
            Self::Pin(PinError::Changed { .. } | PinError::Other { .. } | PinError::Signed { .. }) => {
                CONFLICT
            }
            Self::Withdraw(_) => USAGE,
            Self::Order(OrderError::OtherDocument { .. }) => CONFLICT,
            Self::Seal(SealCommandError::Other { .. }) => CONFLICT,
            Self::OtherHost { .. } | Self::JobCancelled { .. } => CONFLICT,
            Self::RefusedByAgent { .. } | Self::NeedsSignature { .. } | Self::JobRefused { .. } => REFUSED,
            Self::TimedOut { .. } | Self::JobTimedOut { .. } => TIMED_OUT,
            _ => FAILED,
        }
    }

    /// The hub's own code, where it spoke.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Hub(HubError::Refused { problem, .. }) => Some(problem.code),
            Self::Hub(HubError::Stranger { .. }) => Some(ErrorCode::PinMismatch),
            Self::Pin(PinError::Changed { .. } | PinError::Other { .. }) => Some(ErrorCode::HostKeyChanged),
            Self::Order(OrderError::NoDocument { .. }) => Some(ErrorCode::JobUnbound),
            Self::Order(OrderError::OtherDocument { .. }) => Some(ErrorCode::TargetChanged),
            Self::Document(error) => Some(error.code()),
            Self::Draft(error) => error.code(),
            Self::Seal(SealCommandError::Content(error)) => Some(error.code()),
            _ => None,
        }
    }
}

fn of_hub(error: &HubError) -> u8 {
    match error {
        HubError::Away { .. } | HubError::Stranger { .. } => UNAVAILABLE,
        HubError::Refused { problem, .. } => of_code(problem.code),
        _ => FAILED,
    }
}

const fn of_code(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::NotFound => NOT_FOUND,
        ErrorCode::PreconditionFailed
        | ErrorCode::StaleGeneration
        | ErrorCode::GenerationConflict
        | ErrorCode::GenerationJump
        | ErrorCode::IdempotencyMismatch
        | ErrorCode::Locked
        | ErrorCode::NameTaken => CONFLICT,
        ErrorCode::NeedsSignature | ErrorCode::Refused | ErrorCode::Frozen | ErrorCode::GoldenUnapproved => {
            REFUSED
        }
        ErrorCode::Unavailable | ErrorCode::Busy | ErrorCode::RateLimited | ErrorCode::Internal => {
            UNAVAILABLE
        }
        // The hub says FORBIDDEN to a role that may not do this.
        ErrorCode::Unauthenticated
        | ErrorCode::Forbidden
        | ErrorCode::NotYours
        | ErrorCode::Certificate
        | ErrorCode::Revoked => NO_PERMISSION,
        _ => FAILED,
    }
}
