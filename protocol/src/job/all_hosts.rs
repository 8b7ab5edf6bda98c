//! Approvals of golden images for all hosts.
//!
//! In: bytes whose signature was checked. Out: an [`ImageApproval`], or the first mistake. It names no host, and it can
//! order nothing but the approval of one image: there is no field for another verb. Each host reads it as a job of its
//! own ([`ImageApproval::for_host`]). Deliberately absent: the signature, the clock, and who may sign.

use serde::{Deserialize, Serialize};

use super::act::{Act, ReleaseKind, ReleaseVersion, Sha256Text, args};
use super::stamp::{HostEpoch, Nonce, Reason, UtcSecond};
use super::target::Target;
use super::{BYTES_MAX, JobSchema, Payload, PayloadError};
use crate::id::{GoldenVersion, HostId, JobId};
use crate::json;

/// From `not_before` to `expires_at`, at most: images are built once a month, and a host that was off for some days, or
/// that is enrolled in this time, gets the approval too.
pub const APPROVAL_LIFE_MAX_S: i64 = 31 * 24 * 3_600;

/// The schema of an approval for all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageApprovalSchema {
    /// The first.
    #[serde(rename = "holdfast.image-approval/v1")]
    V1,
}

/// The approval of one golden image for every host that trusts its signers, within its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageApproval {
    /// Its name. Each host uses it up together with the nonce.
    pub job_id: JobId,
    /// The image.
    pub version: GoldenVersion,
    /// What its bytes hash to.
    pub sha256: Sha256Text,
    /// Not earlier.
    pub not_before: UtcSecond,
    /// Not at or after this.
    pub expires_at: UtcSecond,
    /// Never the same twice.
    pub nonce: Nonce,
    /// Why, for the audit and for people.
    pub reason: Reason,
}

/// The approval as written on the wire.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: ImageApprovalSchema,
    job_id: JobId,
    version: GoldenVersion,
    sha256: Sha256Text,
    not_before: UtcSecond,
    expires_at: UtcSecond,
    nonce: Nonce,
    reason: Reason,
}

impl ImageApproval {
    /// Reads an approval. The signature over these bytes must have been checked before.
    ///
    /// # Errors
    /// [`PayloadError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadError> {
        let wire: Wire = json::parse("an approval for all hosts", bytes, BYTES_MAX)?;
        let seconds = wire.expires_at.second().saturating_sub(wire.not_before.second());
        if !(1..=APPROVAL_LIFE_MAX_S).contains(&seconds) {
            return Err(PayloadError::ApprovalLife { seconds });
        }
        let Wire {
            schema: ImageApprovalSchema::V1,
            job_id,
            version,
            sha256,
            not_before,
            expires_at,
            nonce,
            reason,
        } = wire;
        let approval = Self { job_id, version, sha256, not_before, expires_at, nonce, reason };
        if super::is_spelled(bytes, approval.to_json()) { Ok(approval) } else { Err(PayloadError::Spelling) }
    }

    /// The text to sign: one line of JSON.
    ///
    /// # Errors
    /// Never in practice: its parts are always JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let Self { job_id, version, sha256, not_before, expires_at, nonce, reason } = self.clone();
        let schema = ImageApprovalSchema::V1;
        serde_json::to_string(&Wire {
            schema,
            job_id,
            version,
            sha256,
            not_before,
            expires_at,
            nonce,
            reason,
        })
    }

    /// The same as a job of one host, which that host's ledger takes once.
    ///
    /// # Errors
    /// [`PayloadError`], where the version could not be one of a release. No image has such a version.
    pub fn for_host(self, host_id: HostId, host_epoch: HostEpoch) -> Result<Payload, PayloadError> {
        let version = ReleaseVersion::try_from(self.version.as_str().to_owned());
        let version = version.map_err(|_| PayloadError::Spelling)?;
        let release = args::ApproveRelease { kind: ReleaseKind::Golden, version, sha256: self.sha256 };
        Ok(Payload {
            job_id: self.job_id,
            host_id,
            host_epoch,
            host: None,
            target: Target::Host {},
            act: Act::ApproveRelease(release),
            not_before: self.not_before,
            expires_at: self.expires_at,
            nonce: self.nonce,
            reason: self.reason,
        })
    }
}

/// What signed bytes order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// One act on one host.
    OneHost(Box<Payload>),
    /// An image for all hosts.
    AllHosts(ImageApproval),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnySchema {
    Job(JobSchema),
    Approval(ImageApprovalSchema),
}

/// The schema alone. The whole text is read by the schema's own form afterwards.
#[derive(Deserialize)]
struct Head {
    schema: AnySchema,
}

