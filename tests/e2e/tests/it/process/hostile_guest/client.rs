//! A small HTTPS client of the local API: one connection, one request, one answer.
//!
//! It is no part of the programs, so that it may also say what the controller never would.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::net;

/// Where the agent serves guests.
pub const DOOR: &str = "10.66.0.1:8443";

/// Ends a hang; it measures nothing.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A guest that has its token.
#[derive(Clone)]
pub struct Guest {
    pub number: u8,
    pub uid: String,
    token: String,
    tls: Arc<ClientConfig>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    /// The error's code; empty where there is none.
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

/// With which token a request comes.
#[derive(Clone, Copy, Debug)]
pub enum Token {
    Own,
    Invented,
    None,
}

#[derive(Debug)]
struct Pinned {
    leaf: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if Sha256::digest(leaf).as_slice() == self.leaf {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::General("another certificate than the ticket's".to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("the agent speaks TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn tls(pin: &str) -> Arc<ClientConfig> {
    let hex = pin.strip_prefix("leaf/sha256:").unwrap();
    let leaf = std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap());
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { leaf, provider }))
        .with_no_client_auth();
    // A whole handshake for each connection, so that each costs the same.
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}

/// What stands in a guest's configuration for its controller, once the guest was made.
pub fn ticket(configuration: &str) -> Option<Value> {
    let (_, from) = configuration.split_once("HOLDFAST_BOOTSTRAP=")?;
    let is_of_it = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let sealed = from.split(|letter| !is_of_it(letter)).next()?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(sealed).ok()?).ok()
}

impl Guest {
    /// Trades the claim for the token. Called in the guest's namespace.
    pub fn claims(number: u8, uid: &str, ticket: &Value) -> Self {
        let tls = tls(ticket["pin"].as_str().unwrap());
        let guest = Self { number, uid: uid.to_owned(), token: String::new(), tls };
        let claim = json!({ "claim": ticket["claim"] }).to_string();
        let answer = guest.ask("POST", "/v1/claim", Token::None, &claim).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        Self { token: answer.body["data"]["token"].as_str().unwrap().to_owned(), ..guest }
    }

    /// The head of a request, and no body yet.
    pub fn head(&self, method: &str, path: &str, token: Token, length: usize) -> String {
        let bearer = match token {
            Token::Own => format!("authorization: Bearer {}\r\n", self.token),
            Token::Invented => format!("authorization: Bearer {}\r\n", "A".repeat(43)),
            Token::None => String::new(),
        };
        let key = if method == "GET" { "" } else { "idempotency-key: hostile\r\n" };
        format!("{method} {path} HTTP/1.1\r\nhost: {DOOR}\r\n{bearer}{key}content-length: {length}\r\n\r\n")
    }

    /// What shakes hands for it.
    pub fn handshake(&self) -> ClientConnection {
        let to: SocketAddr = DOOR.parse().unwrap();
        ClientConnection::new(Arc::clone(&self.tls), ServerName::IpAddress(to.ip().into())).unwrap()
    }

    /// The configuration, for those who speak TLS in their own way.
    pub fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.tls)
    }

    /// One request on a connection of its own, from this guest's own address. Called in its namespace.
    pub fn ask(&self, method: &str, path: &str, token: Token, body: &str) -> io::Result<Answer> {
        let tcp = TcpStream::connect_timeout(&DOOR.parse().unwrap(), PATIENCE)?;
        assert_eq!(tcp.local_addr()?.ip(), net::address(self.number), "the guest's first address is its own");
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_write_timeout(Some(PATIENCE))?;
        let mut stream = StreamOwned::new(self.handshake(), tcp);
        let request = self.head(method, path, token, body.len()) + body;
        stream.write_all(request.as_bytes())?;
        let (mut read, mut buffer) = (Vec::new(), [0; 8192]);
        loop {
            if let Some(answer) = whole(&read) {
                return Ok(answer);
            }
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                let said = String::from_utf8_lossy(&read).into_owned();
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("half an answer: {said:?}"),
                ));
            }
            read.extend_from_slice(&buffer[..count]);
        }
    }

    /// Its controller is up.
    pub fn says_hello(&self) -> io::Result<Answer> {
        let hello = json!({ "version": "0.1.0", "health": "well", "boot_id": format!("b-{}", self.number) });
        self.ask("POST", "/v1/hello", Token::Own, &hello.to_string())
    }
}

fn whole(read: &[u8]) -> Option<Answer> {
    let end = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body = read.get(end..end + length.map_or(0, |length| length.parse().unwrap()))?;
    Some(Answer { status, body: serde_json::from_slice(body).unwrap_or(Value::Null) })
}
