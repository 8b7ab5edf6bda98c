//! The CAs of the hub: present, next and former.
//!
//! In: the folder's files. Out: which CA issues, which the listener shows, which clients' certificates are accepted.
//! Deliberately absent: when a change begins and ends ([`super::change`]).

use std::path::{Path, PathBuf};

use holdfast_protocol::pin::{Pin, PinKind};
use rcgen::{Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use super::{AuthorityError, read};

pub(super) const CA_KEY: &str = "ca.key";
pub(super) const CA: &str = "ca.pem";
pub(super) const NEXT_KEY: &str = "next-ca.key";
pub(super) const NEXT: &str = "next-ca.pem";
pub(super) const NEXT_CROSS: &str = "next-ca-cross.pem";
/// The change is taken back.
pub(super) const NEXT_BACK: &str = "next-ca.back";
/// The change is being finished: what is there is between two states.
pub(super) const NEXT_FINISH: &str = "next-ca.finish";
pub(super) const FORMER: &str = "former-ca.pem";
pub(super) const FORMER_CROSS: &str = "former-ca-cross.pem";

/// A CA that can sign.
pub struct Ca {
    pub pem: String,
    pub der: CertificateDer<'static>,
    pub(super) issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(super) fn open(key_path: &Path, ca_path: &Path) -> Result<Self, AuthorityError> {
        let key_pem = Zeroizing::new(read(key_path)?);
        let key = KeyPair::from_pem(&key_pem)
            .map_err(|source| AuthorityError::Unusable { path: key_path.to_owned(), source })?;
        let pem = read(ca_path)?;
        let issuer = Issuer::from_ca_cert_pem(&pem, key)
            .map_err(|source| AuthorityError::Unusable { path: ca_path.to_owned(), source })?;
        let der = certificate(&pem, ca_path)?;
        Ok(Self { pem, der, issuer })
    }

    /// Whether a certificate, which this hub stored, names this CA as its issuer. Each CA has a name of its own.
    #[must_use]
    pub fn is_issuer_of(&self, pem: &str) -> bool {
        let Ok(der) = CertificateDer::from_pem_slice(pem.as_bytes()) else { return false };
        match (X509Certificate::from_der(&der), X509Certificate::from_der(&self.der)) {
            (Ok((_, certificate)), Ok((_, own))) => certificate.issuer().as_raw() == own.subject().as_raw(),
            _ => false,
        }
    }

    /// As an invite carries it.
    #[must_use]
    pub fn pin(&self) -> Pin {
        Pin::of(PinKind::Leaf, &self.der)
    }
}

/// A certificate that shows the key of a CA, signed by the CA before it.
struct Cross {
    pem: String,
    der: CertificateDer<'static>,
}

impl Cross {
    fn open(path: &Path) -> Result<Self, AuthorityError> {
        let pem = read(path)?;
        let der = certificate(&pem, path)?;
        Ok(Self { pem, der })
    }
}

/// Where a change of the CA goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Hosts get certificates of the next CA.
    Forward,
    /// It is taken back: hosts get certificates of the present CA again.
    Back,
}

struct Next {
    ca: Ca,
    cross: Cross,
    course: Course,
}

struct Former {
    der: CertificateDer<'static>,
    cross: Cross,
}

/// All CAs that count.
pub struct CaSet {
    current: Ca,
    next: Option<Next>,
    former: Option<Former>,
    /// What the files were when they were read.
    pub(super) stamp: Stamp,
}

/// Which files there are, and their texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<String>>);

impl Stamp {
    /// None while a change is being finished.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        if folder.join(NEXT_FINISH).exists() {
            return None;
        }
        let text = |name: &&str| std::fs::read_to_string(folder.join(name)).ok();
        Some(Self([CA, NEXT, NEXT_CROSS, NEXT_BACK, FORMER, FORMER_CROSS].iter().map(text).collect()))
    }
}

