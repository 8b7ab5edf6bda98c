//! Sealed file: `age` for one X25519 key, as base64.
//!
//! What comes in: bytes and a public key, or a text and the private one. What goes out: the text, or the bytes in
//! memory that is wiped. `age` shows who may read a file only by trying, so its header is checked first. It must name
//! one reader, no passphrase (which would cost seconds and memory as its maker likes), and nothing else but the filler
//! that `age` adds.

use std::io::{Read, Write};

use age::{DecryptError, Decryptor, EncryptError, Encryptor};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::json::JsonError;
use holdfast_protocol::storage::{HostRecipient, Sealed};
use zeroize::Zeroizing;

use crate::key::HostKey;

/// More than any credentials; what a sealed text of 4096 characters can hold is less than this.
pub const PLAIN_BYTES_MAX: usize = 3072;

/// Why something is not sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Not a public key.
    #[error("{0} is no age recipient: its last characters are a checksum that does not fit; copy it whole")]
    Recipient(HostRecipient),
    /// Too long once sealed.
    #[error("it is not sealed: {0}")]
    Readers(&'static str),
    #[error("it is too long to be sealed: {PLAIN_BYTES_MAX} bytes with everything in it are the most")]
    TooLong,
    #[error("sealing failed: this is a bug of this program or a failure of the kernel's randomness")]
    Library(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a sealed text is not opened, or its content not used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No such file, a cut one, or a changed one.
    #[error(
        "the sealed credentials are damaged or not an age file: seal them again with `holdfast storage seal`"
    )]
    Broken,
    /// For a passphrase.
    #[error(
        "the credentials are sealed with a passphrase, not for this host: seal them with `holdfast storage seal`"
    )]
    Passphrase,
    /// For more than one reader.
    #[error(
        "the credentials are sealed for {0} readers: seal them for this host alone, with `holdfast storage seal`"
    )]
    Readers(usize),
    /// For another key.
    #[error(
        "the credentials are sealed for another host's key: compare the recipient with what `agentd storage key` prints here, \
         and seal them again"
    )]
    OtherKey,
    /// Of no form that we know.
    #[error("the sealed content is refused: seal it again with `holdfast storage seal`")]
    Form(#[source] JsonError),
    /// A value that its type alone could not refuse.
    #[error("the sealed content is refused: {0}; seal it again with `holdfast storage seal`")]
    Value(&'static str),
    /// For another target.
    #[error("the credentials are for target {inside}, not {wanted}: seal them for this one")]
    OtherTarget {
        /// The target they name.
        inside: String,
        /// The target that holds them.
        wanted: String,
    },
    /// For another tunnel.
    #[error("the token is for tunnel {inside}, not {wanted}: seal it for this one")]
    OtherTunnel {
        /// The tunnel that it names.
        inside: String,
        /// The tunnel that was asked for.
        wanted: String,
    },
    /// For another backend.
    #[error(
        "the credentials are for {inside}, but {target} is {wanted} now: seal them again if that is intended"
    )]
    OtherMedium {
        target: String,
        /// The backend they name.
        inside: String,
        /// The backend that holds them.
        wanted: String,
    },
}

impl OpenError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Broken => ErrorCode::SealBroken,
            Self::Passphrase | Self::Readers(_) | Self::OtherKey => ErrorCode::SealKey,
            Self::Form(error) => error.code(),
            Self::Value(_) => ErrorCode::Range,
            Self::OtherTarget { .. } | Self::OtherTunnel { .. } | Self::OtherMedium { .. } => {
                ErrorCode::SealTarget
            }
        }
    }
}

pub(crate) fn wrap(plain: &[u8], to: &HostRecipient) -> Result<Sealed, SealError> {
    if plain.len() > PLAIN_BYTES_MAX {
        return Err(SealError::TooLong);
    }
    let recipient: age::x25519::Recipient =
        to.as_str().parse().map_err(|_| SealError::Recipient(to.clone()))?;
    let one = std::iter::once(&recipient as &dyn age::Recipient);
    let encryptor = Encryptor::with_recipients(one)
        .map_err(|error| SealError::Library(Box::new(refused_to_encrypt(error))))?;
    let failed = |error: std::io::Error| SealError::Library(Box::new(error));
    let mut file = Vec::new();
    let mut writer = encryptor.wrap_output(&mut file).map_err(failed)?;
    writer.write_all(plain).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Sealed::try_from(STANDARD.encode(file)).map_err(|_| SealError::TooLong)
}

/// The library's error, without its own sentence. That is made by a macro which orders its parts anew in each build, so two
/// builds of the same sources would differ.
#[must_use]
pub fn refused_to_encrypt(error: EncryptError) -> std::io::Error {
    match error {
        EncryptError::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

pub(crate) fn unwrap(sealed: &Sealed, key: &HostKey) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    // Its length was bounded when it became a `Sealed`.
    let file = STANDARD.decode(sealed.as_str()).map_err(|_| OpenError::Broken)?;
    one_reader(&file)?;
    let decryptor = Decryptor::new(file.as_slice()).map_err(refused)?;
    let reader = decryptor.decrypt(std::iter::once(key.identity() as &dyn age::Identity)).map_err(refused)?;
    // As large as it can be at once: a buffer that grows leaves its former places unwiped.
    let mut plain = Zeroizing::new(Vec::with_capacity(PLAIN_BYTES_MAX + 1));
    let mut bounded = reader.take(PLAIN_BYTES_MAX as u64 + 1);
    bounded.read_to_end(&mut plain).map_err(|_| OpenError::Broken)?;
    Ok(plain)
}

fn refused(error: DecryptError) -> OpenError {
    match error {
        DecryptError::NoMatchingKeys => OpenError::OtherKey,
        _ => OpenError::Broken,
    }
}

/// Who may read it, by its header: `-> X25519 …` once, and besides it only filler, whose names end in `-grease`.
fn one_reader(file: &[u8]) -> Result<(), OpenError> {
    let mut readers = 0;
    for line in file.split(|byte| *byte == b'\n') {
        if line.starts_with(b"--- ") {
            return match readers {
                1 => Ok(()),
                0 => Err(OpenError::Broken),
                more => Err(OpenError::Readers(more)),
            };
        }
        let Some(stanza) = line.strip_prefix(b"-> ") else { continue };
        match stanza.split(|byte| *byte == b' ').next().unwrap_or_default() {
            b"scrypt" => return Err(OpenError::Passphrase),
            filler if filler.ends_with(b"-grease") => {}
            _ => readers += 1,
        }
    }
    Err(OpenError::Broken)
}