impl Ordered {
    /// Reads either. The signature over these bytes must have been checked before.
    ///
    /// # Errors
    /// [`PayloadError`], at the first mistake.
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadError> {
        match serde_json::from_slice::<Head>(bytes) {
            Ok(Head { schema: AnySchema::Approval(ImageApprovalSchema::V1) }) => {
                ImageApproval::parse(bytes).map(Self::AllHosts)
            }
            // What has neither schema is refused by the form of a job, with the place.
            Ok(Head { schema: AnySchema::Job(JobSchema::V1) }) | Err(_) => {
                Payload::parse(bytes).map(|payload| Self::OneHost(Box::new(payload)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::ErrorCode;

    const GOOD: &str = r#"{"schema":"holdfast.image-approval/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","version":"2026.11.1","sha256":"abababababababababababababababababababababababababababababababab","not_before":"2026-11-01T00:00:00Z","expires_at":"2026-12-02T00:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the image of November"}"#;

    const JOB: &str = r#"{"schema":"holdfast.job/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02","host_epoch":1,"target":{"kind":"host"},"verb":"approve_release","args":{"kind":"golden","version":"2026.11.1","sha256":"abababababababababababababababababababababababababababababababab"},"not_before":"2026-11-21T14:00:00Z","expires_at":"2026-11-21T15:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the image of November"}"#;

    fn with(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        GOOD.replacen(from, to, 1)
    }

    fn code(text: &str) -> ErrorCode {
        Ordered::parse(text.as_bytes()).unwrap_err().code()
    }

    #[test]
    fn each_host_reads_it_as_the_approval_of_one_image() {
        let approval = ImageApproval::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(approval.to_json().unwrap(), GOOD);
        assert_eq!(Ordered::parse(GOOD.as_bytes()).unwrap(), Ordered::AllHosts(approval.clone()));
        let host: HostId = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02".parse().unwrap();
        let payload = approval.for_host(host, HostEpoch::new(7)).unwrap();
        assert_eq!(
            (payload.host_id, payload.host_epoch.number(), &payload.target),
            (host, 7, &Target::Host {})
        );
        let Act::ApproveRelease(release) = &payload.act else { panic!("{payload:?}") };
        assert_eq!((release.kind, release.version.as_str()), (ReleaseKind::Golden, "2026.11.1"));
        assert!(matches!(Ordered::parse(JOB.as_bytes()).unwrap(), Ordered::OneHost(_)));
    }

    /// Nothing but an image can be addressed to all hosts.
    #[test]
    fn no_text_orders_anything_else_of_all_hosts() {
        let head = r#"{"schema":"holdfast.image-approval/v1""#;
        let extra = |more: &str| with(r#","reason""#, &format!(r#",{more},"reason""#));
        for more in [
            r#""verb":"destroy_guest""#,
            r#""verb":"approve_release""#,
            r#""kind":"controller""#,
            r#""args":{}"#,
            r#""target":{"kind":"host"}"#,
            r#""host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02""#,
            r#""all_hosts":true"#,
        ] {
            assert_eq!(code(&extra(more)), ErrorCode::UnknownField, "{more}");
        }
        // A job of one host that leaves its host away, or that takes the other schema.
        let no_host = JOB.replacen(r#""host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02","#, "", 1);
        assert_eq!(code(&no_host), ErrorCode::Missing);
        let dressed = JOB.replacen(r#"{"schema":"holdfast.job/v1""#, head, 1);
        assert_eq!(code(&dressed), ErrorCode::UnknownField);
        assert!(Payload::parse(GOOD.as_bytes()).is_err(), "where one host is meant it is no job");
        for (from, to) in [
            (r#""version":"2026.11.1""#, r#""version":"*""#),
            (r#""version":"2026.11.1""#, r#""version":"0.3.1""#),
            ("holdfast.image-approval/v1", "holdfast.image-approval/v2"),
            ("abababab", "ABABABAB"),
        ] {
            assert!(Ordered::parse(with(from, to).as_bytes()).is_err(), "{to}");
        }
        // A field twice, and the schema twice.
        assert!(Ordered::parse(extra(r#""version":"2026.11.2""#).as_bytes()).is_err());
        assert!(Ordered::parse(extra(r#""schema":"holdfast.job/v1""#).as_bytes()).is_err());
    }

    #[test]
    fn its_life_is_bounded() {
        for (end, wanted) in [
            ("2026-11-01T00:00:01Z", None),
            ("2026-12-02T00:00:00Z", None),
            ("2026-12-02T00:00:01Z", Some(ErrorCode::JobLife)),
            ("2026-11-01T00:00:00Z", Some(ErrorCode::JobLife)),
            ("2026-10-31T00:00:00Z", Some(ErrorCode::JobLife)),
        ] {
            let text = with("2026-12-02T00:00:00Z", end);
            let found = Ordered::parse(text.as_bytes()).err().map(|error| error.code());
            assert_eq!(found, wanted, "{end}");
        }
    }
}
