//! Acceptance of restore certificates.
//!
//! In: the certificates held of a guest, a new one, the owner of its key, and the time. Out: that it is kept, that it was
//! kept before, or why not. A certificate counts when it is by a key of the host that sends it, about that host, and
//! about a guest that this host reports. Of one restore test there is one certificate for good. Deliberately absent:
//! what a test showed; that is the host's word alone.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, HostId, OperationId};
use holdfast_protocol::job::act::Sha256Text;
use jiff::{SignedDuration, Timestamp};

/// Certificates that are kept of one guest: the newest, and the one before it.
pub const KEPT_PER_GUEST: u32 = 2;

/// Certificates that are kept of one host, of all its guests that are or were. The oldest go first.
pub const KEPT_PER_HOST: u32 = 1024;

/// A host's clock may be ahead of the hub's by this much.
pub const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(10);

/// A certificate that is held of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCertificate {
    /// The restore test that it is of.
    pub test: OperationId,
    /// When that test ended.
    pub tested_at: Timestamp,
    pub document_sha256: Sha256Text,
    pub received_at: Timestamp,
}

/// A new certificate, as far as it is judged.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The host that sends it.
    pub sender: HostId,
    /// The host that it is about.
    pub host: HostId,
    /// The owner of the key that signed it.
    pub signer: Signer,
    pub guest: GuestUid,
    /// Whether the sender reports that guest.
    pub guest_is: GuestOf,
    pub test: OperationId,
    pub tested_at: Timestamp,
    pub document_sha256: Sha256Text,
    /// Now.
    pub at: Timestamp,
}

/// The owner of the key that signed a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The sender's, by its TLS certificate of this generation.
    Sender(u32),
    /// Another's, or one that the sender no longer has.
    Other,
}

/// Which host a guest is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestOf {
    /// The sender reports it.
    Sender,
    /// The sender does not report it.
    Other,
}

/// What becomes of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is held since then.
    Again(Timestamp),
    /// It is kept, signed by the key of this generation.
    Keep(u32),
}

/// Why a certificate is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Not by the sender's key.
    #[error(
        "the restore certificate is not signed with a key that this host has here: sign it with the present one"
    )]
    Signer,
    /// About another host.
    #[error("the restore certificate is about host {says}, and host {sender} sent it")]
    Host {
        /// The host of the document.
        says: HostId,
        /// The host that sent it.
        sender: HostId,
    },
    /// About a guest of another host.
    #[error(
        "this host does not report guest {guest}: report it first, and send its restore certificate again"
    )]
    Guest {
        /// The guest of the document.
        guest: GuestUid,
    },
    /// A second one of the same test.
    #[error(
        "another restore certificate of test {test} is here since {since}, and there is one of each test"
    )]
    Second {
        /// The restore test.
        test: OperationId,
        /// When the first one was received.
        since: Timestamp,
    },
    /// A newer one is held.
    #[error(
        "a restore certificate of a later test, of {newest}, is here: this one, of {tested_at}, is too old"
    )]
    Old {
        /// When the test of this one ended.
        tested_at: Timestamp,
        /// When the test of the newest one ended.
        newest: Timestamp,
    },
    /// From the future.
    #[error("the restore test ended at {tested_at}, and here it is {now}: set the host's clock")]
    Ahead {
        /// When the test ended.
        tested_at: Timestamp,
        /// The hub's time.
        now: Timestamp,
    },
}

impl PutError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Signer | Self::Host { .. } | Self::Guest { .. } => ErrorCode::RestoreCertificate,
            Self::Second { .. } | Self::Old { .. } | Self::Ahead { .. } => ErrorCode::RestoreCertificateOld,
        }
    }
}

/// Judges a certificate against those held of its guest, in any order. Its signature was checked before.
///
/// # Errors
/// [`PutError`].
pub fn judge_put(held: &[HeldCertificate], incoming: &Incoming) -> Result<Put, PutError> {
    let Incoming { sender, host, guest, test, tested_at, at, .. } = *incoming;
    let Signer::Sender(generation) = incoming.signer else { return Err(PutError::Signer) };
    if host != sender {
        return Err(PutError::Host { says: host, sender });
    }
    if let Some(same) = held.iter().find(|held| held.test == test) {
        return if same.document_sha256 == incoming.document_sha256 {
            Ok(Put::Again(same.received_at))
        } else {
            Err(PutError::Second { test, since: same.received_at })
        };
    }
    if incoming.guest_is == GuestOf::Other {
        return Err(PutError::Guest { guest });
    }
    if tested_at.duration_since(at) > AHEAD_MAX {
        return Err(PutError::Ahead { tested_at, now: at });
    }
    match held.iter().map(|held| held.tested_at).max() {
        Some(newest) if newest >= tested_at => Err(PutError::Old { tested_at, newest }),
        Some(_) | None => Ok(Put::Keep(generation)),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn incoming() -> Incoming {
        Incoming {
            sender: HostId::new(Uuid::from_u128(7)),
            host: HostId::new(Uuid::from_u128(7)),
            signer: Signer::Sender(3),
            guest: GuestUid::new(Uuid::from_u128(1)),
            guest_is: GuestOf::Sender,
            test: OperationId::new(Uuid::from_u128(50)),
            tested_at: second(1000),
            document_sha256: Sha256Text::of(b"this"),
            at: second(1100),
        }
    }

    fn held(test: u128, tested_at: i64, document: &[u8]) -> HeldCertificate {
        HeldCertificate {
            test: OperationId::new(Uuid::from_u128(test)),
            tested_at: second(tested_at),
            document_sha256: Sha256Text::of(document),
            received_at: second(tested_at + 5),
        }
    }

    #[test]
    fn each_certificate_against_what_is_held() {
        let other = HostId::new(Uuid::from_u128(8));
        let table = [
            ("the first", vec![], incoming(), Ok(Put::Keep(3))),
            ("a later test", vec![held(49, 900, b"old")], incoming(), Ok(Put::Keep(3))),
            ("the same again", vec![held(50, 1000, b"this")], incoming(), Ok(Put::Again(second(1005)))),
            (
                "the same again, of a guest that has left",
                vec![held(50, 1000, b"this")],
                Incoming { guest_is: GuestOf::Other, ..incoming() },
                Ok(Put::Again(second(1005))),
            ),
            (
                "another of the same test",
                vec![held(50, 1000, b"that")],
                incoming(),
                Err(ErrorCode::RestoreCertificateOld),
            ),
            (
                "an older test",
                vec![held(51, 1001, b"new")],
                incoming(),
                Err(ErrorCode::RestoreCertificateOld),
            ),
            (
                "another key",
                vec![],
                Incoming { signer: Signer::Other, ..incoming() },
                Err(ErrorCode::RestoreCertificate),
            ),
            (
                "another host",
                vec![],
                Incoming { host: other, ..incoming() },
                Err(ErrorCode::RestoreCertificate),
            ),
            (
                "another host's guest",
                vec![],
                Incoming { guest_is: GuestOf::Other, ..incoming() },
                Err(ErrorCode::RestoreCertificate),
            ),
            (
                "a clock a little ahead",
                vec![],
                Incoming { tested_at: second(1700), ..incoming() },
                Ok(Put::Keep(3)),
            ),
            (
                "a test of the future",
                vec![],
                Incoming { tested_at: second(1701), ..incoming() },
                Err(ErrorCode::RestoreCertificateOld),
            ),
        ];
        for (what, held, incoming, expected) in table {
            assert_eq!(judge_put(&held, &incoming).map_err(|error| error.code()), expected, "{what}");
        }
    }
}
