//! Errors of the commands that have their own.
//!
//! They are separate from the commands, since every command returns the error that contains all of them.

use std::path::PathBuf;

use holdfast_protocol::audit::ChainError;
use holdfast_protocol::enrol::InviteError;
use holdfast_protocol::host_label::LabelError;
use holdfast_protocol::id::{GoldenVersion, HostName, ReceiverName, TargetName, WorkOrderId};
use holdfast_protocol::release::window::WindowError;
use holdfast_protocol::restore_certificate::CertificateError;
use holdfast_protocol::storage::HostRecipient;
use holdfast_seal::{OpenError, SealError};
use restore_certificate::KeyError;
use restore_certificate::verify::VerifyError;

use crate::args::FieldTermError;

/// Why a file does not prove anything.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// It does not hold.
    #[error("the hash chain of {} is broken", path.display())]
    Chain {
        path: PathBuf,
        #[source]
        source: ChainError,
    },
    /// A record of a guest was changed.
    #[error("record {number} is not what its hash says: it was changed after the host sent it, or before")]
    Record { number: i64 },
    /// Nothing to compare with.
    #[error("{host} has not reported the head of its audit: update its agent, or verify without --host")]
    NoHead { host: String },
}

/// Why an image is not approved for all hosts.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    #[error("give the image with --golden VERSION, or a signed approval with --also FILE")]
    NoImage,
    /// No host has it, or none has hashed it.
    #[error(
        "no host reports an image {version} with its digest, so nothing was signed: build it (`agentd golden build`), or give the digest with --sha256"
    )]
    NotReported { version: GoldenVersion },
    /// One version, several archives.
    #[error(
        "hosts report different images as {version}, so nothing was signed; choose one with --sha256:\n{list}"
    )]
    ManyImages {
        version: GoldenVersion,
        /// Each digest with its hosts.
        list: String,
    },
    #[error("there is no one approval {asked}: `holdfast golden approvals` lists them")]
    Unknown { asked: String },
}

/// Why a restore certificate is not shown.
#[derive(Debug, thiserror::Error)]
pub enum CertificateCommandError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file is no restore certificate.
    #[error("{} is not a restore certificate", path.display())]
    Form {
        path: PathBuf,
        #[source]
        source: CertificateError,
    },
    /// It proves nothing.
    #[error("the restore certificate is not valid: it proves nothing")]
    Verify(#[source] VerifyError),
    /// There is none.
    #[error(
        "the hub has no restore certificate of {guest}: one is issued after each restore test that proves a backup; \
         `holdfast guest protection {guest}` shows when the last test was, and \
         `holdfast sign {host} {guest} --restore-test` asks for one now"
    )]
    None {
        /// The host that the guest is on.
        host: String,
        /// The requested guest.
        guest: String,
    },
    /// The hub's key is of another kind.
    #[error("the hub's key for restore certificates cannot be read")]
    HubKey(#[source] KeyError),
    /// A file is in the way, or cannot be made.
    #[error("{} cannot be written; it must not be there yet", path.display())]
    Unwritten {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Why no file is written, or no page made.
#[derive(Debug, thiserror::Error)]
pub enum EscrowCommandError {
    /// No backups are copied off-site.
    #[error("{host} has no off-site target in its document, so there are no backups that a sheet could open")]
    NoOffSite { host: HostName },
    /// The guests are several customers' and no code says whose the key is.
    #[error(
        "no recovery code was made for {host}, and its guests are not one customer's: make one first, with `agentd escrow create` \
         there"
    )]
    NoCustomer { host: HostName },
    /// There is no folder for them.
    #[error("{} is not a folder, so nothing was fetched: give one with --to", path.display())]
    NoFolder { path: PathBuf },
    /// A file is in the way, or cannot be made.
    #[error(
        "{} cannot be written; it must not be there yet. The hub gave the files out and tells the customer: what is written so far \
         is whole",
        path.display()
    )]
    Unwritten {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Why the hub's invite is not handed on.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is none.
    #[error("the hub's answer has no valid invite")]
    Invite(#[from] InviteError),
    /// For something else.
    #[error(
        "the hub's invite names another order than the one that was signed: do not use it, and check the hub"
    )]
    Exchanged,
}

