//! Errors of the command, with one exit code per kind.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredError;

use crate::cmd_errors::{
    ApprovalError, CertificateCommandError, HostLabelError, OrderError, PartCommandError, ReceiverTestError,
    SealCommandError,
};
use crate::config::ConfigError;
use crate::document_file::DocumentFileError;
use crate::hub::HubError;
use crate::job_draft::JobDraftError;
use crate::job_file::JobFileError;
use crate::keygen::KeygenError;
use crate::pins::PinError;
use crate::prompt::PromptError;
use crate::release_errors::{ReleaseFileError, ReleaseSignError, ReleaseStoreError, ReleaseVerifyError};
use crate::state_errors::{ExportError, StateCommandError};
use crate::tunnel_errors::{ApproveError, TunnelTokenError};

/// It is done.
pub const DONE: u8 = 0;
pub const FAILED: u8 = 1;
/// The command line was wrong.
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 4;
const CONFLICT: u8 = 5;
const REFUSED: u8 = 6;
const TIMED_OUT: u8 = 7;
const UNAVAILABLE: u8 = 69;
const NO_PERMISSION: u8 = 77;

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file with the document.
    #[error(transparent)]
    DocumentFile(#[from] DocumentFileError),
    #[error(transparent)]
    Document(#[from] DesiredError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// What is to be signed.
    #[error(transparent)]
    JobDraft(#[from] JobDraftError),
    /// A host that is not the one that was known.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// An order that is not taken back.
    #[error(transparent)]
    Withdraw(#[from] crate::cmd_errors::WithdrawError),
    #[error(transparent)]
    Keygen(#[from] KeygenError),
    /// The file with a signed job.
    #[error(transparent)]
    JobFile(#[from] JobFileError),
    /// An operators file that no host would take.
    #[error(transparent)]
    Operators(#[from] holdfast_trust::operators::OperatorsError),
    /// A policy that no host would take.
    #[error(transparent)]
    Policy(#[from] holdfast_trust::policy::PolicyError),
    /// Labels or windows of hosts.
    #[error(transparent)]
    HostLabel(#[from] crate::cmd_errors::HostLabelError),
    /// An exported audit.
    #[error(transparent)]
    Audit(#[from] crate::cmd_errors::AuditError),
    /// A restore certificate that proves nothing, or is not there.
    #[error(transparent)]
    Certificate(#[from] CertificateCommandError),
    /// Credentials that cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealCommandError),
    /// A token of a tunnel that cannot be sealed or carried over.
    #[error(transparent)]
    TunnelToken(#[from] TunnelTokenError),
    /// An enrollment request that is not approved, or whose host has no token.
    #[error(transparent)]
    Approve(#[from] ApproveError),
    /// Wrapped keys that are not written, or a page that cannot be made.
    #[error(transparent)]
    Escrow(#[from] crate::cmd_errors::EscrowCommandError),
    /// A receiver of alerts that did not take a test.
    #[error(transparent)]
    ReceiverTest(#[from] ReceiverTestError),
    /// A work order.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// A file of a release, or its manifest.
    #[error(transparent)]
    ReleaseFile(#[from] ReleaseFileError),
    /// A release that is not signed.
    #[error(transparent)]
    ReleaseSign(#[from] ReleaseSignError),
    /// A release that is not accepted.
    #[error(transparent)]
    ReleaseVerify(#[from] ReleaseVerifyError),
    /// A release at the hub.
    #[error(transparent)]
    ReleaseStore(#[from] ReleaseStoreError),
    /// A part of a document that is not changed.
    #[error(transparent)]
    Part(#[from] crate::cmd_errors::PartCommandError),
    /// A snapshot of state.
    #[error(transparent)]
    State(#[from] StateCommandError),
    /// An export.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A restore invite that is not handed on.
    #[error(transparent)]
    Restore(#[from] crate::cmd_errors::RestoreError),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// A job for another host.
    #[error("the job is for host {wanted}, but {host} is {found}: it was not submitted")]
    OtherHost {
        /// The requested host.
        host: String,
        found: String,
        wanted: String,
    },
    /// No such job.
    #[error("{host} has no signed job {job}: see `holdfast job list {host}`")]
    NoJob {
        host: String,
        /// The requested job.
        job: String,
    },
    /// The host has it, and nothing to sign a cancel with was given.
    #[error("{host} has the job already, so only a signed cancel can stop it: give your key with --key")]
    CancelNeedsKey { host: String },
    /// The host would not take it.
    #[error("{host} refuses job {job}: {problem}")]
    JobRefused { host: String, job: String, problem: String },
    /// It came to nothing.
    #[error("job {job} failed on {host}: {problem}")]
    JobFailed { host: String, job: String, problem: String },
    /// It was stopped.
    #[error("job {job} of {host} was cancelled")]
    JobCancelled { host: String, job: String },
    /// Not there in time.
    #[error(
        "job {job} of {host} has not ended after {seconds} s; it continues: see `holdfast job show {host} {job}`"
    )]
    JobTimedOut {
        host: String,
        job: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The hub holds a document that this program cannot read.
    #[error(
        "the hub's document for {host} cannot be read by this version of holdfast: use one of the hub's release line"
    )]
    Held {
        host: String,
        #[source]
        source: DesiredError,
    },
    /// Nothing was put yet.
    #[error("no document was put to {host} yet: put one with `holdfast desired apply {host} FILE`")]
    NoDocument { host: String },
    /// No such version, or none before the newest.
    #[error("{host} has no such versions of its document: see `holdfast desired history {host}`")]
    NoVersion { host: String },
    /// No such guest.
    #[error("no guest {guest}: see `holdfast guest list`")]
    NoGuest {
        /// The requested guest.
        guest: String,
    },
    /// Several guests of that name.
    #[error("guest {guest} is on several hosts ({hosts}): choose one with --host, or give the uid")]
    ManyGuests {
        /// The requested guest.
        guest: String,
        hosts: String,
    },
    /// The agent would not take the document.
    #[error("the agent of {host} refuses generation {generation}: {problem}")]
    RefusedByAgent { host: String, generation: u64, problem: String },
    /// Some of it waits for an operator's signature.
    #[error("{host} waits for a signature: {effects}")]
    NeedsSignature {
        host: String,
        /// What would happen.
        effects: String,
    },
    /// Work has stopped and will not continue by itself.
    #[error("{host} needs attention: {reasons}; see `holdfast host show {host}`")]
    Stuck { host: String, reasons: String },
    /// Not there in time.
    #[error(
        "{host} has not converged after {seconds} s (missing: {missing}); it continues: see `holdfast host show {host}`"
    )]
    TimedOut {
        host: String,
        /// How long was waited.
        seconds: u64,
        /// What is missing.
        missing: String,
    },
    /// Images that cannot be trusted before it is known why.
    #[error(
        "golden images of the same inputs differ: {sentence}; approve none of them before it is known which builder is wrong"
    )]
    GoldensDiffer {
        /// Which archive is on which hosts.
        sentence: String,
    },
    /// The same, where an operator would sign for one of them.
    #[error(
        "golden images of the same inputs differ: {sentence}. Nothing was signed: find out which builder is wrong (`holdfast golden compare`), or add --although-builds-differ"
    )]
    DifferentBuilds {
        /// Which archive is on which hosts.
        sentence: String,
    },
    /// No reason can be made of the file's name.
    #[error("give a reason with --reason: {0}")]
    Reason(&'static str),
    /// The output cannot be written.
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
            Self::Hub(error)
            | Self::State(StateCommandError::Hub(error))
            | Self::Export(ExportError::Hub(error) | ExportError::State(StateCommandError::Hub(error))) => {
                of_hub(error)
            }
            Self::State(StateCommandError::NotKept { .. } | StateCommandError::None) => NOT_FOUND,
            Self::Export(ExportError::Period | ExportError::Exists { .. }) => USAGE,
            Self::Config(ConfigError::NotLoggedIn { .. }) => NO_PERMISSION,
            Self::Prompt(PromptError::NoTerminal { .. }) => USAGE,
            Self::NoGuest { .. }
            | Self::NoDocument { .. }
            | Self::NoVersion { .. }
            | Self::NoJob { .. }
            | Self::ReleaseStore(ReleaseStoreError::Unknown { .. })
            | Self::Certificate(CertificateCommandError::None { .. }) => NOT_FOUND,
            Self::JobDraft(
                JobDraftError::Nothing { .. } | JobDraftError::NoSuch { .. } | JobDraftError::Unseen { .. },
            ) => NOT_FOUND,
            Self::Approval(ApprovalError::NotReported { .. } | ApprovalError::Unknown { .. }) => NOT_FOUND,
            Self::Approval(ApprovalError::NoImage | ApprovalError::ManyImages { .. }) => USAGE,
            Self::Part(PartCommandError::Fields(_) | PartCommandError::NoName { .. }) => USAGE,
            Self::ManyGuests { .. } | Self::Reason(_) | Self::CancelNeedsKey { .. } => USAGE,
            Self::JobDraft(JobDraftError::Which { .. }) => USAGE,
            Self::Pin(
                PinError::Changed { .. } | PinError::OtherFingerprint { .. } | PinError::Signed { .. },
            ) => CONFLICT,
            Self::Withdraw(_) => USAGE,
            Self::HostLabel(HostLabelError::NoHost { .. }) => NOT_FOUND,
            Self::HostLabel(
                HostLabelError::Twice { .. } | HostLabelError::Windows(_) | HostLabelError::Labels(_),
            ) => USAGE,
            Self::JobDraft(JobDraftError::OtherDocument { .. } | JobDraftError::StaysBehind { .. }) => {
                CONFLICT
            }
            Self::Seal(SealCommandError::OtherRecipient { .. }) => CONFLICT,
            Self::Approve(ApproveError::Fingerprint { .. }) => CONFLICT,
            Self::Approve(ApproveError::Unknown(_)) => NOT_FOUND,
            Self::TunnelToken(TunnelTokenError::NoOrder { .. }) => NOT_FOUND,
            Self::TunnelToken(TunnelTokenError::Unsigned { .. }) => REFUSED,
            Self::OtherHost { .. }
            | Self::JobCancelled { .. }
            | Self::Order(OrderError::Cancelled { .. }) => CONFLICT,
            Self::ReleaseVerify(ReleaseVerifyError::Refused { .. }) => REFUSED,
            Self::ReleaseVerify(ReleaseVerifyError::Threshold { .. }) => USAGE,
            Self::ReleaseSign(ReleaseSignError::OtherManifest { .. } | ReleaseSignError::Twice { .. }) => {
                CONFLICT
            }
            Self::RefusedByAgent { .. } | Self::NeedsSignature { .. } | Self::JobRefused { .. } => REFUSED,
            Self::TimedOut { .. }
            | Self::JobTimedOut { .. }
            | Self::Order(OrderError::TimedOut { .. })
            | Self::ReceiverTest(ReceiverTestError::TimedOut { .. }) => TIMED_OUT,
            _ => FAILED,
        }
    }

    /// The hub's own code, where it spoke.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Hub(HubError::Refused { problem, .. }) => Some(problem.code),
            Self::Hub(HubError::OtherServer { .. } | HubError::Certificate { .. }) => {
                Some(ErrorCode::PinMismatch)
            }
            Self::Pin(PinError::Changed { .. } | PinError::OtherFingerprint { .. }) => {
                Some(ErrorCode::HostKeyChanged)
            }
            Self::JobDraft(JobDraftError::NoDocument { .. }) => Some(ErrorCode::JobUnbound),
            Self::JobDraft(JobDraftError::OtherDocument { .. }) => Some(ErrorCode::TargetChanged),
            Self::JobDraft(JobDraftError::StaysBehind { .. }) => Some(ErrorCode::RootDiskData),
            Self::Document(error) => Some(error.code()),
            Self::DocumentFile(error) => error.code(),
            Self::Seal(SealCommandError::Content(error)) => Some(error.code()),
            Self::TunnelToken(TunnelTokenError::Content(error) | TunnelTokenError::Open(error)) => {
                Some(error.code())
            }
            Self::TunnelToken(TunnelTokenError::NoReader { .. }) => Some(ErrorCode::SealKey),
            Self::Approve(ApproveError::Fingerprint { .. }) => Some(ErrorCode::PinMismatch),
            Self::ReleaseVerify(error) => error.code(),
            _ => None,
        }
    }
}

fn of_hub(error: &HubError) -> u8 {
    match error {
        HubError::Unreachable { .. } | HubError::OtherServer { .. } | HubError::Certificate { .. } => {
            UNAVAILABLE
        }
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
        | ErrorCode::IncidentOver
        | ErrorCode::InUse
        | ErrorCode::Locked
        | ErrorCode::NameTaken => CONFLICT,
        ErrorCode::NeedsSignature
        | ErrorCode::OnHost
        | ErrorCode::Refused
        | ErrorCode::Frozen
        | ErrorCode::GoldenUnapproved => REFUSED,
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
