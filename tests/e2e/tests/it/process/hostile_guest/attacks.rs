//! Attacks below HTTP, and with bodies.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::client::{Guest, LISTENER, PATIENCE, Token};
use super::judge::{Reported, Signals};
use super::net::{self, STRANGERS};

/// For each address of the hostile guest: connections that are open at once.
const CONNECTIONS_EACH: usize = 8;
/// Addresses that handshake slowly, one connection each; and connections whose body comes slowly.
const SLOW_HANDSHAKES: usize = 24;
const SLOW_BODIES: usize = 4;
/// The pause between two bytes. A whole hello of some 230 bytes takes longer than the 5 s that the agent allows for a
/// handshake. A body of [`BODY`] bytes takes longer than the 10 s that it allows for a body, however slow this machine
/// is.
const SLOWLY: Duration = Duration::from_millis(100);
const BODY: usize = 300;

/// On this thread alone, which is in the guest's namespace: so are its sockets.
pub fn here<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub async fn connect(from: IpAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from, 0))?;
    timeout(PATIENCE, socket.connect(LISTENER.parse().unwrap())).await?
}

/// Idle connections from many addresses. Every second one sends a first byte of TLS, so it counts as an active one.
pub fn crowd(_: &Guest, signals: &Signals) -> Reported {
    here(async {
        let full = CONNECTIONS_EACH * usize::from(STRANGERS);
        let (mut held, mut opened, mut ended, mut not_taken) = (VecDeque::new(), 0_usize, 0_usize, 0_usize);
        while !signals.over() {
            if held.len() == full {
                signals.begun();
                let oldest: Option<TcpStream> = held.pop_front();
                let was = oldest.map(|stream| stream.try_read(&mut [0; 16]));
                ended += usize::from(
                    !matches!(was, Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock),
                );
            }
            let Ok(mut stream) = connect(net::stranger(opened).into()).await else {
                not_taken += 1;
                continue;
            };
            if (opened / usize::from(STRANGERS)).is_multiple_of(2) {
                let _closed_already = stream.write_all(&[22, 3, 1]).await;
            }
            held.push_back(stream);
            opened += 1;
        }
        let mut reported = Reported::default();
        if ended == 0 {
            reported.faults.push(format!("none of {opened} idle connections of strangers was ended"));
        }
        reported.counts = format!(
            "{opened} idle connections from {STRANGERS} addresses, {ended} ended by the agent, {not_taken} not connected"
        );
        reported
    })
}

/// Sends bytes one by one until the other side ends the connection. Returns how many were sent, or none when all were
/// sent and it did not end.
async fn trickle(stream: &mut TcpStream, bytes: &[u8]) -> Option<usize> {
    for (at, byte) in bytes.iter().enumerate() {
        if stream.write_all(&[*byte]).await.is_err() || is_over(stream).await {
            return Some(at + 1);
        }
    }
    None
}

/// Waits for bytes of the other side, for as long as a slow client waits between two bytes.
async fn is_over(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    timeout(SLOWLY, stream.read(&mut [0; 1024])).await.is_ok()
}

/// A ClientHello byte by byte.
async fn slow_handshake(guest: &Guest, from: IpAddr) -> Option<usize> {
    let mut hello = Vec::new();
    guest.handshake().write_tls(&mut hello).unwrap();
    // A connection that is not accepted is ended, too.
    let Ok(mut stream) = connect(from).await else { return Some(0) };
    trickle(&mut stream, &hello).await
}

/// A hello's body byte by byte, with the guest's own token. None when the agent read it to the end.
async fn slow_body(guest: &Guest) -> Option<usize> {
    let own = net::address(guest.number).into();
    let Ok(tcp) = connect(own).await else { return Some(0) };
    let to: SocketAddr = LISTENER.parse().unwrap();
    let connector = TlsConnector::from(guest.tls());
    let Ok(mut stream) = connector.connect(ServerName::IpAddress(to.ip().into()), tcp).await else {
        return Some(0);
    };
    let head = guest.head("POST", "/v1/hello", Token::Own, BODY);
    if stream.write_all(head.as_bytes()).await.is_err() {
        return Some(0);
    }
    for at in 0..BODY {
        if stream.write_all(b" ").await.is_err()
            || stream.flush().await.is_err()
            || is_over(&mut stream).await
        {
            return Some(at + 1);
        }
    }
    None
}

