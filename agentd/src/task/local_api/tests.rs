//! Tests of connections on loopback.

use std::net::IpAddr;

use axum::routing::get;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::pin::{Pin, PinKind, PinSet};
use net::tls::Trust;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::admit::{CONNECTIONS_PER_MINUTE, CONNECTIONS_STRANGERS};
use super::guests::Member;
use super::*;
use crate::api::{CONNECTIONS_EACH, Peer};
use crate::port::clock::RealClock;
use crate::port::local_tls::LocalLeaf;
use crate::task::stop;

/// Long enough for the slowest machine; nothing passes or fails by how long it takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Running {
    address: SocketAddr,
    pin: Pin,
    stopper: stop::Stopper,
    served: tokio::task::JoinHandle<()>,
    store: Store,
    _dir: tempfile::TempDir,
}

fn uid(number: u8) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(number.into()))
}

/// Where the guest of this number lives.
const fn guest_at(number: u8) -> [u8; 4] {
    [127, 9, 0, number]
}

/// A listener that knows the guests of these numbers.
#[expect(clippy::disallowed_methods, reason = "the server under test, joined at the end of it")]
async fn start(guests: &[u8]) -> Running {
    let dir = tempfile::tempdir().unwrap();
    let leaf = LocalLeaf::open(dir.path()).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let store = Store::open(dir.path(), clock.now()).unwrap();
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
    let known = guests.iter().map(|number| (IpAddr::from(guest_at(*number)), Member::Guest(uid(*number))));
    let (_, known) = watch::channel(Arc::new(known.collect()));
    let serving =
        Serving { listeners, tls: leaf.server().unwrap(), router, known, store: store.clone(), clock };
    let served = tokio::spawn(run(serving, stop));
    Running { address, pin: leaf.pin(), stopper, served, store, _dir: dir }
}

fn client(pin: Pin, from: [u8; 4]) -> reqwest::Client {
    let tls = net::tls::client(&Trust::Pins(PinSet::from(pin))).unwrap();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .local_address(IpAddr::from(from))
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap()
}

/// One call over a connection of its own.
async fn calls(running: &Running, from: [u8; 4]) -> reqwest::Result<String> {
    let url = format!("https://{}/whoami", running.address);
    client(running.pin, from).get(&url).send().await?.text().await
}

async fn connect(running: &Running, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(running.address).await.unwrap()
}

/// Waits until the agent has closed it.
async fn is_closed(stream: &mut TcpStream) {
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 1])).await.expect("it is closed");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

/// Whether the listener answers there: a connection that begins as TLS and continues as nonsense is answered with an
/// alert.
async fn is_admitted(running: &Running, from: [u8; 4]) -> bool {
    let mut stream = connect(running, from).await;
    let said = stream.write_all(&[22, 3, 1, 255, 255, 0]).await;
    let mut answer = Vec::new();
    said.is_ok() && stream.read_to_end(&mut answer).await.is_ok() && !answer.is_empty()
}

/// Both ends of more connections than a process may usually have are in this one.
fn allow_many_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit }).unwrap();
}

#[tokio::test]
async fn a_pinned_client_is_served_with_its_own_address() {
    let running = start(&[]).await;
    let from = guest_at(1);
    assert_eq!(calls(&running, from).await.unwrap(), format!("127.9.0.1 {}", running.address));
    let url = format!("https://{}/whoami", running.address);
    let wrong = client(Pin::of(PinKind::Leaf, b"other"), from).get(&url).send().await.unwrap_err();
    assert!(net::tls::refusal(&wrong).is_some());
    running.stopper.stop();
    tokio::time::timeout(PATIENCE, running.served).await.unwrap().unwrap();
    assert!(TcpStream::connect(running.address).await.is_err(), "nobody listens any more");
}

