//! A small HTTPS client of the local API.
//!
//! It is no part of the programs, so that it may also send what the controller never would.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
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
pub const LISTENER: &str = "10.66.0.1:8443";

/// Ends a hang; it measures nothing.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A guest that has its token.
#[derive(Clone)]
pub struct Guest {
    pub number: u8,
    /// Where its connections come from.
    from: Ipv4Addr,
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

/// The token of a request.
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
        Err(rustls::Error::General("another certificate than the bootstrap token's".to_owned()))
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

/// The bootstrap token in a guest's configuration, once the guest was made.
pub fn token(configuration: &str) -> Option<Value> {
    let (_, from) = configuration.split_once("HOLDFAST_BOOTSTRAP=")?;
    let is_of_it = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let sealed = from.split(|letter| !is_of_it(letter)).next()?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(sealed).ok()?).ok()
}

impl Guest {
    /// Redeems the bootstrap token. Called in the guest's namespace.
    pub fn claims(number: u8, uid: &str, token: &Value) -> Self {
        Self::claims_from(net::address(number), number, uid, token)
    }

    /// The same from any address that the guest has.
    pub fn claims_from(from: Ipv4Addr, number: u8, uid: &str, token: &Value) -> Self {
        let tls = tls(token["pin"].as_str().unwrap());
        let guest = Self { number, from, uid: uid.to_owned(), token: String::new(), tls };
        let answer = guest.redeems(token).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        Self { token: answer.body["data"]["token"].as_str().unwrap().to_owned(), ..guest }
    }

    /// Shows a bootstrap token, whatever the answer is.
    pub fn redeems(&self, token: &Value) -> io::Result<Answer> {
        let claim = json!({ "claim": token["claim"] }).to_string();
        self.ask("POST", "/v1/claim", Token::None, &claim)
    }

    /// This guest, without a token, towards the agent that a bootstrap token names.
    pub fn without_token(&self, token: &Value) -> Self {
        Self { token: String::new(), tls: tls(token["pin"].as_str().unwrap()), ..self.clone() }
    }

    /// This guest with a token that it stole.
    pub fn with_token_of(&self, other: &Self) -> Self {
        Self { token: other.token.clone(), ..self.clone() }
    }

    /// The same client with another address of its guest.
    pub fn from(&self, from: Ipv4Addr) -> Self {
        Self { from, ..self.clone() }
    }

    /// The same client in another guest.
    pub fn at(&self, number: u8) -> Self {
        Self { number, from: net::address(number), ..self.clone() }
    }

    /// The head of a request, and no body yet.
    pub fn head(&self, method: &str, path: &str, token: Token, length: usize) -> String {
        self.head_with(method, path, token, length, "hostile")
    }

    fn head_with(&self, method: &str, path: &str, token: Token, length: usize, key: &str) -> String {
        let bearer = match token {
            Token::Own => format!("authorization: Bearer {}\r\n", self.token),
            Token::Invented => format!("authorization: Bearer {}\r\n", "A".repeat(43)),
            Token::None => String::new(),
        };
        let key = if method == "GET" { String::new() } else { format!("idempotency-key: {key}\r\n") };
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {LISTENER}\r\n{bearer}{key}content-length: {length}\r\n\r\n"
        )
    }

    /// A TLS client connection for a handshake.
    pub fn handshake(&self) -> ClientConnection {
        let to: SocketAddr = LISTENER.parse().unwrap();
        ClientConnection::new(Arc::clone(&self.tls), ServerName::IpAddress(to.ip().into())).unwrap()
    }

    /// The configuration, for tests that use TLS in their own way.
    pub fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.tls)
    }

    /// One request on a connection of its own, from this guest's own address. Called in its namespace.
    pub fn ask(&self, method: &str, path: &str, token: Token, body: &str) -> io::Result<Answer> {
        self.send(&(self.head(method, path, token, body.len()) + body))
    }

    /// One request with the guest's own token and with this idempotency key.
    pub fn ask_once(&self, method: &str, path: &str, body: &str, key: &str) -> io::Result<Answer> {
        self.send(&(self.head_with(method, path, Token::Own, body.len(), key) + body))
    }

    fn send(&self, request: &str) -> io::Result<Answer> {
        let tcp = TcpStream::connect_timeout(&LISTENER.parse().unwrap(), PATIENCE)?;
        assert_eq!(tcp.local_addr()?.ip(), self.from, "the address that the test means");
        // Otherwise the request waits 40 ms for the ACK of the handshake, which is the client's own fault.
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_write_timeout(Some(PATIENCE))?;
        let mut stream = StreamOwned::new(self.handshake(), tcp);
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
