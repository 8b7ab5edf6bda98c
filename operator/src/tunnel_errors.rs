//! Errors of commands that hand over tokens of tunnels.
//!
//! They are separate from the commands, since every command returns the error that contains all of them.

use std::path::PathBuf;

use holdfast_protocol::id::{EnrollmentRequestId, HostName, TunnelName};
use holdfast_protocol::pin::Pin;
use holdfast_protocol::storage::sealed::COPIES_MAX;
use holdfast_seal::{OpenError, SealError};

use crate::job_file::JobFileError;

/// Why no token is sealed.
#[derive(Debug, thiserror::Error)]
pub enum TunnelTokenError {
    #[error("{} cannot be read: nothing was sealed", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "line {line} of {} is not an age recipient (age1…, as `age-keygen -y FILE` prints): nothing was sealed",
        path.display()
    )]
    Reader { path: PathBuf, line: usize },
    #[error("{} names more than {COPIES_MAX} recipients: nothing was sealed", path.display())]
    Readers { path: PathBuf },
    #[error("{} holds no age identity (AGE-SECRET-KEY-1…, as `age-keygen` writes it): nothing was opened", path.display())]
    Identity { path: PathBuf },
    #[error(
        "the hub has no order that gave {tunnel} of {host} a token: nothing was carried over; make a new token at the tunnel's \
         provider, and sign it with `holdfast sign {host} --tunnel-token {tunnel}`"
    )]
    NoOrder { host: HostName, tunnel: TunnelName },
    #[error("the order that the hub kept cannot be read: nothing was carried over")]
    Unreadable(#[source] JobFileError),
    #[error(
        "the order that the hub kept is not one for {tunnel} of {host}: nothing was carried over; check the hub"
    )]
    OtherOrder { host: HostName, tunnel: TunnelName },
    #[error(
        "the order that the hub kept is signed by {signers}, and {} allows none of these keys to sign jobs: nothing was \
         carried over; whoever holds the hub could have made it", operators.display()
    )]
    Unsigned { signers: String, operators: PathBuf },
    #[error(
        "the token of {tunnel} was signed without copies for operators: nothing was carried over; make a new token at the \
         tunnel's provider, and sign it with `holdfast sign {host} --tunnel-token {tunnel}`"
    )]
    NoCopies { host: HostName, tunnel: TunnelName },
    #[error("no copy of the token is sealed for the key in {}: nothing was carried over", path.display())]
    NoReader { path: PathBuf },
    #[error("the copy of the token was not opened: nothing was carried over")]
    Open(#[source] OpenError),
    #[error(transparent)]
    Content(OpenError),
    #[error("the token was not sealed")]
    Seal(#[from] SealError),
    #[error(transparent)]
    Operators(#[from] holdfast_trust::operators::OperatorsError),
}

/// Why a request is not approved, or a token not handed over.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    #[error("the hub shows no enrollment request {0}: nothing was approved; see `holdfast host requests`")]
    Unknown(EnrollmentRequestId),
    #[error("enrollment request {0} was refused for good: nothing was sealed")]
    Refused(EnrollmentRequestId),
    #[error(
        "the keys that the hub shows for request {request} have fingerprint {shown}, and you read {given} on the host: nothing \
         was sealed and nothing approved. Compare again; another key is shown by another machine, or by a hub that lies"
    )]
    Fingerprint { request: EnrollmentRequestId, shown: Pin, given: Pin },
    #[error(
        "request {0} does not say which key to seal for: nothing was sealed and nothing approved. Approve it without \
         --tunnel-token, and send the token afterwards with `holdfast sign HOST --tunnel-token TUNNEL`"
    )]
    NoKey(EnrollmentRequestId),
    #[error(
        "the hub answered the approval without a host: no token was handed over; run the same command again"
    )]
    NoHost,
    #[error(
        "the host was approved, and the token of {tunnel} was not handed over: run the same command again"
    )]
    NotHanded {
        tunnel: TunnelName,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
