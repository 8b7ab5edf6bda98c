//! etcd of Debian, as a process of its own.
//!
//! One member with etcd's own settings, so a put is answered once it is synced to disk. Its clients use TLS with a
//! certificate made here.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::figures::Sample;
use crate::load::{Connection, Kind, connect, measured, post, report};
use crate::server::{ANY_PORT, Server};

/// A start takes about a second, with the election of the one member.
const START_MAX: Duration = Duration::from_secs(30);

/// etcd keeps each value that was ever put, and refuses puts beyond this: 8 GiB, its highest recommended bound.
const KEPT_MAX_BYTES: u64 = 8 << 30;

pub struct Etcd {
    server: Server,
    client: Arc<rustls::ClientConfig>,
}

/// The body of `POST /v3/kv/put`.
#[derive(Serialize)]
struct Put {
    key: String,
    value: String,
}

impl Etcd {
    /// Starts it with data in a folder, and waits until it accepts connections.
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
        let (key_file, certificate_file) = (folder.join("etcd-key.pem"), folder.join("etcd.pem"));
        std::fs::write(&key_file, key.serialize_pem())?;
        std::fs::write(&certificate_file, certificate.pem())?;
        // Its gateway calls the address that it was given, so the port cannot be 0.
        let address = TcpListener::bind(ANY_PORT)?.local_addr()?;
        #[expect(clippy::disallowed_methods, reason = "the program that the hub is measured against")]
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(folder.join("etcd"));
        command.arg("--cert-file").arg(certificate_file).arg("--key-file").arg(key_file);
        for option in ["--listen-client-urls", "--advertise-client-urls"] {
            command.arg(option).arg(format!("https://{address}"));
        }
        command.args(["--listen-peer-urls", "http://127.0.0.1:0", "--logger", "zap", "--log-level", "error"]);
        command.arg("--quota-backend-bytes").arg(KEPT_MAX_BYTES.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot run etcd: install Debian's package `etcd-server`")?;
        accepts(&mut child, address).await?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone())?;
        let client = rustls::ClientConfig::builder_with_provider(net::tls::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { server: Server::of(address, child), client: Arc::new(client) })
    }

    /// Puts the report of 4 KiB, each connection to a key of its own.
    pub async fn run(&self, connections: usize, time: Duration) -> anyhow::Result<Sample> {
        let mut connected = Vec::new();
        for _ in 0..connections {
            connected.push(connect(&self.server, Arc::clone(&self.client)).await?);
        }
        measured(&self.server, connected, time, puts).await
    }
}

async fn accepts(child: &mut Child, address: SocketAddr) -> anyhow::Result<()> {
    let began = Instant::now();
    while TcpStream::connect(address).await.is_err() {
        if let Some(status) = child.try_wait()? {
            bail!("etcd ended with {status}");
        }
        if began.elapsed() > START_MAX {
            bail!("etcd does not accept connections after {} s", START_MAX.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn puts(number: usize, mut connection: Connection, until: Instant) -> anyhow::Result<Vec<Duration>> {
    let mut value = report(Kind::Changed)?;
    let key = STANDARD.encode(format!("hosts/{number}"));
    let mut times = Vec::new();
    for sequence in 1.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        value.sequence = sequence;
        let put = Put { key: key.clone(), value: STANDARD.encode(serde_json::to_vec(&value)?) };
        post(&mut connection, "/v3/kv/put", serde_json::to_vec(&put)?).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}
