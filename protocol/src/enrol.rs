//! Invites, enrollment requests and certificates.
//!
//! An invite holds all a new agent needs to trust the hub: its URL, the pin of its CA, and a secret that works once.
//! Of a CSR the hub takes the public key alone; the identity comes from the invite.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{EnrollmentRequestId, HostId, HostName};
use crate::job::HostEpoch;
use crate::job::act::Sha256Text;
use crate::json::{self, JsonError};
use crate::pin::{Pin, PinKind};
use crate::secret::Secret;
use crate::storage::HostRecipient;

/// Every invite starts with this, so that one can be found where it should not be.
pub const INVITE_PREFIX: &str = "hf1_";

/// An invite is at most this long.
pub const INVITE_CHARS_MAX: usize = 1024;

/// A CSR is at most 8 KiB of PEM; an Ed25519 or P-256 one is under 1 KiB.
pub const CSR_BYTES_MAX: usize = 8 * 1024;

/// A host's certificate with less left than this should have been renewed hours ago: the shortest one lives a day, and is
/// renewed when a quarter of it is left at the latest.
pub const CERTIFICATE_LATE: SignedDuration = SignedDuration::from_hours(4);

/// An opened invite.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invite {
    /// The hub, `https://name:port`.
    pub hub: String,
    /// The pin of the hub's CA certificate.
    pub ca: Pin,
    /// Works once.
    pub secret: Secret,
    /// Of a restore invite: what the operators' order hashes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Sha256Text>,
}

/// Why text is not an invite.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// Not even the beginning fits.
    #[error(
        "this is not an invite: an invite starts with {INVITE_PREFIX}; copy the whole line that `holdfast host invite` printed"
    )]
    Prefix,
    /// Cut off or mistyped.
    #[error("the invite is cut off or mistyped: copy the whole line that `holdfast host invite` printed")]
    Encoding(#[source] base64::DecodeError),
    /// Readable, but not an invite.
    #[error("the invite's content is not of this version: agent and hub must be of one release line")]
    Content(#[source] JsonError),
    /// An invite over plain HTTP would hand its secret to anyone.
    #[error(
        "the invite names {url}, which is not https: ask for a new invite from a hub that has its public URL set"
    )]
    Scheme {
        /// The URL it names.
        url: String,
    },
}

impl Invite {
    /// The one line that an operator hands over.
    ///
    /// # Errors
    /// Only when the parts cannot be written as JSON.
    pub fn seal(&self) -> Result<Secret, serde_json::Error> {
        let json = zeroize::Zeroizing::new(serde_json::to_vec(self)?);
        Ok(Secret::new(format!("{INVITE_PREFIX}{}", URL_SAFE_NO_PAD.encode(json.as_slice()))))
    }

    /// Reads that line.
    ///
    /// # Errors
    /// [`InviteError`]; nothing is sent anywhere for a line that is refused.
    pub fn open(line: &Secret) -> Result<Self, InviteError> {
        let text = line.expose().trim();
        let body = text.strip_prefix(INVITE_PREFIX).filter(|_| text.len() <= INVITE_CHARS_MAX);
        let bytes =
            URL_SAFE_NO_PAD.decode(body.ok_or(InviteError::Prefix)?).map_err(InviteError::Encoding)?;
        let bytes = zeroize::Zeroizing::new(bytes);
        let invite: Self =
            json::parse("the invite", &bytes, INVITE_CHARS_MAX).map_err(InviteError::Content)?;
        if invite.hub.starts_with("https://") {
            Ok(invite)
        } else {
            Err(InviteError::Scheme { url: invite.hub })
        }
    }
}

/// Redeems an invite.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteRedemption {
    /// The invite's secret.
    pub secret: Secret,
    /// The agent's CSR, PEM. Only its public key and its own signature are looked at.
    pub csr_pem: String,
}

/// An identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Enrolled {
    /// Who the agent is now.
    pub host_id: HostId,
    /// What operators call it.
    pub host_name: HostName,
    /// Its certificate, PEM.
    pub certificate_pem: String,
    /// The hub's CA certificate, PEM. During a change of the CA there are two.
    pub ca_pem: String,
    /// The newer CA of the hub, signed by the one before it, PEM. A host that knows only the older one takes the newer
    /// one by this signature, and by nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cross_pem: Option<String>,
    /// Counts this identity's certificates; two holders show as two numbers.
    pub certificate_generation: u32,
    /// When the certificate begins.
    pub not_before: Timestamp,
    /// When it ends. Renewal is due at two thirds.
    pub not_after: Timestamp,
}

impl Enrolled {
    /// When renewal is due: at two thirds of the certificate's life.
    #[must_use]
    pub fn renew_at(&self) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before);
        self.not_before.checked_add(life / 3 * 2).unwrap_or(self.not_before)
    }
}