/// Repeats a slow request: until the neighbours have their answers, and until the agent ended it once.
async fn again<F: Future<Output = Option<usize>>>(over: Arc<AtomicBool>, once: impl Fn() -> F) -> Slow {
    let mut slow = Slow::default();
    while !over.load(Ordering::SeqCst) || slow == Slow::default() {
        match once().await {
            Some(0) => {}
            Some(_) => slow.ended += 1,
            None => slow.endless += 1,
        }
    }
    slow
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Slow {
    ended: usize,
    endless: usize,
}

async fn sum(mut all: JoinSet<Slow>) -> Slow {
    let mut sum = Slow::default();
    while let Some(slow) = all.join_next().await {
        let slow = slow.unwrap();
        sum.ended += slow.ended;
        sum.endless += slow.endless;
    }
    sum
}

/// Handshakes and bodies that never come to an end by themselves.
pub fn slow(guest: &Guest, signals: &Signals) -> Reported {
    here(async {
        let (mut handshakes, mut bodies) = (JoinSet::new(), JoinSet::new());
        for number in 0..SLOW_HANDSHAKES {
            let (over, guest) = (signals.is_over(), guest.clone());
            let once =
                async move { again(over, || slow_handshake(&guest, net::stranger(number).into())).await };
            handshakes.spawn(once);
        }
        for _ in 0..SLOW_BODIES {
            let (over, guest) = (signals.is_over(), guest.clone());
            bodies.spawn(async move { again(over, || slow_body(&guest)).await });
        }
        // They have begun once this has waited as long as their pause between two bytes.
        tokio::time::sleep(SLOWLY).await;
        signals.begun();
        let (handshakes, bodies) = (sum(handshakes).await, sum(bodies).await);
        let mut reported = Reported::default();
        for (what, slow) in [("handshake", handshakes), ("body", bodies)] {
            if slow.endless > 0 {
                reported.faults.push(format!("{} times a {what} was waited for to its end", slow.endless));
            }
        }
        reported.counts = format!(
            "{} slow handshakes and {} slow bodies ended by the agent",
            handshakes.ended, bodies.ended
        );
        reported
    })
}

/// Bytes that are no handshake of TLS 1.3, by name.
fn malformed(guest: &Guest) -> Vec<(&'static str, Vec<u8>)> {
    let mut hello = Vec::new();
    guest.handshake().write_tls(&mut hello).unwrap();
    let noise = |seed: u32, length: usize| {
        let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let bytes = std::iter::successors(Some(seed), next).map(|state| state.to_be_bytes()[0]);
        bytes.skip(1).take(length).collect::<Vec<u8>>()
    };
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = hello.clone();
        change(&mut changed);
        changed
    };
    // 1.2 alone: no extension names a later version.
    let mut old = vec![22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    old.extend(noise(7, 32));
    old.extend([0, 0, 2, 0xc0, 0x2f, 1, 0]);
    vec![
        ("random bytes", noise(1, 300)),
        ("random bytes in a record", [vec![22, 3, 1, 1, 0], noise(2, 256)].concat()),
        ("TLS 1.2 alone", old),
        ("a truncated record", hello[..hello.len() / 2].to_vec()),
        ("a record that is too long", [vec![22, 3, 1, 0xff, 0xff], noise(3, 4096)].concat()),
        ("empty records", [22, 3, 1, 0, 0].repeat(100)),
        ("a hello that says it is longer", with(&|hello| hello[6] = 0xff)),
        ("a hello with a changed length inside", with(&|hello| hello[43] = 0xff)),
        ("data before the handshake", [&[23, 3, 3, 0, 4, 1, 2, 3, 4][..], &hello].concat()),
        ("an alert", vec![21, 3, 3, 0, 2, 2, 40]),
        ("two hellos", hello.repeat(2)),
        ("plain HTTP", guest.head("GET", "/v1/self", Token::Own, 0).into_bytes()),
    ]
}

/// What the agent sent until it ended the connection.
async fn answered(from: IpAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = connect(from).await?;
    let mut answer = Vec::new();
    let talk = async {
        // A client that is cut off while it writes notices it when it reads; a reset is an end, too.
        let _said = stream.write_all(bytes).await;
        let _said = stream.shutdown().await;
        let _end = stream.read_to_end(&mut answer).await;
    };
    timeout(PATIENCE, talk).await?;
    Ok(answer)
}

/// Bytes that are no handshake: the answer is an alert of TLS or none, and the connection ends.
pub fn no_tls(guest: &Guest, signals: &Signals) -> Reported {
    here(async {
        let (cases, mut reported) = (malformed(guest), Reported::default());
        let (mut said, mut alerts) = (0_usize, 0_usize);
        while !signals.over() || said < cases.len() {
            let (name, bytes) = &cases[said % cases.len()];
            match answered(net::stranger(said).into(), bytes).await {
                Ok(answer) if answer.first() == Some(&21) => alerts += 1,
                Ok(answer) if answer.is_empty() => {}
                // Two hellos are one good one and a fault: the answer to the first is no alert.
                Ok(answer) if *name == "two hellos" && answer.first() == Some(&22) => {}
                other => reported.faults.push(format!("{name}: {other:?}")),
            }
            said += 1;
            signals.begun();
        }
        if alerts == 0 {
            reported.faults.push(format!("none of {said} was answered by an alert: was any of it read?"));
        }
        reported.counts = format!("{said} of {} kinds, {alerts} answered by an alert", cases.len());
        reported
    })
}
