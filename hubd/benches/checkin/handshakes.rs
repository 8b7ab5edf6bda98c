//! Bare TLS handshakes with the hub's certificates, whole and resumed.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use rustls::HandshakeKind;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::echo;
use crate::fleet::Fleet;
use crate::hosts::dial;
use crate::server::{Server, input_ends};

/// Handshakes under way at a time: as many as a hub lets in after a crash.
const AT_ONCE: usize = 1024;

/// Whether a client may resume its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tickets {
    /// As at the hub.
    No,
    Yes,
}

/// Accepts connections, writes a byte after the handshake, and waits for their end.
pub async fn serve(folder: &Path, listen: SocketAddr, tickets: Tickets) -> anyhow::Result<()> {
    let mut tls = rustls::ServerConfig::clone(&*echo::tls(folder)?);
    if tickets == Tickets::Yes {
        tls.send_tls13_tickets = 1;
        tls.ticketer = rustls::crypto::ring::Ticketer::new()?;
    }
    let (acceptor, listener) = (TlsAcceptor::from(Arc::new(tls)), TcpListener::bind(listen).await?);
    println!("{}", listener.local_addr()?);
    let accept = async {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            connections.spawn(greet(acceptor.clone(), stream));
        }
    };
    tokio::select! {
        result = accept => result,
        () = input_ends() => Ok(()),
    }
}

async fn greet(acceptor: TlsAcceptor, stream: TcpStream) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    stream.write_all(b"!").await?;
    stream.read_u8().await.map(drop)
}

/// The server's CPU for each handshake, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub whole_us: f64,
    pub resumed_us: f64,
}

/// Whole handshakes with a server that gives no tickets, and resumed ones with a server that does.
pub async fn measure(fleet: &Fleet, folder: &Path) -> anyhow::Result<Costs> {
    let server = Server::start("handshakes", folder).await?;
    let whole_us = all(&server, &fleet.members, HandshakeKind::Full).await?;
    drop(server);
    let clients: Vec<_> = fleet.members.iter().map(|member| resuming(member)).collect();
    let server = Server::start("tickets", folder).await?;
    all(&server, &clients, HandshakeKind::Full).await?;
    let resumed_us = all(&server, &clients, HandshakeKind::Resumed).await?;
    Ok(Costs { whole_us, resumed_us })
}

fn resuming(member: &rustls::ClientConfig) -> Arc<rustls::ClientConfig> {
    let mut client = member.clone();
    client.resumption = Resumption::in_memory_sessions(2);
    Arc::new(client)
}

/// All connections are held until the last handshake, as a hub holds them.
async fn all(
    server: &Server,
    clients: &[Arc<rustls::ClientConfig>],
    kind: HandshakeKind,
) -> anyhow::Result<f64> {
    let before = server.cpu_s()?;
    let (mut tasks, mut held) = (JoinSet::new(), Vec::with_capacity(clients.len()));
    for (number, client) in clients.iter().enumerate() {
        if tasks.len() == AT_ONCE {
            held.push(tasks.join_next().await.context("a task")???);
        }
        tasks.spawn(once(number, server.address, Arc::clone(client), kind));
    }
    while let Some(done) = tasks.join_next().await {
        held.push(done??);
    }
    Ok((server.cpu_s()? - before) * 1e6 / held.len() as f64)
}

async fn once(
    number: usize,
    address: SocketAddr,
    client: Arc<rustls::ClientConfig>,
    expected: HandshakeKind,
) -> anyhow::Result<TlsStream<TcpStream>> {
    let stream = dial(number, address).await?;
    let mut stream = TlsConnector::from(client).connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    // The ticket comes before this byte.
    stream.read_u8().await?;
    let kind = stream.get_ref().1.handshake_kind();
    if kind != Some(expected) {
        bail!("the handshake was {kind:?}, not {expected:?}");
    }
    Ok(stream)
}
