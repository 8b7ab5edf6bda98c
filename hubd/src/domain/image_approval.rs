//! The intake of image approvals for all hosts.
//!
//! In: the submitted text, what is stored under its id, and how many approvals are open. Out: the approval as it is to
//! be kept, or why not. The hub reads what hosts will read, so that a text that no host would take is refused at once.
//! Deliberately absent: the signatures, which the hub has no keys for.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::envelope::SignedJobError;
use holdfast_protocol::job::{ImageApproval, PayloadError, SignedJob};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// Approvals that are open at a time.
pub const OPEN_MAX: u32 = 16;

/// Approvals that are kept and shown.
pub const KEPT_MAX: u32 = 200;

/// A submitted approval that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedApproval {
    pub approval: ImageApproval,
    pub blob: String,
    /// SHA-256 of the signed bytes, without their signatures.
    pub payload: [u8; 32],
}

/// The approval stored under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredApproval {
    /// SHA-256 of its signed bytes.
    pub payload: [u8; 32],
}

/// Why an approval is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImageApprovalError {
    /// Not a signed job.
    #[error(transparent)]
    Envelope(#[from] SignedJobError),
    /// Not an approval for all hosts.
    #[error("this is no approval of an image for all hosts: {0}; make it with `holdfast sign --all-hosts`")]
    Form(#[from] PayloadError),
    #[error("approval {approval} was left under the id {left}: leave it under its own")]
    Id { approval: JobId, left: JobId },
    #[error("the approval ended at {0}: sign it anew")]
    Expired(Timestamp),
    #[error(
        "an approval of this id with another content is here already: make a new one with `holdfast sign --all-hosts`"
    )]
    Taken,
    #[error(
        "{OPEN_MAX} approvals for all hosts are open already: withdraw some (`holdfast golden approvals`)"
    )]
    Full,
}

impl ImageApprovalError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Envelope(error) => error.code(),
            Self::Form(error) => error.code(),
            Self::Id { .. } => ErrorCode::NotYours,
            Self::Expired(_) => ErrorCode::JobExpired,
            Self::Taken => ErrorCode::NameTaken,
            Self::Full => ErrorCode::Quota,
        }
    }
}

/// Reads a submitted approval.
///
/// # Errors
/// [`ImageApprovalError`].
pub fn read(left: JobId, blob: String, now: Timestamp) -> Result<SubmittedApproval, ImageApprovalError> {
    let signed = SignedJob::parse(blob.as_bytes())?;
    let approval = ImageApproval::parse(&signed.payload)?;
    if approval.job_id != left {
        return Err(ImageApprovalError::Id { approval: approval.job_id, left });
    }
    if approval.expires_at.at() <= now {
        return Err(ImageApprovalError::Expired(approval.expires_at.at()));
    }
    Ok(SubmittedApproval { approval, blob, payload: Sha256::digest(&signed.payload).into() })
}

/// Judges it against what is stored. The same bytes with more signatures take the place of those with fewer.
///
/// # Errors
/// [`ImageApprovalError`]; what is stored stays.
pub fn judge(
    stored: Option<StoredApproval>,
    open_others: u32,
    submitted: &SubmittedApproval,
) -> Result<(), ImageApprovalError> {
    if stored.is_some_and(|stored| stored.payload != submitted.payload) {
        return Err(ImageApprovalError::Taken);
    }
    if open_others >= OPEN_MAX { Err(ImageApprovalError::Full) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"schema":"holdfast.image-approval/v1","job_id":"00000000-0000-0000-0000-000000000001","version":"2026.11.1","sha256":"abababababababababababababababababababababababababababababababab","not_before":"2026-11-01T00:00:00Z","expires_at":"2026-11-22T00:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the image of November"}"#;

    fn id(n: u128) -> JobId {
        JobId::new(uuid::Uuid::from_u128(n))
    }

    fn blob(payload: &str) -> String {
        let payload = payload.as_bytes().to_vec();
        SignedJob { payload, signatures: vec!["x".to_owned()], consents: Vec::new() }.to_json().unwrap()
    }

    #[test]
    fn what_no_host_would_take_is_refused_at_once() {
        let now = "2026-11-21T14:00:00Z".parse().unwrap();
        let code =
            |left, payload: &str| read(left, blob(payload), now).map(|_| ()).map_err(|error| error.code());
        assert_eq!(code(id(1), TEXT), Ok(()));
        assert_eq!(code(id(2), TEXT), Err(ErrorCode::NotYours));
        assert_eq!(code(id(1), &TEXT.replacen("11-22T", "11-20T", 1)), Err(ErrorCode::JobExpired));
        assert_eq!(code(id(1), &TEXT.replacen("2026-11-22T", "2027-11-22T", 1)), Err(ErrorCode::JobLife));
        let verb = TEXT.replacen("\"reason\"", "\"verb\":\"destroy_guest\",\"reason\"", 1);
        assert_eq!(code(id(1), &verb), Err(ErrorCode::UnknownField));
        assert!(code(id(1), "whatever").is_err());
        assert!(read(id(1), TEXT.to_owned(), now).is_err(), "not signed");
    }

    #[test]
    fn one_id_has_one_content_and_few_are_open() {
        let now = "2026-11-21T14:00:00Z".parse().unwrap();
        let submitted = read(id(1), blob(TEXT), now).unwrap();
        let code = |stored, open| judge(stored, open, &submitted).map_err(|error| error.code());
        let same = Some(StoredApproval { payload: submitted.payload });
        let other = Some(StoredApproval { payload: [0; 32] });
        for (stored, open, wanted) in [
            (None, 0, Ok(())),
            (None, OPEN_MAX - 1, Ok(())),
            (None, OPEN_MAX, Err(ErrorCode::Quota)),
            (same, 0, Ok(())),
            (same, OPEN_MAX, Err(ErrorCode::Quota)),
            (other, 0, Err(ErrorCode::NameTaken)),
        ] {
            assert_eq!(code(stored, open), wanted, "{stored:?} {open}");
        }
    }
}
