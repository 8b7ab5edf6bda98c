//! The certificates of the hub's listener.
//!
//! In: the CA that serves, the names; files of another certificate, where there are any. Out: the hub's own certificate for
//! its agents and operators, who pin the hub's CA, and the other one for everybody else. The own one is renewed after
//! two months.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::server_files::{CertificateFiles, CertificateFilesError, FilesReload, PublicCertificate};
use super::{Authority, issue};

const LIFE: SignedDuration = SignedDuration::from_hours(90 * 24);
const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(60 * 24);

/// Why the listener's certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ServerCertificateError {
    /// A name cannot be written into a certificate, or the library refused.
    #[error("the hub's own certificate cannot be made for {names}: check the public URL")]
    Make {
        /// The names it was for.
        names: String,
        #[source]
        source: rcgen::Error,
    },
    /// The system has no randomness.
    #[error("the system gives no random bytes for a serial number")]
    Random(#[source] getrandom::Error),
    /// The TLS library refused the key.
    #[error("the hub's own key cannot be used for TLS")]
    Key(#[source] rustls::Error),
    /// The files of the other certificate.
    #[error(transparent)]
    Files(#[from] CertificateFilesError),
}

/// The listener's certificates, replaced in time.
#[derive(Debug)]
pub struct ServerCertificate {
    names: Vec<String>,
    current: RwLock<Current>,
    /// For who does not pin the hub's CA, such as a browser.
    public: Option<PublicCertificate>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    made_at: Timestamp,
}

impl ServerCertificate {
    /// Makes the first one, for these names and addresses.
    ///
    /// # Errors
    /// [`ServerCertificateError`].
    pub fn make(
        authority: &Authority,
        provider: &CryptoProvider,
        names: Vec<String>,
        now: Timestamp,
    ) -> Result<Self, ServerCertificateError> {
        let key = make_key(authority, provider, &names, now)?;
        Ok(Self { names, current: RwLock::new(Current { key: Arc::new(key), made_at: now }), public: None })
    }

    /// With a certificate from files besides.
    ///
    /// # Errors
    /// [`ServerCertificateError`].
    pub fn with_files(
        self,
        files: Option<CertificateFiles>,
        provider: &CryptoProvider,
    ) -> Result<Self, ServerCertificateError> {
        let public = files.map(|files| PublicCertificate::read(files, provider)).transpose()?;
        Ok(Self { public, ..self })
    }

    /// Makes the next one when it is time.
    ///
    /// # Errors
    /// [`ServerCertificateError`]; the present one stays.
    pub fn renew_when_due(
        &self,
        authority: &Authority,
        provider: &CryptoProvider,
        now: Timestamp,
    ) -> Result<(), ServerCertificateError> {
        let made_at = self.current.read().unwrap_or_else(PoisonError::into_inner).made_at;
        if now.duration_since(made_at).abs() < RENEW_AFTER {
            return Ok(());
        }
        self.renew(authority, provider, now)
    }

    /// Makes the next one: its time has come, or the CAs are others.
    ///
    /// # Errors
    /// [`ServerCertificateError`]; the present one stays.
    pub fn renew(
        &self,
        authority: &Authority,
        provider: &CryptoProvider,
        now: Timestamp,
    ) -> Result<(), ServerCertificateError> {
        let key = Arc::new(make_key(authority, provider, &self.names, now)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current { key, made_at: now };
        Ok(())
    }

    /// Reads the files again where they changed.
    ///
    /// # Errors
    /// [`ServerCertificateError`]; the present one stays.
    pub fn reload_files(&self, provider: &CryptoProvider) -> Result<FilesReload, ServerCertificateError> {
        match &self.public {
            Some(public) => Ok(public.reload(provider)?),
            None => Ok(FilesReload::Unchanged),
        }
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut offered = hello.alpn().into_iter().flatten();
        let pins_the_ca = offered.any(|protocol| protocol == net::tls::HUB_CLIENT_ALPN);
        match &self.public {
            Some(public) if !pins_the_ca => Some(public.key()),
            Some(_) | None => {
                Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).key))
            }
        }
    }
}

fn make_key(
    authority: &Authority,
    provider: &CryptoProvider,
    names: &[String],
    now: Timestamp,
) -> Result<CertifiedKey, ServerCertificateError> {
    let failed = |source| ServerCertificateError::Make { names: names.join(", "), source };
    let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "Holdfast hub");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    issue::set_life(&mut params, now.as_second() - issue::SKEW_S, now.as_second() + LIFE.as_secs());
    params.serial_number = Some(issue::random_serial().map_err(ServerCertificateError::Random)?);
    let cas = authority.cas();
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.signed_by(&key, &cas.serving().issuer).map_err(failed)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let signing = provider.key_provider.load_private_key(private).map_err(ServerCertificateError::Key)?;
    // The CA certificate is sent as well: an agent that has only its pin finds it here.
    let chain = std::iter::once(certificate.into()).chain(cas.shown()).collect();
    Ok(CertifiedKey::new(chain, signing))
}