/// Why nothing is sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealCommandError {
    #[error("{} cannot be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// No document, or none that names the target as it should.
    #[error("{} has no storage target {target} with a backend: add it first, without `creds`", path.display())]
    NoTarget {
        path: PathBuf,
        target: TargetName,
        /// What is wrong with it, where it is there.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The hub has no public key of that host.
    #[error(
        "{host} has not reported its key: give --recipient with the output of `agentd storage key` there"
    )]
    NoRecipient { host: HostName },
    /// The hub shows another key than the person has.
    #[error(
        "the hub shows {shown} for {host}, and you gave {given}: nothing was sealed. Compare both with \
         `agentd storage key` on the host"
    )]
    OtherRecipient { host: HostName, shown: HostRecipient, given: HostRecipient },
    /// What is to be sealed.
    #[error(transparent)]
    Content(#[from] OpenError),
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Why a receiver did not take a test.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverTestError {
    #[error("{receiver} did not take the test: {problem}")]
    Refused { receiver: ReceiverName, problem: String },
    #[error(
        "{receiver} has not taken the test after {seconds} s ({failure}); it is tried again: see `holdfast alert receivers`"
    )]
    TimedOut {
        receiver: ReceiverName,
        /// How long was waited.
        seconds: u64,
        /// Why the last try failed.
        failure: String,
    },
}

/// Why nothing is taken back.
#[derive(Debug, thiserror::Error)]
pub enum WithdrawError {
    /// None, or several.
    #[error(
        "{host} has {count} open restore orders: give --order with the hash that `holdfast host restore` printed"
    )]
    Which { host: String, count: usize },
}

/// Why labels or windows of hosts are not changed.
#[derive(Debug, thiserror::Error)]
pub enum HostLabelError {
    /// A key in two changes.
    #[error("the label {key} is in two changes, and nothing was changed: name it once")]
    Twice { key: String },
    /// More windows than a host may have.
    #[error("nothing was changed")]
    Windows(#[source] WindowError),
    /// More labels than one may have.
    #[error("nothing was changed")]
    Labels(#[source] LabelError),
    /// Nothing is selected.
    #[error("no host has the labels {label}, and nothing was changed: see `holdfast host list`")]
    NoHost { label: String },
}

/// Why a work order that was followed did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// It came to nothing.
    #[error("order {order} failed on {host}: {problem}")]
    Failed { host: String, order: WorkOrderId, problem: String },
    /// It was taken back.
    #[error("order {order} of {host} was cancelled before it began")]
    Cancelled { host: String, order: WorkOrderId },
    /// It could not begin.
    #[error("order {order} of {host} could not begin in its time: order it anew, with a longer --within")]
    Expired { host: String, order: WorkOrderId },
    /// Not there in time.
    #[error(
        "order {order} of {host} has not ended after {seconds} s; it continues: see `holdfast order show {host} {order}`"
    )]
    TimedOut { host: String, order: WorkOrderId, seconds: u64 },
}

/// Why a part of a document is not changed.
#[derive(Debug, thiserror::Error)]
pub enum PartCommandError {
    /// Fields that cannot all be set.
    #[error("the fields cannot be set, and nothing was changed: {0}")]
    Fields(FieldTermError),
    /// A part without a name.
    #[error("{} has no `name`, so nothing was changed: add it", path.display())]
    NoName { path: PathBuf },
    /// Neither a judgement nor a change came back.
    #[error(
        "the hub's answer is not of this version, and nothing else was sent: use holdfast of the hub's release line"
    )]
    NotJudged,
}