/// As it was observed: eight silent connections from each of 130 addresses, more than there are. Every guest is served.
#[tokio::test]
async fn a_crowd_of_strangers_keeps_no_guest_from_its_connections() {
    allow_many_descriptors();
    let running = start(&[1, 2, 3]).await;
    let mut crowd = Vec::new();
    for host in 1..=130 {
        for _ in 0..CONNECTIONS_EACH {
            crowd.push(connect(&running, [127, 9, 7, host]).await);
        }
    }
    assert!(crowd.len() > usize::try_from(CONNECTIONS_ALL).unwrap());
    // All that the guests may have, at once and with the crowd still there.
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_EACH {
        for guest in 1..=3 {
            let client = client(running.pin, guest_at(guest));
            let url = format!("https://{}/whoami", running.address);
            assert!(client.get(&url).send().await.unwrap().status().is_success(), "guest {guest}");
            held.push(client);
        }
    }
    // The first of the crowd made room for the last.
    let share = usize::try_from(CONNECTIONS_STRANGERS).unwrap();
    let last = crowd.len() - share;
    for stream in &mut crowd[..last] {
        is_closed(stream).await;
    }
}

/// A stranger is served as well, whatever other strangers hold: the oldest connection of the largest crowd is closed.
#[tokio::test]
async fn a_newcomer_among_strangers_is_served() {
    let running = start(&[]).await;
    let mut crowd = Vec::new();
    for host in 1..=40 {
        for _ in 0..2 {
            crowd.push(connect(&running, [127, 9, 7, host]).await);
        }
    }
    assert_eq!(calls(&running, [127, 9, 8, 1]).await.unwrap(), format!("127.9.8.1 {}", running.address));
}

#[tokio::test]
async fn silent_connections_of_a_guest_fill_its_own_and_end_by_themselves() {
    let running = start(&[1, 2]).await;
    let (own, other) = (guest_at(1), guest_at(2));
    let before = running.store.would_hear_since(uid(1));
    let mut silent = Vec::new();
    // Accepted by the kernel, and one more that the agent may have closed silently. The guest could not be heard then,
    // and this is not held against it.
    while running.store.would_hear_since(uid(1)) == before {
        for _ in 0..CONNECTIONS_EACH {
            silent.push(connect(&running, own).await);
        }
        is_closed(&mut connect(&running, own).await).await;
    }
    assert!(calls(&running, other).await.is_ok());
    assert_eq!(running.store.would_hear_since(uid(2)), before);
    // The handshakes never come, and the connections are free again.
    for stream in &mut silent {
        is_closed(stream).await;
    }
    assert!(calls(&running, own).await.is_ok());
}

/// No handshake is begun with a peer that does not speak TLS, and a slow handshake delays no other guest.
#[tokio::test]
async fn slow_and_senseless_handshakes_hold_up_no_one() {
    let running = start(&[1, 2]).await;
    let mut plain = connect(&running, guest_at(1)).await;
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, plain.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.is_empty(), "{ended:?}: no word of TLS is wasted on it");
    let mut slow = Vec::new();
    for host in 1..=30 {
        let mut stream = connect(&running, [127, 9, 7, host]).await;
        stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).await.unwrap();
        slow.push(stream);
    }
    for _ in 2..CONNECTIONS_EACH {
        let mut stream = connect(&running, guest_at(1)).await;
        stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).await.unwrap();
        slow.push(stream);
    }
    for guest in [1, 2] {
        assert!(calls(&running, guest_at(guest)).await.is_ok(), "guest {guest}");
    }
}

#[tokio::test]
async fn one_who_connects_too_often_keeps_no_one_else_from_connecting() {
    let running = start(&[1, 2]).await;
    let mut admitted = 0;
    while is_admitted(&running, guest_at(1)).await {
        admitted += 1;
    }
    assert!(admitted >= CONNECTIONS_PER_MINUTE, "only {admitted} before the first was refused");
    assert!(is_admitted(&running, guest_at(2)).await);
    assert!(is_admitted(&running, [127, 9, 7, 1]).await);
}

#[tokio::test]
async fn an_address_that_is_not_ours_is_refused_by_name() {
    let error = Listeners::bind(&[SocketAddr::from(([192, 0, 2, 1], 8443))]).await.unwrap_err();
    assert!(error.to_string().contains("192.0.2.1:8443"), "{error}");
}
