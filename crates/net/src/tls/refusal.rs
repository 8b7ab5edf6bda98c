//! Refusals of servers that are not pinned, found inside client errors.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use holdfast_protocol::pin::{Pin, PinKind};
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, Error, OtherError};

/// A server that did not show a pinned certificate. Nothing was sent to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its certificate is not one of the pinned.
    #[error(
        "the server shows {spki} ({leaf}), which is not pinned: either its key was changed: check it on the host itself, then pin the new one; or the connection is intercepted"
    )]
    NotPinned {
        /// The pin of the certificate that it showed.
        leaf: Pin,
        /// The pin of its key.
        spki: Pin,
    },
    /// The pinned CA is not in its chain.
    #[error(
        "the server does not present the pinned CA (it presents {}): check the pin with the operator of the hub", list(.shown)
    )]
    CaNotShown {
        /// The pins of the other certificates that it showed, besides its own.
        shown: Vec<Pin>,
    },
}

fn list(pins: &[Pin]) -> String {
    if pins.is_empty() {
        return "no CA at all".to_owned();
    }
    pins.iter().map(Pin::to_string).collect::<Vec<_>>().join(", ")
}

impl Refusal {
    pub(crate) fn not_pinned(leaf: &CertificateDer<'_>, spki: &[u8]) -> Self {
        Self::NotPinned { leaf: Pin::of(PinKind::Leaf, leaf), spki: Pin::of(PinKind::Spki, spki) }
    }

    /// A hostile server may send a long chain; four pins are enough to compare by eye.
    pub(crate) fn ca_not_shown(chain: &[CertificateDer<'_>]) -> Self {
        Self::CaNotShown { shown: chain.iter().take(4).map(|der| Pin::of(PinKind::Leaf, der)).collect() }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(refusal))))
    }
}

/// Finds the refusal inside a client's error, however deep the HTTP library put it.
#[must_use]
pub fn refusal<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Refusal> {
    match tls_error(error)? {
        Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
            inner.downcast_ref::<Refusal>()
        }
        _ => None,
    }
}

/// Finds the TLS error inside a client's error, however deep the HTTP library put it.
#[must_use]
pub fn tls_error<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Error> {
    let mut next = Some(error);
    // An io::Error hides the error it carries from its own `source`, so it is opened by hand. Sixteen layers are four
    // times as many as reqwest uses; a circular chain ends there.
    for _ in 0..16 {
        let error = next?;
        if let Some(tls) = error.downcast_ref::<Error>() {
            return Some(tls);
        }
        let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match carried {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        };
    }
    None
}
