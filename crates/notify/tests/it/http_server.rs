//! A scripted HTTP server on a loopback port.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The status, further header lines, the body.
pub type Reply = (u16, String, String);

pub fn reply(status: u16, body: &str) -> Reply {
    (status, String::new(), body.to_owned())
}

/// A running server; it ends with the test.
pub struct Server {
    pub address: SocketAddr,
    received: Receiver<Received>,
}

impl Server {
    /// `answer` gets each request with its number.
    pub fn start(answer: impl Fn(usize, &Received) -> Reply + Send + 'static) -> Self {
        Self::serve(None, answer)
    }

    /// The same over TLS, with a certificate and its key as PEM.
    pub fn start_tls(
        certificate: &str,
        key: &str,
        answer: impl Fn(usize, &Received) -> Reply + Send + 'static,
    ) -> Self {
        Self::serve(Some(tls_config(certificate, key)), answer)
    }

    fn serve(
        tls: Option<rustls::ServerConfig>,
        answer: impl Fn(usize, &Received) -> Reply + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = channel();
        let tls = tls.map(std::sync::Arc::new);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let mut stream: Box<dyn ReadWrite> = match &tls {
                    None => Box::new(stream),
                    Some(tls) => {
                        let session = rustls::ServerConnection::new(tls.clone()).unwrap();
                        Box::new(rustls::StreamOwned::new(session, stream))
                    }
                };
                // A client that refuses our certificate ends the connection without a request.
                let Some(request) = read(&mut stream) else { continue };
                let (status, headers, body) = answer(number, &request);
                if sender.send(request).is_err() {
                    return;
                }
                let head = format!(
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                // A client may hang up before a long answer ends.
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
                let _ = stream.flush();
            }
        });
        Self { address, received }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far. Each was recorded before it was answered.
    pub fn received(&self) -> Vec<Received> {
        self.received.try_iter().collect()
    }
}

pub trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

pub fn tls_config(certificate: &str, key: &str) -> rustls::ServerConfig {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    rustls::ServerConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

fn read(stream: &mut Box<dyn ReadWrite>) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        let twice = headers.insert(name.to_lowercase(), value.to_owned());
        assert_eq!(twice, None, "a header twice: {line}");
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Some(Received { method, path, headers, body })
}
