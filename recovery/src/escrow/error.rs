//! Errors of wrapping and opening an escrow file.

use std::io;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::CodeNumber;
use holdfast_protocol::escrow::form::{FILE_BYTES_MAX, FormError, WORK_FACTOR, WORK_FACTOR_MAX};
use holdfast_protocol::id::{CustomerId, HostName, KeyFingerprint};
use holdfast_protocol::job::{HostEpoch, UtcSecond};
use holdfast_protocol::json::JsonError;
use holdfast_seal::OpenError as SealError;

/// Why a key is not wrapped.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// Too much to wrap.
    #[error("the key with what it is for is longer than {PLAIN_BYTES_MAX} bytes")]
    TooLong,
    /// No memory for the passphrase.
    #[error("no memory could be allocated for the recovery code")]
    Memory(#[source] io::Error),
    #[error(
        "the key could not be wrapped: this is a bug of this program or a failure of the kernel's randomness"
    )]
    Library(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was wrapped does not open again.
    #[error("the wrapped key does not open again and was discarded: make a new code")]
    NotReadable(#[source] OpenError),
}

/// Why a file is not opened, or its content not used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the file is longer than {FILE_BYTES_MAX} bytes, so it is not an escrow file: take another copy of it"
    )]
    TooLong,
    /// No such file, a cut one, or a changed one.
    #[error("the escrow file is damaged, or not an ASCII-armoured age file: take another copy of it")]
    Broken,
    /// Not for a passphrase alone.
    #[error(
        "the file has other recipients than one passphrase, so it is not an escrow file: take another copy of it"
    )]
    NotOnePassphrase,
    /// Too weak or endless.
    #[error(
        "the file asks for a work factor of {0}, and {WORK_FACTOR} to {WORK_FACTOR_MAX} are accepted: it was changed; take \
         another copy of it"
    )]
    Work(u8),
    /// It does not open.
    #[error(
        "this code does not open this file: the code is of another host or another sheet, or the file was changed; compare the \
         sheet's number and date with the file's"
    )]
    Code,
    /// No memory for the passphrase.
    #[error("no memory could be allocated for the recovery code")]
    Memory(#[source] io::Error),
    /// Of no form that we know.
    #[error(
        "the content of the file is refused: it was not made by Holdfast, or by a later version; `age -d` opens it as well"
    )]
    Form(#[source] JsonError),
    /// A key that is none.
    #[error("the content of the file is refused: {0}; take another copy of it")]
    Key(&'static str),
    #[error(
        "this file holds the key of {inside}, made on {made_at}, not that of {wanted}: take that one's file"
    )]
    OtherHost {
        /// The host it is for.
        inside: HostName,
        /// The host it should be for.
        wanted: HostName,
        /// When it was made.
        made_at: UtcSecond,
    },
    #[error("this file is for customer {inside}, made on {made_at}, not for {wanted}: take that one's file")]
    OtherCustomer {
        /// The customer it is for.
        inside: CustomerId,
        /// The customer it should be for.
        wanted: CustomerId,
        /// When it was made.
        made_at: UtcSecond,
    },
    /// Of another life of the host's state.
    #[error(
        "this file is of the host's epoch {inside}, made on {made_at}, not of {wanted}: take the file that belongs to it"
    )]
    OtherEpoch {
        /// The epoch it is of.
        inside: HostEpoch,
        /// The epoch it should be of.
        wanted: HostEpoch,
        /// When it was made.
        made_at: UtcSecond,
    },
    /// Of another sheet.
    #[error(
        "this file belongs to sheet {inside}, made on {made_at}, not to sheet {wanted}: take that one's file"
    )]
    OtherCode {
        /// The sheet it belongs to.
        inside: CodeNumber,
        /// The sheet it should belong to.
        wanted: CodeNumber,
        /// When it was made.
        made_at: UtcSecond,
    },
    /// With another key.
    #[error(
        "the key in this file has the fingerprint {inside}, not {wanted}: it does not open these backups"
    )]
    OtherKey {
        /// That of the key in it.
        inside: KeyFingerprint,
        /// That of the key that should be in it.
        wanted: KeyFingerprint,
    },
}

impl From<FormError> for OpenError {
    fn from(error: FormError) -> Self {
        match error {
            FormError::TooLong => Self::TooLong,
            FormError::Broken => Self::Broken,
            FormError::Readers => Self::NotOnePassphrase,
            FormError::Work(factor) => Self::Work(factor),
        }
    }
}

impl OpenError {
    pub(super) fn key(error: SealError) -> Self {
        match error {
            SealError::Value(says) => Self::Key(says),
            _ => Self::Key("it holds no backup key"),
        }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::TooLong => ErrorCode::Size,
            Self::Broken | Self::NotOnePassphrase => ErrorCode::EscrowBroken,
            Self::Work(_) => ErrorCode::EscrowWork,
            Self::Code => ErrorCode::EscrowCode,
            Self::Memory(_) => ErrorCode::Internal,
            Self::Form(error) => error.code(),
            Self::Key(_) => ErrorCode::Range,
            Self::OtherHost { .. }
            | Self::OtherCustomer { .. }
            | Self::OtherEpoch { .. }
            | Self::OtherCode { .. }
            | Self::OtherKey { .. } => ErrorCode::EscrowOther,
        }
    }
}

/// More than any key with what it is for; small enough that the file fits into one QR code.
pub const PLAIN_BYTES_MAX: usize = 1280;
