//! A TLS server with scripted bytes.
//!
//! It speaks HTTP/1.1 by hand, so that reason phrases, early ends and endless bodies are exactly what the test wrote.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_protocol::pin::{Pin, PinKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What the server does with one request.
#[derive(Clone, Debug)]
pub enum Turn {
    /// Answers, and keeps the connection as Proxmox does below status 400.
    Answer { status: &'static str, body: String },
    /// Ends the connection without an answer.
    HangUp,
    /// Answers 200 with a body that never ends.
    Endless,
}

/// An answer in Proxmox's frame.
pub fn data(json: &str) -> Turn {
    Turn::Answer { status: "200 OK", body: format!("{{\"data\":{json}}}") }
}

/// An answer with this status line and body.
pub fn answer(status: &'static str, body: &str) -> Turn {
    Turn::Answer { status, body: body.to_owned() }
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Which connection, from 0.
    pub connection: usize,
    /// Request line and headers.
    pub head: String,
    /// What came after.
    pub body: String,
}

impl ReceivedRequest {
    /// The request line without the version.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
    }
}

pub struct Peer {
    pub address: SocketAddr,
    pub pin: Pin,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Peer {
    /// Starts it with its scripted answers, one after another.
    pub fn start(turns: Vec<Turn>) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["pve1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let leaf: CertificateDer<'static> = certificate.der().clone();
        let pin = net::tls::pin_of(PinKind::Spki, &leaf).unwrap();
        let config = ServerConfig::builder_with_provider(net::tls::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let turns = Arc::new(Mutex::new(VecDeque::from(turns)));
        let (config, remember) = (Arc::new(config), Arc::clone(&asked));
        std::thread::spawn(move || {
            for (connection, socket) in listener.incoming().flatten().enumerate() {
                let (config, turns, asked) = (Arc::clone(&config), Arc::clone(&turns), Arc::clone(&remember));
                std::thread::spawn(move || serve(connection, socket, config, &turns, &asked));
            }
        });
        Self { address, pin, asked }
    }

    /// What arrived so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    connection: usize,
    socket: TcpStream,
    config: Arc<ServerConfig>,
    turns: &Mutex<VecDeque<Turn>>,
    asked: &Mutex<Vec<ReceivedRequest>>,
) {
    // Longer than any test; it only ends a forgotten thread.
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
    while let Some((head, body)) = read_request(&mut stream) {
        asked.lock().unwrap().push(ReceivedRequest { connection, head, body });
        let Some(turn) = turns.lock().unwrap().pop_front() else { return };
        match turn {
            Turn::HangUp => return,
            Turn::Answer { status, body } => {
                let close = !status.starts_with('2');
                let connection = if close { "close" } else { "Keep-Alive" };
                let length = body.len();
                let text = format!(
                    "HTTP/1.1 {status}\r\nConnection: {connection}\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                if stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_err() || close {
                    return;
                }
            }
            Turn::Endless => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                let mut more = stream.write_all(head.as_bytes());
                while more.is_ok() {
                    more = stream.write_all(chunk.as_bytes());
                }
                return;
            }
        }
    }
}

fn read_request(stream: &mut impl Read) -> Option<(String, String)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}
