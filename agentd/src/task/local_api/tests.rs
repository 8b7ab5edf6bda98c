//! Real connections on loopback: one guest's bad manners are its own affair.

use std::time::Instant;

use axum::routing::get;
use holdfast_protocol::pin::{Pin, PinKind, PinSet};
use holdfast_tls::Trust;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::port::clock::RealClock;
use crate::port::local_tls::LocalLeaf;
use crate::task::stop;

struct Running {
    address: SocketAddr,
    pin: Pin,
    stopper: stop::Stopper,
    served: tokio::task::JoinHandle<()>,
    _dir: tempfile::TempDir,
}

#[expect(clippy::disallowed_methods, reason = "the server under test, joined at the end of it")]
async fn start() -> Running {
    let dir = tempfile::tempdir().unwrap();
    let leaf = LocalLeaf::open(dir.path()).unwrap();
    let listeners = Listeners::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))]).await.unwrap();
    let address = listeners.addresses().unwrap()[0];
    let (stopper, stop) = stop::pair();
    let router =
        Router::new().route(
            "/whoami",
            get(|axum::Extension(peer): axum::Extension<Peer>| async move {
                format!("{} {}", peer.from, peer.to)
            }),
        );
    let served =
        tokio::spawn(run(listeners, leaf.server().unwrap(), router, Arc::new(RealClock::start()), stop));
    Running { address, pin: leaf.pin(), stopper, served, _dir: dir }
}

fn client(pin: Pin) -> reqwest::Client {
    let tls = holdfast_tls::client(&Trust::Pins(PinSet::from(pin))).unwrap();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_pinned_client_is_served_with_its_own_address() {
    let running = start().await;
    let url = format!("https://{}/whoami", running.address);
    let text = client(running.pin).get(&url).send().await.unwrap().text().await.unwrap();
    assert_eq!(text, format!("127.0.0.1 {}", running.address));
    let wrong = client(Pin::of(PinKind::Leaf, b"other")).get(&url).send().await.unwrap_err();
    assert!(holdfast_tls::refusal(&wrong).is_some());
    running.stopper.stop();
    tokio::time::timeout(Duration::from_secs(5), running.served).await.unwrap().unwrap();
    assert!(TcpStream::connect(running.address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn silent_connections_fill_their_own_seats_and_end_by_themselves() {
    let running = start().await;
    let begun = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_EACH {
        silent.push(TcpStream::connect(running.address).await.unwrap());
    }
    // Taken by the kernel, closed by the agent without a word.
    let mut extra = TcpStream::connect(running.address).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(3), extra.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    // The handshakes never come, and the seats are free again.
    for mut stream in silent {
        let read = tokio::time::timeout(HANDSHAKE_MAX * 2, stream.read(&mut [0; 1])).await.unwrap();
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    assert!(begun.elapsed() >= HANDSHAKE_MAX, "they were given their time");
    let url = format!("https://{}/whoami", running.address);
    assert!(client(running.pin).get(&url).send().await.unwrap().status().is_success());
}

/// Connects from an address of this machine. Whether anybody speaks there: a handshake is waited for, or nobody listens.
async fn is_admitted(running: &Running, from: [u8; 4]) -> bool {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let mut stream = socket.connect(running.address).await.unwrap();
    // No handshake: the agent closes those that it serves as well, but not before it was told something.
    let told = stream.write_all(b"no hello of TLS").await;
    let mut answer = Vec::new();
    told.is_ok() && stream.read_to_end(&mut answer).await.is_ok() && !answer.is_empty()
}

#[tokio::test]
async fn one_who_connects_too_often_keeps_nobody_else_from_connecting() {
    let running = start().await;
    let (loud, quiet) = ([127, 0, 0, 11], [127, 0, 0, 12]);
    let mut admitted = 0;
    while is_admitted(&running, loud).await {
        admitted += 1;
    }
    assert!(admitted >= CONNECTIONS_PER_MINUTE, "only {admitted} before the first was refused");
    assert!(is_admitted(&running, quiet).await);
}

#[tokio::test]
async fn an_address_that_is_not_ours_is_refused_by_name() {
    let error = Listeners::bind(&[SocketAddr::from(([192, 0, 2, 1], 8443))]).await.unwrap_err();
    assert!(error.to_string().contains("192.0.2.1:8443"), "{error}");
}
