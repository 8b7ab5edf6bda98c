//! Wrapped backup keys at the hub, by version.
//!
//! | call, by the agent's certificate | request | answer |
//! | --- | --- | --- |
//! | `PUT /v1/agent/escrow` | [`EscrowPut`] | [`EscrowKept`]; the same version again is the same answer |
//! | `GET /v1/agent/escrow/versions` | | [`EscrowList`], newest first |
//! | `GET /v1/agent/escrow/versions/{number}/proof?nonce=…` | a fresh [`Nonce`] in hex | [`EscrowProof`], to be compared with [`proof`] |
//! | `POST /v1/agent/escrow/versions/{number}/opened` | [`EscrowOpened`] | [`EscrowKept`] |
//! | `GET /v1/agent/escrow`, `GET /v1/agent/escrow/versions/{number}` | | [`EscrowFound`]; the customer is notified of it |
//!
//! | call, by an operator | request | answer |
//! | --- | --- | --- |
//! | `GET /v1/hosts/{id or name}/escrow` | | [`EscrowList`], newest first |
//! | `POST /v1/hosts/{id or name}/escrow/read` | [`EscrowRead`] | [`EscrowFiles`]; the customer is notified of each |
//!
//! A version is never overwritten and no agent can delete one. The agent checks a stored version by its proof, which
//! reveals nothing and causes no notice. The file itself is read when a host is lost. The hub treats the file as
//! opaque: it checks only its [`form`].
//!
//! | refused with | when |
//! | --- | --- |
//! | `ESCROW_BROKEN`, `ESCROW_WORK`, `SIZE` | the file is no escrow file, or does not hash to what was said |
//! | `ESCROW_TAKEN` | the number is another version's |
//! | `ESCROW_NUMBER` | the number is behind the newest, or more than [`NUMBER_JUMP_MAX`] ahead of it |
//! | `ESCROW_OTHER` | the host's escrows are another customer's |
//! | `QUOTA` | [`VERSIONS_MAX`] are held, and none of them may be removed |
//! | `RATE_LIMITED` | too often |
//! | `NOTICE_UNSET` | the notice of a read would reach no recipient |
//! | `NOT_FOUND` | there is no such version |

pub mod by_hand;
pub mod form;
pub mod notice;
mod number;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use number::{CodeNumber, EscrowNumber};

use crate::id::{CustomerId, KeyFingerprint};
use crate::job::act::Sha256Text;
use crate::job::{HostEpoch, Nonce, UtcSecond};

/// Versions of one host that the hub holds, at most.
pub const VERSIONS_MAX: u32 = 32;

/// How far ahead of the newest a new version's number may be. A thief of a host's certificate cannot use up all
/// numbers.
pub const NUMBER_JUMP_MAX: u32 = 100;

/// A file as base64, and its description.
pub const PUT_BYTES_MAX: usize = 4 * form::FILE_BYTES_MAX;

/// The version of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EscrowPutSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.escrow-put/v1")]
    V1,
}

/// A version to be kept. The fields next to the file are the agent's claim; the content of the file counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowPut {
    /// Which form this is.
    pub schema: EscrowPutSchema,
    /// Which version, counted by the agent.
    pub number: EscrowNumber,
    /// The wrapped key.
    pub file: EscrowBytes,
    /// What the file hashes to.
    pub sha256: Sha256Text,
    /// Whose data the key opens: the first version says it for good.
    pub customer: CustomerId,
    /// Which life of the host's state.
    pub epoch: HostEpoch,
    /// Which code opens it; the number of its sheet.
    pub code: CodeNumber,
    /// Which key is in it.
    pub fingerprint: KeyFingerprint,
    /// When the code was made.
    pub made_at: UtcSecond,
}

/// A version that is kept, without its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowView {
    /// Which version.
    pub number: EscrowNumber,
    /// What the file hashes to.
    pub sha256: Sha256Text,
    /// Its length in bytes.
    pub bytes: u32,
    /// Whose data the key opens.
    pub customer: CustomerId,
    /// Which life of the host's state.
    pub epoch: HostEpoch,
    /// Which code opens it.
    pub code: CodeNumber,
    /// Which key is in it.
    pub fingerprint: KeyFingerprint,
    /// When the code was made.
    pub made_at: UtcSecond,
    /// When the hub took it.
    pub kept_at: Timestamp,
    /// When its holder last opened it with the code, as far as the agent reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<UtcSecond>,
}

/// Whether a read would be notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The customer is notified by webhook.
    Webhook,
    /// No recipient: reads are refused until the hub's settings name one.
    Unset,
}

/// A version is kept, durably.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowKept {
    /// The version.
    pub version: EscrowView,
    /// Whether it could be read in need.
    pub notice: Notice,
}

/// All versions of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowList {
    /// Newest first, at most [`VERSIONS_MAX`].
    pub versions: Vec<EscrowView>,
    /// Whether they could be read in need.
    pub notice: Notice,
}

/// A version with its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowFound {
    /// The version.
    pub version: EscrowView,
    /// The wrapped key.
    pub file: EscrowBytes,
}

/// The request of an operator to read files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowRead {
    /// The file of this code; of each key the newest, where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeNumber>,
}

/// Versions with their files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowFiles {
    /// At most one of each key, newest first.
    pub files: Vec<EscrowFound>,
}

/// Each key's version that is in force: of its newest code, the newest version.
///
/// A version that was put anew, because the hub had lost it, has a later number than that of a newer code.
#[must_use]
pub fn newest_of_each_key(versions: &[EscrowView]) -> Vec<&EscrowView> {
    let newest = |one: &&EscrowView| {
        let same_key = versions.iter().filter(|other| other.fingerprint == one.fingerprint);
        same_key.map(|other| (other.code, other.number)).max() == Some((one.code, one.number))
    };
    let mut all: Vec<&EscrowView> = versions.iter().filter(newest).collect();
    all.sort_by_key(|view| std::cmp::Reverse(view.number));
    all
}

