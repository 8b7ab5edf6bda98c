//! A guest with one connection, and a busy neighbour.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// As many as one guest may have.
const FLOOD: u32 = agentd::api::CONNECTIONS_EACH;

/// The address of a server, and the identity that it must prove.
#[derive(Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub connector: TlsConnector,
}

pub struct Wire {
    stream: TlsStream<TcpStream>,
    request: Vec<u8>,
    read: Vec<u8>,
}

impl Wire {
    pub async fn open(listener: &Endpoint, from: IpAddr, token: &str) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        let stream = socket.connect(listener.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(listener.address.ip().into());
        let request = format!(
            "GET /v1/self HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\r\n",
            listener.address
        );
        let stream = listener.connector.connect(name, stream).await?;
        Ok(Self { stream, request: request.into_bytes(), read: Vec::with_capacity(4096) })
    }

    /// Sends one request and returns the status.
    pub async fn ask(&mut self) -> Result<u16> {
        self.stream.write_all(&self.request).await?;
        self.read.clear();
        loop {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                bail!("the server hung up");
            }
            let Some(head) = self.read.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let text = std::str::from_utf8(self.read.get(..head).context("a head")?)?;
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.context("an answer without a length")?.parse()?;
            if self.read.len() >= head + 4 + length {
                return Ok(text.get(9..12).context("a status")?.parse()?);
            }
        }
    }

    /// Sends one request and returns how long it took.
    pub async fn ask_for_200(&mut self) -> Result<Duration> {
        let began = Instant::now();
        match self.ask().await? {
            200 => Ok(began.elapsed()),
            other => bail!("{other}: {}", String::from_utf8_lossy(&self.read)),
        }
    }
}

/// A neighbour that calls again as soon as it is answered.
pub struct Flood {
    tasks: JoinSet<Result<()>>,
    over: Arc<AtomicBool>,
}

impl Flood {
    pub async fn start(listener: &Endpoint, from: IpAddr, token: &str) -> Result<Self> {
        let (mut tasks, over) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
        for _ in 0..FLOOD {
            let mut wire = Wire::open(listener, from, token).await?;
            // It has sent a request before anything is measured.
            wire.ask().await?;
            let over = Arc::clone(&over);
            tasks.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    wire.ask().await?;
                }
                Ok(())
            });
        }
        Ok(Self { tasks, over })
    }

    pub async fn end(mut self) -> Result<()> {
        self.over.store(true, Ordering::Relaxed);
        while let Some(task) = self.tasks.join_next().await {
            task??;
        }
        Ok(())
    }
}
