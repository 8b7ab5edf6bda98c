//! The readmission of a revoked host: its next certificate, and what ends.

use holdfast_protocol::id::HostName;
use holdfast_protocol::pin::Pin;

use crate::authority::{CsrError, IssueError};
use crate::domain::readmission::ReadmitError;

/// Why an enrollment request, or a decision on it, is refused.
#[derive(Debug, thiserror::Error)]
pub enum EnrollmentRequestError {
    /// There is no such request.
    #[error("there is no such enrollment request: see `holdfast host requests`")]
    Unknown,
    /// It was refused for good.
    #[error(
        "this enrollment request was refused for good: ask an operator for an invite if that was a mistake"
    )]
    Refused,
    /// It was approved.
    #[error("this enrollment request is approved already: revoke the host instead")]
    Decided,
    /// The operator gave another key than that of the request.
    #[error(
        "the key of this request is {actual}, not the one given: compare again; the request may be of another machine"
    )]
    Fingerprint {
        /// The key of the request.
        actual: Pin,
    },
    /// A host of that name is there.
    #[error("a host called {name} is there already: choose another name")]
    Taken { name: HostName },
    /// The key is another host's.
    #[error(
        "another host has this key, or had it: remove `identity/enrol.key.pem` in the agent's state folder and enrol again, so that the box makes a key of its own"
    )]
    KeyTaken,
    /// The stored key cannot be used.
    #[error("the key of this request cannot be used: let the agent send a new one")]
    Key(#[source] CsrError),
    /// The certificate could not be made.
    #[error("the hub could not make the certificate")]
    Issue(#[source] IssueError),
    /// The revoked host as which it should come back.
    #[error(transparent)]
    Readmit(#[from] ReadmitError),
    /// Its host was revoked, or has a later certificate.
    #[error(
        "this request was approved once, and its host has a later certificate: ask an operator for an invite"
    )]
    Spent,
}
