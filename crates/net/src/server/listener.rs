//! The listener: accepts, shakes hands, serves, and stops.
//!
//! Input: a bound listener, TLS settings, a router, and an [`Admission`] that decides which connections are kept.
//! Output: requests that carry the admission's data about their peer. Every wait has a time limit. No work is done for
//! TLS before the peer began to speak it, and a handshake never waits for a slot that a stalled one could hold. On
//! `stop`, nothing new is accepted, requests under way are finished, and after a grace period the rest is closed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Extensions;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

/// A request's head, and what hyper reads ahead.
const BUFFER_BYTES: usize = 16 * 1024;

/// After a failed accept (such as without free file descriptors) the loop pauses this long; the next would fail as
/// well.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Ends a connection that makes room for another.
pub type CloseSignal = Arc<Notify>;

/// Which connections a listener keeps, and what their requests carry.
pub trait Admission: Clone + Send + Sync + 'static {
    /// One connection. Dropped, its slot is free.
    type Connection: Send + Sync + 'static;
    /// Why a connection is not kept.
    type Refusal: fmt::Display + Send;

    /// Takes a slot for a new connection, and closes the connection that makes room for it.
    ///
    /// # Errors
    /// When there is no slot.
    fn admit(&self, from: IpAddr) -> Result<(Self::Connection, CloseSignal), Self::Refusal>;

    /// The peer began to speak TLS.
    fn speaks(&self, connection: &Self::Connection);

    /// The handshake is done, with these client certificates.
    ///
    /// # Errors
    /// When the peer that shows itself has no slot left.
    fn known(
        &self,
        connection: &Self::Connection,
        ends: Ends,
        certificates: &[CertificateDer<'_>],
    ) -> Result<ConnectionSettings, Self::Refusal>;

    /// A connection could not be accepted, such as without free file descriptors.
    fn accept_failed(&self);
}

/// The two ends of a connection, as the kernel reports them.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub from: SocketAddr,
    /// Which address of ours was called.
    pub to: SocketAddr,
}

/// How a connection is served.
#[derive(Debug)]
pub struct ConnectionSettings {
    /// How long the peer may be silent between or within request heads.
    pub silence_max: Duration,
    /// The extensions that each request carries.
    pub extensions: Extensions,
}

/// The times of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// For a handshake, from the connection's first moment.
    pub handshake: Duration,
    /// The limit for a whole connection, where it has one.
    pub connection: Option<Duration>,
    /// The limit for requests under way at the stop.
    pub stop_grace: Duration,
}

/// The parts of a listener.
#[derive(Clone)]
pub struct Listening<A> {
    pub tls: Arc<rustls::ServerConfig>,
    pub router: Router,
    pub admission: A,
    pub times: Times,
    /// Becomes true when the program is to stop.
    pub stop: watch::Receiver<bool>,
}

/// Serves until `stop`.
pub async fn listen<A: Admission>(listener: TcpListener, listening: Listening<A>) {
    let mut stop = listening.stop.clone();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => accepted,
            Some(_ended) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, from)) => match listening.admission.admit(from.ip()) {
                Ok((connection, end)) => {
                    let listening = listening.clone();
                    connections.spawn(async move {
                        tokio::select! {
                            biased;
                            () = end.notified() => tracing::debug!(action = "serve", result = "made room", %from),
                            () = serve(&listening, stream, from, &connection) => {}
                        }
                    });
                }
                Err(refusal) => tracing::debug!(action = "accept", result = "refused", %from, %refusal),
            },
            Err(error) => {
                tracing::warn!(action = "accept", result = "failed", error = %error);
                listening.admission.accept_failed();
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(listening.times.stop_grace, finished).await.is_err() {
        tracing::warn!(action = "stop", result = "cut", connections = connections.len());
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped, which also means stop.
    drop(stop.wait_for(|stop| *stop).await);
}

/// One connection, from its first byte to its end.
async fn serve<A: Admission>(
    listening: &Listening<A>,
    stream: TcpStream,
    from: SocketAddr,
    connection: &A::Connection,
) {
    let Ok(to) = stream.local_addr() else { return };
    let accepted = accept_tls(listening, stream, connection);
    let Some(stream) = tokio::time::timeout(listening.times.handshake, accepted).await.ok().flatten() else {
        tracing::debug!(action = "handshake", result = "none", %from);
        return;
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    match listening.admission.known(connection, Ends { from, to }, certificates) {
        Ok(settings) => serve_connection(listening, stream, from, settings).await,
        Err(refusal) => tracing::debug!(action = "accept", result = "refused", %from, %refusal),
    }
}

/// The first bytes are peeked at in the socket buffer, before any work is done for the peer.
async fn accept_tls<A: Admission>(
    listening: &Listening<A>,
    stream: TcpStream,
    connection: &A::Connection,
) -> Option<TlsStream<TcpStream>> {
    let mut first = [0; 3];
    let there = stream.peek(&mut first).await.ok()?;
    if !crate::tls::begins_tls(first.get(..there)?) {
        return None;
    }
    listening.admission.speaks(connection);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(action = "accept", result = "failed", error = %error);
    }
    let accepted = TlsAcceptor::from(Arc::clone(&listening.tls)).accept(stream).await;
    accepted
        .inspect_err(|error| tracing::debug!(action = "handshake", result = "failed", error = %error))
        .ok()
}

async fn serve_connection<A>(
    listening: &Listening<A>,
    stream: TlsStream<TcpStream>,
    from: SocketAddr,
    ConnectionSettings { silence_max, extensions }: ConnectionSettings,
) {
    let router = listening.router.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().extend(extensions.clone());
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(silence_max)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut stop = listening.stop.clone();
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = too_old(listening.times.connection) => return tracing::debug!(action = "serve", result = "too old", %from),
    };
    if let Err(error) = ended {
        tracing::debug!(action = "serve", result = "failed", %from, error = %error);
    }
}

async fn too_old(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}
