//! TLS settings that all servers share.

use std::sync::Arc;

use rustls::server::NoServerSessionStorage;
use rustls::{ConfigBuilder, Error, ServerConfig, WantsVerifier};

/// Server settings that still need their certificates: which of clients they ask for, and which they show.
pub type WantsCertificates = ConfigBuilder<ServerConfig, WantsVerifier>;

/// Settings of a server: TLS 1.3 alone, no session that a revoked client could resume, HTTP/1.1. `certificates` decides
/// what the server shows and what it requests.
///
/// # Errors
/// The error of `certificates`, or a provider without TLS 1.3.
pub fn server(
    certificates: impl FnOnce(WantsCertificates) -> Result<ServerConfig, Error>,
) -> Result<Arc<ServerConfig>, Error> {
    let builder = ServerConfig::builder_with_provider(super::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let mut config = certificates(builder)?;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