/// What only who holds the file can say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowProof {
    /// Of which version.
    pub number: EscrowNumber,
    /// [`proof`] of the nonce in the request.
    pub proof: Sha256Text,
}

/// The holder opened a version with the code: a drill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EscrowOpened {
    /// When, by the host's clock.
    pub at: UtcSecond,
}

/// What the holder of these bytes says to this nonce. A nonce is used once, so an answer cannot be kept in place of the
/// file.
#[must_use]
pub fn proof(nonce: &Nonce, file: &EscrowBytes) -> Sha256Text {
    let mut hash = Sha256::new();
    for part in [b"holdfast.escrow-proof/v1".as_slice(), nonce.as_str().as_bytes(), &file.0] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    Sha256Text::from_digest(hash.finalize().into())
}

/// The bytes of an escrow file on their way, as base64. They are not secret, and of no judged form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EscrowBytes(Vec<u8>);

impl EscrowBytes {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What they hash to.
    #[must_use]
    pub fn sha256(&self) -> Sha256Text {
        Sha256Text::of(&self.0)
    }
}

const BYTES_RULE: &str = "an escrow file is 1 to 4096 bytes, in plain base64";

impl TryFrom<Vec<u8>> for EscrowBytes {
    type Error = &'static str;
    fn try_from(bytes: Vec<u8>) -> Result<Self, Self::Error> {
        if (1..=form::FILE_BYTES_MAX).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(BYTES_RULE) }
    }
}

impl TryFrom<String> for EscrowBytes {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        // The decoder takes one spelling alone: padding as it must be, no spaces, no bits left over.
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text)
            .map_err(|_| BYTES_RULE)
            .and_then(Self::try_from)
    }
}

impl From<EscrowBytes> for String {
    fn from(bytes: EscrowBytes) -> Self {
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes.0)
    }
}

impl std::fmt::Debug for EscrowBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EscrowBytes({} bytes)", self.0.len())
    }
}

impl JsonSchema for EscrowBytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EscrowBytes".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let longest = form::FILE_BYTES_MAX.div_ceil(3) * 4;
        schemars::json_schema!({ "type": "string", "contentEncoding": "base64", "minLength": 4, "maxLength": longest,
            "description": BYTES_RULE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(digit: char) -> Nonce {
        Nonce::try_from(digit.to_string().repeat(32)).unwrap()
    }

    #[test]
    fn a_proof_is_of_this_nonce_and_these_bytes() {
        let bytes = |text: &[u8]| EscrowBytes::try_from(text.to_vec()).unwrap();
        let said = proof(&nonce('a'), &bytes(b"one"));
        assert_eq!(said, proof(&nonce('a'), &bytes(b"one")));
        assert_ne!(said, proof(&nonce('b'), &bytes(b"one")));
        assert_ne!(said, proof(&nonce('a'), &bytes(b"two")));
        assert_ne!(said, bytes(b"one").sha256());
    }

    #[test]
    fn bytes_are_bounded_and_spelt_in_one_way() {
        for bad in ["", "AA", "QQ=", "QR==", "QQ==\n", "Q Q=="] {
            assert!(EscrowBytes::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        assert_eq!(EscrowBytes::try_from("QQ==".to_owned()).unwrap().as_bytes(), b"A");
        assert!(EscrowBytes::try_from(vec![0; form::FILE_BYTES_MAX]).is_ok());
        assert!(EscrowBytes::try_from(vec![0; form::FILE_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn of_each_key_the_newest_code_counts_and_no_file_that_was_put_anew() {
        let view = |number: u32, code: u32, key: &str| EscrowView {
            number: number.try_into().unwrap(),
            sha256: Sha256Text::of(b""),
            bytes: 1,
            customer: "acme".parse().unwrap(),
            epoch: HostEpoch::new(1),
            code: code.try_into().unwrap(),
            fingerprint: [key; 32].join(":").parse().unwrap(),
            made_at: UtcSecond::new(Timestamp::UNIX_EPOCH).unwrap(),
            kept_at: Timestamp::UNIX_EPOCH,
            opened_at: None,
        };
        // Code 1 was put again as version 5, behind code 3 of the same key.
        let all = [view(5, 1, "aa"), view(4, 3, "aa"), view(3, 2, "bb"), view(1, 1, "aa")];
        let found: Vec<u32> = newest_of_each_key(&all).iter().map(|view| view.number.number()).collect();
        assert_eq!(found, [4, 3]);
        assert!(newest_of_each_key(&[]).is_empty());
    }

    #[test]
    fn the_largest_put_fits_into_its_bound() {
        let file = EscrowBytes::try_from(vec![0xff; form::FILE_BYTES_MAX]).unwrap();
        let put = EscrowPut {
            schema: EscrowPutSchema::V1,
            number: EscrowNumber::try_from(999_999).unwrap(),
            sha256: file.sha256(),
            file,
            customer: "c".repeat(63).parse().unwrap(),
            epoch: HostEpoch::new(u32::MAX),
            code: CodeNumber::try_from(999_999).unwrap(),
            fingerprint: ["ab"; 32].join(":").parse().unwrap(),
            made_at: UtcSecond::new(Timestamp::UNIX_EPOCH).unwrap(),
        };
        let text = serde_json::to_string_pretty(&put).unwrap();
        assert!(text.len() <= PUT_BYTES_MAX, "{}", text.len());
        let read: EscrowPut = crate::json::parse("an escrow", text.as_bytes(), PUT_BYTES_MAX).unwrap();
        assert_eq!(read, put);
    }
}
