//! Crowds of strangers among served hosts and operators.
//!
//! Earlier, all callers shared the connection slots. A caller that opened all of them and sent nothing, or began
//! handshakes and did not finish them, kept all others out. When its connections timed out, it began again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::WhoAmI;
use holdfast_protocol::report::REPORT_BYTES_MAX;
use reqwest::{Method, StatusCode};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::world::World;

/// Long enough for the slowest machine; nothing passes or fails by how long it takes.
const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(world: &World, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(world.url.strip_prefix("https://").unwrap().parse().unwrap()).await.unwrap()
}

/// More connections than there are, from many addresses, each of which sends these bytes and no more.
async fn crowd(world: &World, says: &[u8]) -> Vec<TcpStream> {
    let mut crowd = Vec::new();
    for host in 1..=100 {
        for _ in 0..2 {
            let mut stream = connect(world, [127, 8, 9, host]).await;
            // One that made room already takes nothing more.
            let _ = stream.write_all(says).await;
            crowd.push(stream);
        }
    }
    crowd
}

/// A hub for 160 connections, of which strangers may have twenty.
#[tokio::test(flavor = "multi_thread")]
async fn silent_and_half_open_connections_do_not_block_others() {
    for says in [&b""[..], &[22, 3, 1, 2, 0, 1, 0]] {
        let world = World::narrow(160).await;
        let host = world.enrol("box7").await;
        host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
        let operator = world.admin();
        operator.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK);
        let mut crowd = crowd(&world, says).await;
        assert!(crowd.len() > 160);
        // Over the connection that each has.
        host.check_in(&host.full(2, 0), "0s").await.data(StatusCode::OK);
        operator.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK);
        // And over another, from an address from which no host was served yet.
        let other = world.enrol("box8").await;
        other.check_in(&other.full(1, 0), "0s").await.data(StatusCode::OK);
        world.from([127, 8, 10, 1].into()).get::<Value>("/healthz").await.data(StatusCode::OK);
        // What made room for them was closed.
        let mut read = [0; 64];
        let gone = tokio::time::timeout(PATIENCE, crowd[0].read(&mut read)).await.expect("it made room");
        assert!(matches!(gone, Ok(0) | Err(_)), "{gone:?}");
    }
}

/// Twice as many slow bodies as strangers may have connections: the next stranger gets a slot at once.
#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_do_not_block_others() {
    let world = World::narrow(160).await;
    let mut slow = Vec::new();
    for host in 1..=40 {
        let mut stream = handshake(&world, [127, 8, 9, host]).await;
        let head = b"POST /v1/enroll HTTP/1.1\r\nhost: hub\r\ncontent-length: 60000\r\n\r\n{";
        stream.write_all(head).await.unwrap();
        slow.push(stream);
    }
    world.from([127, 8, 10, 1].into()).get::<Value>("/healthz").await.data(StatusCode::OK);
    world.enrol("box7").await;
}

async fn handshake(world: &World, from: [u8; 4]) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(world.ca_pem.as_bytes()).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connect(world, from).await;
    connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await.unwrap()
}

/// A host's own crowd is its own affair, and so is what it reports.
#[tokio::test(flavor = "multi_thread")]
async fn one_host_reports_no_more_than_its_share() {
    let world = World::start().await;
    let (loud, quiet) = (world.enrol("box7").await, world.enrol("box8").await);
    // Of the largest size, and no report: each costs its share before it is read.
    let large = vec![b' '; REPORT_BYTES_MAX];
    let send = || loud.client.send_bytes::<Value>(Method::POST, "/v1/agent/checkin", large.clone());
    for _ in 0..8 {
        assert_ne!(send().await.code(), ErrorCode::RateLimited);
    }
    let refused = loud.check_in(&loud.full(1, 0), "0s").await;
    assert_eq!(refused.code(), ErrorCode::RateLimited);
    assert!(refused.headers.contains_key("retry-after"));
    quiet.check_in(&quiet.full(1, 0), "0s").await.data(StatusCode::OK);
    world.clock.advance(8);
    loud.check_in(&loud.full(1, 0), "0s").await.data(StatusCode::OK);
}
