//! The task that serves guests' connections.
//!
//! What comes in: addresses of the guests' bridge, the certificate, the router, the addresses of known guests. What goes out:
//! requests with the connection's two addresses in their extensions. Every wait has an end and every number a bound:
//! connections of each guest and of strangers ([`admit`]), how often one connects, the time for a handshake, for a request's
//! head, for a whole connection. Nothing is spent on TLS before the peer began to speak it. Deliberately absent: who a guest
//! is; that is asked of its token, in `api`.

mod admit;
pub mod guests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use self::admit::{Admit, CONNECTIONS_ALL, GuestSlot};
use self::guests::KnownAddresses;
use super::stop::Stop;
use crate::api::Peer;
use crate::port::clock::Clock;
use crate::port::store::Store;

/// A guest on the same box shakes hands in milliseconds. It begins to speak within this, too.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// The same for a request's head; it also ends a connection that idles.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// No connection lives longer; a controller that needs more opens another.
const CONNECTION_MAX: Duration = Duration::from_secs(600);
/// What runs when the agent stops may finish within this.
const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// After an accept that failed (descriptors used up) the next one waits.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the agent cannot listen.
#[derive(Debug, thiserror::Error)]
#[error(
    "the local API cannot listen on {address}: is it an address of this box's guest bridge, and is the port free?"
)]
pub struct ListenError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// The bound addresses.
#[derive(Debug)]
pub struct Listeners(Vec<TcpListener>);

impl Listeners {
    /// Binds all addresses, or none.
    ///
    /// # Errors
    /// [`ListenError`].
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, ListenError> {
        let mut listeners = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let listener = TcpListener::bind(address).await;
            listeners.push(listener.map_err(|source| ListenError { address, source })?);
        }
        Ok(Self(listeners))
    }

    /// Binds all addresses, or none, whether the box has them yet or not.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn bind_ahead(addresses: &[SocketAddr]) -> Result<Self, ListenError> {
        let bind = |address: SocketAddr| -> io::Result<TcpListener> {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            rustix::net::sockopt::set_ip_freebind(&socket, true)?;
            socket.bind(address)?;
            socket.listen(CONNECTIONS_ALL)
        };
        let bound =
            addresses.iter().map(|&address| bind(address).map_err(|source| ListenError { address, source }));
        Ok(Self(bound.collect::<Result<_, _>>()?))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where they are bound.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.0.iter().map(TcpListener::local_addr).collect()
    }
}

/// What a listener needs.
pub struct Serving {
    /// Where connections come from.
    pub listeners: Listeners,
    pub tls: Arc<ServerConfig>,
    pub router: Router,
    /// Who has connections of its own.
    pub known: watch::Receiver<Arc<KnownAddresses>>,
    /// Is told who could not be heard.
    pub store: Store,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
}

#[derive(Clone)]
struct Server {
    tls: TlsAcceptor,
    router: Router,
    admit: Arc<Admit>,
}

/// Serves until the agent stops.
pub async fn run(serving: Serving, stop: Stop) {
    let Serving { listeners, tls, router, known, store, clock } = serving;
    let server =
        Server { tls: TlsAcceptor::from(tls), router, admit: Arc::new(Admit::new(known, store, clock)) };
    let mut loops = JoinSet::new();
    for listener in listeners.0 {
        loops.spawn(accept(listener, server.clone(), stop.clone()));
    }
    while loops.join_next().await.is_some() {}
}

async fn accept(listener: TcpListener, server: Server, mut stop: Stop) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.requested() => break,
            accepted = listener.accept() => accepted,
            Some(_ended) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, from)) => match server.admit.admit(from.ip()) {
                Ok((slot, end)) => {
                    let (server, stop) = (server.clone(), stop.clone());
                    connections.spawn(async move {
                        tokio::select! {
                            biased;
                            () = end.notified() => tracing::debug!(%from, "connection made room for another"),
                            () = serve(server, stream, from, &slot, stop) => {}
                        }
                        drop(slot);
                    });
                }
                Err(why) => tracing::debug!(%from, %why, "connection refused"),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                server.admit.was_away();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL_MAX, drained).await.is_err() {
        tracing::info!("guests' connections were cut off at the stop");
    }
}

/// A connection on which TLS is spoken. Its first bytes are looked at where they lie, before anything is spent on it.
async fn shake_hands(
    tls: &TlsAcceptor,
    stream: TcpStream,
    slot: &GuestSlot,
) -> io::Result<Option<TlsStream<TcpStream>>> {
    let mut first = [0; 3];
    let there = stream.peek(&mut first).await?;
    if !holdfast_tls::begins_tls(first.get(..there).unwrap_or_default()) {
        return Ok(None);
    }
    slot.speaks();
    tls.accept(stream).await.map(Some)
}

async fn serve(server: Server, stream: TcpStream, from: SocketAddr, slot: &GuestSlot, mut stop: Stop) {
    let Ok(to) = stream.local_addr() else { return };
    let shaken = tokio::time::timeout(HANDSHAKE_MAX, shake_hands(&server.tls, stream, slot)).await;
    let stream = match shaken {
        Ok(Ok(Some(stream))) => stream,
        Ok(Ok(None)) => return tracing::debug!(%from, "no TLS is spoken"),
        Ok(Err(error)) => return tracing::debug!(%from, %error, "handshake failed"),
        Err(_) => return tracing::debug!(%from, "handshake took too long"),
    };
    let peer = Peer { from: from.ip(), to };
    let router = server.router;
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.requested() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = tokio::time::sleep(CONNECTION_MAX) => return tracing::debug!(%from, "connection is too old"),
    };
    if let Err(error) = ended {
        tracing::debug!(%from, %error, "connection broke");
    }
}

#[cfg(test)]
mod tests;
