//! TLS versions, session resumption, client certificates.

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use reqwest::Method;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::world::World;

/// A certificate that says what ours say, by another CA.
fn forged(host: &str) -> (String, KeyPair) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    let urn = format!("urn:holdfast:host:{host}:1");
    params.subject_alt_names = vec![SanType::URI(urn.try_into().unwrap())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    (params.signed_by(&key, &issuer).unwrap().pem(), key)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_ca_does_not_get_through_the_handshake() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let (pem, key) = forged(&host.enrolled.host_id.to_string());
    let client = world.client(Some((&pem, &key)));
    let request = client.http.request(Method::POST, format!("{}/v1/agent/checkin", world.url));
    request.body("{}").send().await.expect_err("a stranger's certificate was taken");
    // The same hub still serves the right one.
    host.check_in(&host.full(1, 0), "0s").await.data(reqwest::StatusCode::OK);
}

async fn shake(world: &World, version: &'static rustls::SupportedProtocolVersion) -> std::io::Result<usize> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(world.ca_pem.as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = world.url.strip_prefix("https://").unwrap();
    let stream = TcpStream::connect(address).await?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await?;
    tokio::io::AsyncWriteExt::write_all(
        &mut stream,
        b"GET /healthz HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n",
    )
    .await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    Ok(stream.get_ref().1.tls13_tickets_received() as usize)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_tls_1_3_without_session_resumption() {
    let world = World::start().await;
    assert_eq!(shake(&world, &rustls::version::TLS13).await.unwrap(), 0);
    shake(&world, &rustls::version::TLS12).await.expect_err("TLS 1.2 was spoken");
}