impl CaSet {
    pub(super) fn open(folder: &Path) -> Result<Self, AuthorityError> {
        let path = |name: &str| -> PathBuf { folder.join(name) };
        let stamp = Stamp::of(folder).ok_or_else(|| AuthorityError::Damaged { path: path(NEXT_FINISH) })?;
        let current = Ca::open(&path(CA_KEY), &path(CA))?;
        let next = if path(NEXT).exists() {
            Some(Next {
                ca: Ca::open(&path(NEXT_KEY), &path(NEXT))?,
                cross: Cross::open(&path(NEXT_CROSS))?,
                course: if path(NEXT_BACK).exists() { Course::Back } else { Course::Forward },
            })
        } else {
            None
        };
        let former = if path(FORMER).exists() {
            let der = certificate(&read(&path(FORMER))?, &path(FORMER))?;
            Some(Former { der, cross: Cross::open(&path(FORMER_CROSS))? })
        } else {
            None
        };
        Ok(Self { current, next, former, stamp })
    }

    /// The CA of the listener's certificate, and the one that invites name.
    #[must_use]
    pub const fn serving(&self) -> &Ca {
        &self.current
    }

    /// The CA of the next certificate of a host.
    #[must_use]
    pub fn issuing(&self) -> &Ca {
        match &self.next {
            Some(Next { ca, course: Course::Forward, .. }) => ca,
            Some(Next { course: Course::Back, .. }) | None => &self.current,
        }
    }

    /// The CA that hosts depend on until the change is finished, and where it goes.
    #[must_use]
    pub fn change(&self) -> Option<(&Ca, Course)> {
        self.next.as_ref().map(|next| match next.course {
            Course::Forward => (&self.current, Course::Forward),
            Course::Back => (&next.ca, Course::Back),
        })
    }

    /// The CA that the present one came after, where it did.
    #[must_use]
    pub fn former(&self) -> Option<Pin> {
        self.former.as_ref().map(|former| Pin::of(PinKind::Leaf, &former.der))
    }

    /// The new CA that hosts should know, during a change.
    #[must_use]
    pub fn announced(&self) -> Option<Pin> {
        self.next.as_ref().filter(|next| next.course == Course::Forward).map(|next| next.ca.pin())
    }

    /// The CAs whose certificates of hosts are accepted.
    #[must_use]
    pub fn accepted(&self) -> Vec<&CertificateDer<'static>> {
        let next = self.next.as_ref().map(|next| &next.ca.der);
        std::iter::once(&self.current.der).chain(next).collect()
    }

    /// The CAs that a host is told to trust, PEM.
    #[must_use]
    pub fn named_pem(&self) -> String {
        match &self.next {
            Some(Next { ca, course: Course::Forward, .. }) => format!("{}{}", self.current.pem, ca.pem),
            Some(Next { course: Course::Back, .. }) | None => self.current.pem.clone(),
        }
    }

    /// The proofs that each of them follows from the one before, PEM.
    #[must_use]
    pub fn cross_pem(&self) -> Option<String> {
        let former = self.former.as_ref().map(|former| former.cross.pem.as_str());
        let next = self.next.as_ref().filter(|next| next.course == Course::Forward);
        let all: String = former.into_iter().chain(next.map(|next| next.cross.pem.as_str())).collect();
        (!all.is_empty()).then_some(all)
    }

    /// What the listener shows besides its own certificate: its CA, and the way to it from the one before. An agent or
    /// an operator who pinned the former one finds it here.
    #[must_use]
    pub fn shown(&self) -> Vec<CertificateDer<'static>> {
        let former = self.former.iter().flat_map(|former| [former.cross.der.clone(), former.der.clone()]);
        std::iter::once(self.current.der.clone()).chain(former).collect()
    }
}

fn certificate(pem: &str, path: &Path) -> Result<CertificateDer<'static>, AuthorityError> {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| AuthorityError::Damaged { path: path.to_owned() })
}