/// Requests the next certificate, over the present one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// A CSR, PEM, with a new key or the present one.
    pub csr_pem: String,
}

/// Requests enrollment without an invite.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnrollmentRequest {
    /// The agent's CSR, PEM. A second request with the same key is the same request.
    pub csr_pem: String,
    /// What the agent believes its node is called; only shown.
    pub claimed_name: HostName,
    /// What a first order for this host is sealed and signed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing: Option<SealingIdentity>,
}

/// What an order needs to know of a host that has not reported yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SealingIdentity {
    /// The host's own key, to which secrets are sealed.
    pub recipient: HostRecipient,
    /// The epoch of its records.
    pub epoch: HostEpoch,
}

/// What is compared by eye for a request: the key of its certificate, and what is sealed for, where it says that. So a
/// hub that passes on another key to seal for shows another fingerprint than the host.
#[must_use]
pub fn request_fingerprint(key: Pin, sealing: Option<&SealingIdentity>) -> Pin {
    sealing.map_or(key, |SealingIdentity { recipient, epoch }| {
        let text = format!("holdfast.enrollment-request/v1\n{key}\n{recipient}\n{epoch}\n");
        Pin::of(PinKind::Request, text.as_bytes())
    })
}

/// The answer to an enrollment request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EnrollmentAnswer {
    /// An operator has to decide; ask again after this many seconds.
    Pending {
        /// Its id.
        request: EnrollmentRequestId,
        /// What the operator and the person at the host compare by eye.
        fingerprint: Pin,
        /// When to ask again.
        retry_after_s: u32,
    },
    /// Let in.
    Approved(Box<Enrolled>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pin::PinKind;

    #[test]
    fn an_invite_reads_back_and_a_damaged_one_says_why() {
        let invite = Invite {
            hub: "https://hub.example:8440".to_owned(),
            ca: Pin::of(PinKind::Leaf, b"ca"),
            secret: Secret::new("0123456789abcdef".to_owned()),
            order: None,
        };
        let line = invite.seal().unwrap();
        let opened = Invite::open(&Secret::new(format!(" {}\n", line.expose()))).unwrap();
        assert_eq!((opened.hub, opened.ca), (invite.hub.clone(), invite.ca));
        let cut = Secret::new(line.expose()[..line.expose().len() - 7].to_owned());
        assert!(Invite::open(&cut).is_err());
        assert!(matches!(Invite::open(&Secret::new("hello".to_owned())), Err(InviteError::Prefix)));
        let plain = Invite { hub: "http://hub".to_owned(), ..invite }.seal().unwrap();
        assert!(matches!(Invite::open(&plain), Err(InviteError::Scheme { .. })));
    }

    #[test]
    fn the_fingerprint_of_a_request_covers_every_key() {
        let key = |bytes: &[u8]| Pin::of(PinKind::Spki, bytes);
        let sealing = |letter: &str, epoch| SealingIdentity {
            recipient: format!("age1{}", letter.repeat(58)).parse().unwrap(),
            epoch: HostEpoch::new(epoch),
        };
        let (own, hubs, later) = (sealing("q", 1), sealing("p", 1), sealing("q", 2));
        let shown = request_fingerprint(key(b"key"), Some(&own));
        assert_eq!(shown.to_string().parse::<Pin>().unwrap(), shown);
        for other in [
            request_fingerprint(key(b"key"), Some(&hubs)),
            request_fingerprint(key(b"key"), Some(&later)),
            request_fingerprint(key(b"other"), Some(&own)),
            request_fingerprint(key(b"key"), None),
        ] {
            assert_ne!(other, shown);
        }
        assert_eq!(request_fingerprint(key(b"key"), None), key(b"key"));
    }

    #[test]
    fn an_answer_with_an_unknown_field_is_refused() {
        let pin = Pin::of(PinKind::Leaf, b"x");
        let text = |more: &str| {
            format!(
                r#"{{"pending":{{"request":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01",{more}"fingerprint":"{pin}","retry_after_s":60}}}}"#
            )
        };
        assert!(serde_json::from_str::<EnrollmentAnswer>(&text("")).is_ok());
        assert!(serde_json::from_str::<EnrollmentAnswer>(&text(r#""fiock":1,"fiock":2,"#)).is_err());
    }

    #[test]
    fn renewal_is_due_at_two_thirds() {
        let enrolled = Enrolled {
            host_id: HostId::new(uuid::Uuid::nil()),
            host_name: "box7".parse().unwrap(),
            certificate_pem: String::new(),
            ca_pem: String::new(),
            ca_cross_pem: None,
            certificate_generation: 1,
            not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
            not_after: "2026-12-01T00:00:00Z".parse().unwrap(),
        };
        assert_eq!(enrolled.renew_at().to_string(), "2026-11-21T00:00:00Z");
    }
}
