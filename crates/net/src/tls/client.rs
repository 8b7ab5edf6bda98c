//! TLS client configurations: one provider, one version, explicit trust.

use std::sync::Arc;

use holdfast_protocol::pin::{Pin, PinSet};
use holdfast_protocol::secret::Secret;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::pinned::Pinned;
use super::pinned_ca::PinnedCa;
use super::verifier::Verifier;

/// Whom to trust.
#[derive(Clone, Debug)]
pub enum Trust {
    /// A server whose certificate or key is one of these. Name and validity are not checked: the pin is stricter.
    Pins(PinSet),
    /// A server that shows this CA in its chain, and its own valid certificate made by that CA, for the requested name.
    CaPin(Pin),
    /// A server with a valid certificate made by a CA of this PEM text, for the name asked for.
    CaPem(String),
}

/// The client's own identity, where the server requests it (mTLS).
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its certificate and any between it and the CA, PEM.
    pub chain_pem: String,
    /// Its private key, PEM.
    pub key_pem: Secret,
}

/// Why no client configuration can be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The CA text holds no certificate.
    #[error("the CA file holds no PEM certificate: give the one that the hub printed or serves")]
    NoCa,
    /// A PEM text that cannot be read.
    #[error("{what} is not PEM: it was cut off or is another file")]
    Pem {
        what: &'static str,
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// A CA certificate that cannot be a trust anchor.
    #[error("the CA certificate cannot be used")]
    Ca(#[source] rustls::Error),
    /// No verifier can be made of the CA.
    #[error("the CA cannot be used to check a server")]
    Verifier(#[source] rustls::client::VerifierBuilderError),
    /// Certificate and key do not fit, or are of a kind that is not supported.
    #[error("the client's certificate and key cannot be used together: enrol again")]
    Identity(#[source] rustls::Error),
    /// The provider lacks a part that TLS 1.3 needs: a mistake of the build.
    #[error("this build cannot speak TLS 1.3")]
    Provider(#[source] rustls::Error),
}

/// What our clients of a hub offer as a protocol besides HTTP/1.1. It is never chosen. A hub that also has a certificate
/// for browsers shows its own to who offers this.
pub const HUB_CLIENT_ALPN: &[u8] = b"holdfast-hub/1";

/// The one provider of cryptography that our programs use.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A client that shows no certificate.
pub fn client(trust: &Trust) -> Result<ClientConfig, TlsError> {
    Ok(finished(trust, builder(trust)?.with_no_client_auth()))
}

/// A client that shows its certificate when asked.
pub fn client_with_identity(trust: &Trust, identity: &Identity) -> Result<ClientConfig, TlsError> {
    let chain = certificates("the client's certificate", &identity.chain_pem)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.expose().as_bytes())
        .map_err(|source| TlsError::Pem { what: "the client's key", source })?;
    let config = builder(trust)?.with_client_auth_cert(chain, key).map_err(TlsError::Identity)?;
    Ok(finished(trust, config))
}

/// No session outlives a change of trust: session tickets are not kept, so none from before a revocation, a renewal or
/// a new pin is used.
fn finished(trust: &Trust, mut config: ClientConfig) -> ClientConfig {
    config.resumption = rustls::client::Resumption::disabled();
    match trust {
        Trust::CaPin(_) | Trust::CaPem(_) => {
            config.alpn_protocols = vec![HUB_CLIENT_ALPN.to_vec(), b"http/1.1".to_vec()];
        }
        Trust::Pins(_) => {}
    }
    config
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn builder(trust: &Trust) -> Result<Builder, TlsError> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Pins(pins) => Arc::new(Verifier::new(Pinned(pins.clone()), algorithms)),
        Trust::CaPin(pin) => Arc::new(Verifier::new(PinnedCa::new(*pin), algorithms)),
        Trust::CaPem(pem) => WebPkiServerVerifier::builder_with_provider(roots(pem)?, Arc::clone(&provider))
            .build()
            .map_err(TlsError::Verifier)?,
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(TlsError::Provider)?
        .dangerous()
        .with_custom_certificate_verifier(verifier))
}

fn roots(pem: &str) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("the CA file", pem)? {
        roots.add(certificate).map_err(TlsError::Ca)?;
    }
    if roots.is_empty() { Err(TlsError::NoCa) } else { Ok(Arc::new(roots)) }
}

fn certificates(what: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem { what, source })
}
