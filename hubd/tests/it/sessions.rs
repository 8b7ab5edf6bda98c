//! Sessions: no resumption, and connections of revoked hosts.

use std::sync::Arc;

use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::enrol::{Enrolled, RenewRequest};
use holdfast_protocol::operator::HostView;
use hubd::clock::Clock as _;
use rcgen::KeyPair;
use reqwest::{Method, StatusCode};
use rustls::HandshakeKind;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, pem::PemObject as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::world::{Host, World, csr};

/// An agent's client that would resume, if it could.
fn config(world: &World, host: &Host) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(world.ca_pem.as_bytes()).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(host.enrolled.certificate_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(host.key.serialize_der()));
    let mut config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    config.resumption = Resumption::in_memory_sessions(64);
    config.enable_early_data = true;
    Arc::new(config)
}

struct Line(TlsStream<TcpStream>);

impl Line {
    async fn open(world: &World, config: &Arc<rustls::ClientConfig>) -> Self {
        let address = world.url.strip_prefix("https://").unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(config));
        Self(connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await.unwrap())
    }

    async fn say(&mut self, request: &CheckinRequest, wait: &str) {
        let body = serde_json::to_string(request).unwrap();
        let head = format!(
            "POST /v1/agent/checkin?wait={wait} HTTP/1.1\r\nhost: hub\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all((head + &body).as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// The next answer of a connection that stays open.
    async fn answer(&mut self) -> String {
        let mut read = Vec::new();
        let reading = async {
            loop {
                let text = String::from_utf8_lossy(&read).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let head = head.to_ascii_lowercase();
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    if body.len() >= length.unwrap().parse::<usize>().unwrap() {
                        return text;
                    }
                }
                let mut bytes = [0; 4096];
                let count = self.0.read(&mut bytes).await.unwrap();
                assert!(count > 0, "the hub hung up: {text}");
                read.extend_from_slice(&bytes[..count]);
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), reading).await.unwrap()
    }
}

async fn revoke(world: &World) {
    world.admin().send::<HostView>(Method::POST, "/v1/hosts/box7/revoke", &()).await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_resumed_by_a_client_that_tries() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let config = config(&world, &host);
    for sequence in 1..=3 {
        let mut line = Line::open(&world, &config).await;
        line.say(&host.full(sequence, 0), "0s").await;
        assert!(line.answer().await.starts_with("HTTP/1.1 200 "));
        let tls = line.0.get_ref().1;
        assert_eq!(tls.handshake_kind(), Some(HandshakeKind::Full));
        assert_eq!(tls.tls13_tickets_received(), 0);
        assert!(!tls.is_early_data_accepted());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_reaches_a_connection_that_is_open_already() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let mut line = Line::open(&world, &config(&world, &host)).await;
    line.say(&host.full(1, 0), "0s").await;
    assert!(line.answer().await.starts_with("HTTP/1.1 200 "));
    revoke(&world).await;
    line.say(&host.full(2, 0), "0s").await;
    let told = line.answer().await;
    assert!(told.starts_with("HTTP/1.1 401 ") && told.contains("\"REVOKED\""), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_reaches_a_check_in_that_is_held() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let mut line = Line::open(&world, &config(&world, &host)).await;
    line.say(&host.full(1, 0), "0s").await;
    line.answer().await;
    line.say(&host.changed(2, 0, Default::default()), "25s").await;
    // It is held once the hub has kept it.
    crate::world::until("held", || async {
        let detail = world.store.host("box7".parse().unwrap(), world.clock.now()).await.unwrap().unwrap();
        detail.host.seen_at.is_some()
    })
    .await;
    revoke(&world).await;
    let told = line.answer().await;
    assert!(told.contains("\"REVOKED\""), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_is_frozen_on_the_connection_it_holds_and_the_right_one_with_it() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    // The copy of the state folder speaks over a connection of its own, from before the renewal.
    let mut clone = Line::open(&world, &config(&world, &host)).await;
    clone.say(&host.full(1, 0), "0s").await;
    assert!(clone.answer().await.starts_with("HTTP/1.1 200 "));
    let key = KeyPair::generate().unwrap();
    let renewal = RenewRequest { csr_pem: csr(&key) };
    let renewed: Enrolled = host.client.send(Method::POST, "/v1/renew", &renewal).await.data(StatusCode::OK);
    let right = world.host(renewed, key);
    let mut line = Line::open(&world, &config(&world, &right)).await;
    line.say(&right.full(2, 0), "0s").await;
    assert!(line.answer().await.starts_with("HTTP/1.1 200 "));
    clone.say(&host.full(3, 0), "0s").await;
    let told = clone.answer().await;
    assert!(told.starts_with("HTTP/1.1 403 ") && told.contains("\"FROZEN\""), "{told}");
    line.say(&right.full(4, 0), "0s").await;
    let told = line.answer().await;
    assert!(told.starts_with("HTTP/1.1 403 ") && told.contains("\"FROZEN\""), "{told}");
    // The way out: an operator revokes the frozen host and enrolls the right machine anew, under the same name.
    revoke(&world).await;
    let anew = world.enrol("box7").await;
    anew.check_in(&anew.full(1, 0), "0s").await.data(StatusCode::OK);
}
