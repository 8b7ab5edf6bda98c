//! The CAs of the hub that this agent trusts, over a change.
//!
//! In: the trusted CAs, with the times at which they were learned; the CAs that the hub names in a renewal, and its proof.
//! Out: the CAs to trust from now on, or why the hub's word is refused. Two rules keep the rightful hub accepted, whoever
//! answers in its place for a while:
//!
//! 1. A CA is added only with the signature of one that is trusted already.
//! 2. A CA is dropped only when the hub names it no more, and no other was learned within [`OVERLAP`].
//!
//! Deliberately absent: files and the network.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::pin::{Pin, PinKind};
use jiff::{SignedDuration, Timestamp};
use net::tls::SuccessionError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};

/// How long an older CA stays trusted beside the newer one, whatever the hub says. A hub that was stolen for less cannot
/// make its agents refuse the rightful one.
pub const OVERLAP: SignedDuration = SignedDuration::from_hours(35 * 24);

/// CAs that are trusted at a time, at most.
pub const CAS_MAX: usize = 4;

/// When a CA was learned from the one before it. A CA without such a time came with the enrolment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnedCa {
    pub pin: Pin,
    pub at: Timestamp,
}

/// The CAs that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedCas {
    /// All of them, PEM.
    pub pem: String,
    pub learned: Vec<LearnedCa>,
}

/// What the hub names in a renewal.
#[derive(Clone, Copy, Debug)]
pub struct NamedCas<'a> {
    pub pem: &'a str,
    /// The newer one, signed by the one before it.
    pub cross_pem: Option<&'a str>,
}

/// Why the hub's CAs are not taken. Those that are trusted stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubCaError {
    /// No certificate, or too many.
    #[error("the hub names no CA that can be read, or more than {CAS_MAX}: look who runs the hub")]
    Unreadable,
    /// Our own file.
    #[error("the trusted CAs of this host cannot be read: enroll it again")]
    OwnUnreadable,
    /// It has no proof.
    #[error(
        "the hub names another CA ({pin}), and no trusted one signed it: look who runs the hub; a CA without the old \
         one's signature is taken only by enrolling again"
    )]
    Unproven { pin: Pin },
    /// Its proof is none.
    #[error(
        "the hub names another CA ({pin}), and its proof does not hold: look who runs the hub; a CA without the old one's \
         signature is taken only by enrolling again"
    )]
    Proof {
        pin: Pin,
        #[source]
        source: SuccessionError,
    },
    /// More changes than an agent follows.
    #[error(
        "the hub changed its CA {CAS_MAX} times within {} days, and this host follows no further change: look who runs \
         the hub, or enroll this host again",
        OVERLAP.as_hours() / 24
    )]
    TooMany,
}

/// The pins of the certificates in a PEM text. What cannot be read has none.
#[must_use]
pub fn pins(pem: &str) -> Vec<Pin> {
    read(pem).iter().flatten().map(pin).collect()
}

/// The CAs to trust after the hub named these.
///
/// # Errors
/// [`HubCaError`].
pub fn next(held: &TrustedCas, named: NamedCas<'_>, now: Timestamp) -> Result<TrustedCas, HubCaError> {
    let named_cas = read(named.pem).ok_or(HubCaError::Unreadable)?;
    let mut trusted = read(&held.pem).ok_or(HubCaError::OwnUnreadable)?;
    let mut learned = held.learned.clone();
    for ca in &named_cas {
        if trusted.contains(ca) {
            continue;
        }
        if trusted.len() == CAS_MAX {
            return Err(HubCaError::TooMany);
        }
        let pin = pin(ca);
        prove(&trusted, ca, named.cross_pem).map_err(|source| match source {
            Some(source) => HubCaError::Proof { pin, source },
            None => HubCaError::Unproven { pin },
        })?;
        trusted.push(ca.clone());
        learned.push(LearnedCa { pin, at: now });
    }
    let is_over = |learned: &LearnedCa| learned.at.checked_add(OVERLAP).is_ok_and(|over| over <= now);
    let settled = learned.iter().all(is_over);
    let is_kept = |ca: &CertificateDer<'_>| !settled || named_cas.contains(ca);
    let kept: Vec<CertificateDer<'static>> = trusted.into_iter().filter(|ca| is_kept(ca)).collect();
    let pins: Vec<Pin> = kept.iter().map(pin).collect();
    learned.retain(|one| pins.contains(&one.pin));
    Ok(TrustedCas { pem: if pins == self::pins(&held.pem) { held.pem.clone() } else { pem(&kept) }, learned })
}

/// None: no proof was given.
fn prove(
    trusted: &[CertificateDer<'static>],
    ca: &CertificateDer<'_>,
    cross_pem: Option<&str>,
) -> Result<(), Option<SuccessionError>> {
    let cross = cross_pem.ok_or(None)?;
    let cross = read(cross).ok_or(Some(SuccessionError::Unreadable))?;
    let mut last = SuccessionError::Signature;
    for (older, cross) in trusted.iter().flat_map(|older| cross.iter().map(move |cross| (older, cross))) {
        match net::tls::succeeds(older, ca, cross) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(Some(last))
}

fn pin(ca: &CertificateDer<'_>) -> Pin {
    Pin::of(PinKind::Leaf, ca)
}

/// All certificates of a text: at least one, and not more than are ever trusted.
fn read(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let mut all: Vec<CertificateDer<'static>> = Vec::new();
    for one in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        all.push(one.ok().filter(|_| all.len() < CAS_MAX)?);
    }
    (!all.is_empty()).then_some(all)
}

fn pem(cas: &[CertificateDer<'_>]) -> String {
    const LINE: usize = 64;
    let mut text = String::new();
    for ca in cas {
        let body = STANDARD.encode(ca);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in body.as_bytes().chunks(LINE) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests;
