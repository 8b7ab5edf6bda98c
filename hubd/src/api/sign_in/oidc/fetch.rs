//! Bounded requests to a provider.
//!
//! In: a request. Out: the bytes of its answer. Nothing is followed elsewhere, and an answer is at most so long and so slow:
//! a provider that misbehaves costs a sign-in and nothing else.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use reqwest::RequestBuilder;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::domain::oidc::provider::ProviderSettings;

/// Of a discovery document, a key set, a token.
pub(super) const ANSWER_MAX: usize = 256 * 1024;

const CONNECT_WAIT: Duration = Duration::from_secs(4);
const WHOLE_WAIT: Duration = Duration::from_secs(8);

/// Why no client for a provider can be made.
#[derive(Debug, thiserror::Error)]
pub enum ProviderClientError {
    #[error("the CA certificates of the provider cannot be used: correct oidc.ca_file")]
    Ca(#[source] rustls::Error),
    #[error("no TLS settings can be made for the provider")]
    Tls(#[source] rustls::Error),
    #[error("no HTTP client can be made for the provider")]
    Client(#[source] reqwest::Error),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FetchError {
    /// With the reasons, without the address.
    #[error("the provider cannot be reached: {0}")]
    Connection(String),
    #[error("the provider's answer is longer than {ANSWER_MAX} bytes")]
    Long,
    #[error("the provider answered {status}{}", shown(.code))]
    Status { status: u16, code: Option<String> },
}

fn shown(code: &Option<String>) -> String {
    code.as_ref().map_or_else(String::new, |code| format!(" ({code})"))
}

/// A client that trusts the system's CAs and that of the settings.
pub(super) fn client(
    provider: &ProviderSettings,
    crypto: Arc<rustls::crypto::CryptoProvider>,
) -> Result<reqwest::Client, ProviderClientError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let own = provider.ca_pem.as_deref().unwrap_or_default();
    // The settings checked that each is one.
    for certificate in CertificateDer::pem_slice_iter(own).flatten() {
        roots.add(certificate).map_err(ProviderClientError::Ca)?;
    }
    let tls = rustls::ClientConfig::builder_with_provider(crypto)
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .map_err(ProviderClientError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .retry(reqwest::retry::never())
        .http1_only()
        .connect_timeout(CONNECT_WAIT)
        .timeout(WHOLE_WAIT)
        .build()
        .map_err(ProviderClientError::Client)
}

/// The answer to a request, if it is a good one.
pub(super) async fn bytes(request: RequestBuilder) -> Result<Vec<u8>, FetchError> {
    let failed = |error: reqwest::Error| FetchError::Connection(chain(&error.without_url()));
    let mut answer = request.header("accept", "application/json").send().await.map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(failed)? {
        if bytes.len().saturating_add(piece.len()) > ANSWER_MAX {
            return Err(FetchError::Long);
        }
        bytes.extend_from_slice(&piece);
    }
    if answer.status().is_success() {
        return Ok(bytes);
    }
    Err(FetchError::Status { status: answer.status().as_u16(), code: error_code(&bytes) })
}

/// The code of an error of OAuth: a word, and never the free text next to it.
fn error_code(bytes: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let code = answer.get("error")?.as_str()?;
    let is_word = code.len() <= 64 && code.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word.then(|| code.to_owned())
}
