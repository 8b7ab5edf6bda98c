//! A small hub on loopback, for tests of its clients.

use std::net::SocketAddr;
use std::sync::Arc;

use agent_ports::identity::{Identity, IdentitySchema};
use axum::Router;
use holdfast_protocol::enrol::Enrolled;
use holdfast_protocol::secret::Secret;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;

pub type Ca = CertifiedIssuer<'static, KeyPair>;

pub fn ca() -> Ca {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server with a certificate by `signer`. It shows `shown` as its CA, and requires client certificates of `clients`.
pub fn tls(signer: &Ca, shown: &Ca, clients: Option<&Ca>) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, signer).unwrap();
    let builder = ServerConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let chain = vec![leaf.der().clone(), shown.der().clone()];
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(ca.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), net::tls::provider());
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    config.with_single_cert(chain, private).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a server that ends with the test's runtime")]
pub async fn serve(config: ServerConfig, router: Router) -> String {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let service = TowerToHyperService::new(router);
                    let _gone = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                }
            });
        }
    });
    format!("https://{address}")
}

pub fn identity(base: &str, hub_ca: &Ca, signer: &Ca) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["agent".to_owned()]).unwrap().signed_by(&key, signer).unwrap();
    Identity {
        schema: IdentitySchema::V1,
        hub: base.to_owned(),
        key_pem: Secret::new(key.serialize_pem()),
        enrolled: Enrolled {
            host_id: holdfast_protocol::id::HostId::new(uuid::Uuid::nil()),
            host_name: "box7".parse().unwrap(),
            certificate_pem: certificate.pem(),
            ca_pem: hub_ca.pem(),
            ca_cross_pem: None,
            certificate_generation: 1,
            not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
            not_after: "2026-12-01T00:00:00Z".parse().unwrap(),
        },
        learned_cas: Vec::new(),
    }
}
