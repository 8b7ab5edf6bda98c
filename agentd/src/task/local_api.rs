//! Takes guests' connections: binds, shakes hands, serves, and lets nobody hold up anybody else.
//!
//! What comes in: addresses of the guests' bridge, the certificate, the router. What goes out: requests with the
//! connection's two addresses in their extensions. Every wait has an end and every number a bound: seats per address and
//! together, how often an address connects, the time for a handshake, for a request's head, for a whole connection.
//! Deliberately absent: who a guest is; that is asked of its token, in `api`.

use std::io;
use std::net::{IpAddr, SocketAddr};
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
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::stop::Stop;
use crate::api::Peer;
use crate::api::rate::Rates;
use crate::api::seats::{Seat, Seats};
use crate::port::clock::Clock;

/// Eight for each guest, as `GET /v1/self` says.
pub const CONNECTIONS_EACH: u32 = crate::api::CONNECTIONS_EACH;
/// A hundred guests with all their seats taken, and room. Each costs about 40 KiB with its TLS buffers: 40 MiB at worst.
/// Handshakes under way have no narrower bound of their own: one that stalls costs no CPU, and a shared bound would let the
/// guests that stall hold up those that do not.
const CONNECTIONS_ALL: u32 = 1024;
/// A handshake costs the agent about as much CPU as ten requests, so an address begins ten a second at most. A controller
/// keeps its connection for ten minutes, and each of a person's commands opens one.
const CONNECTIONS_PER_MINUTE: u32 = 600;
/// A guest on the same box shakes hands in milliseconds.
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

#[derive(Clone)]
struct Server {
    tls: TlsAcceptor,
    router: Router,
    seats: Seats,
    opened: Arc<Rates<IpAddr>>,
    clock: Arc<dyn Clock>,
}

impl Server {
    /// A seat, where this address has one and does not connect too often; or why not.
    fn admit(&self, from: IpAddr) -> Result<Seat, &'static str> {
        self.opened.take(from, self.clock.monotonic()).map_err(|_| "its address connects too often")?;
        self.seats.take(from).ok_or("its address has too many")
    }
}

/// Serves until the agent stops.
pub async fn run(
    listeners: Listeners,
    tls: Arc<ServerConfig>,
    router: Router,
    clock: Arc<dyn Clock>,
    stop: Stop,
) {
    let server = Server {
        tls: TlsAcceptor::from(tls),
        router,
        seats: Seats::new(CONNECTIONS_EACH, CONNECTIONS_ALL),
        opened: Arc::new(Rates::per_minute(CONNECTIONS_PER_MINUTE)),
        clock,
    };
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
            Ok((stream, from)) => match server.admit(from.ip()) {
                Ok(seat) => {
                    let (server, stop) = (server.clone(), stop.clone());
                    connections.spawn(async move {
                        serve(server, stream, from, stop).await;
                        drop(seat);
                    });
                }
                Err(why) => tracing::debug!(%from, why, "connection refused"),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL_MAX, drained).await.is_err() {
        tracing::info!("guests' connections were cut off at the stop");
    }
}

async fn serve(server: Server, stream: TcpStream, from: SocketAddr, mut stop: Stop) {
    let Ok(to) = stream.local_addr() else { return };
    let shaken = tokio::time::timeout(HANDSHAKE_MAX, server.tls.accept(stream)).await;
    let stream = match shaken {
        Ok(Ok(stream)) => stream,
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
