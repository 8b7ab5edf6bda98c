//! Trust in receivers, by the CAs of system or channel.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::DeliveryError;
use crate::field::CaPem;

/// The certificates to check a receiver by. The system's are read anew each time, as they change with the system.
pub(super) async fn roots(ca: Option<&CaPem>) -> Result<Vec<CertificateDer<'static>>, DeliveryError> {
    let found = match ca {
        Some(ca) => ca.certificates(),
        None => tokio::task::spawn_blocking(|| rustls_native_certs::load_native_certs().certs)
            .await
            .map_err(|error| DeliveryError::Tls(error.into()))?,
    };
    // One that cannot be used must not make all others useless.
    let usable = |one: &CertificateDer<'static>| RootCertStore::empty().add(one.clone()).is_ok();
    let roots: Vec<_> = found.into_iter().filter(usable).collect();
    if roots.is_empty() { Err(DeliveryError::NoRoots) } else { Ok(roots) }
}

/// The settings of an HTTP client. Receivers are servers of others, so TLS 1.2 is spoken, too.
pub(super) fn config(roots: Vec<CertificateDer<'static>>) -> Result<rustls::ClientConfig, DeliveryError> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots);
    let mut config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .map_err(|error| DeliveryError::Tls(error.into()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}
