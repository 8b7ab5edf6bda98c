//! The TLS listener for agents and operators.
//!
//! In: a bound listener, the TLS settings, the router. Out: requests that carry who their peer's certificate names.
//! Every wait has an end and every number a bound: connections of each host, of each operator, of each place and of strangers
//! together ([`admit`]). Nothing is spent on TLS before the peer began to speak it, and handshakes wait for no turn that one
//! who stalls could hold. On `stop`, nothing new is accepted, requests under way are finished, and after a grace the
//! rest is cut.

mod admission;
mod peer;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use self::admission::Admission;
pub use admission::{AdmittedConnection, STRANGERS_MAX};
pub use peer::presented;
pub use tls::{TlsError, provider, server_config};

use crate::domain::identity::Presented;

/// A handshake costs half a millisecond; a peer that takes longer than this, or to begin, is not one.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// How long a strange peer may be silent between or within request heads.
const STRANGER_WAIT: Duration = Duration::from_secs(20);

/// The same for an agent: longer than the longest check-in is held, so that the connection is kept.
const AGENT_WAIT: Duration = Duration::from_secs(90);

/// A request's head, and what hyper reads ahead.
const BUFFER_BYTES: usize = 16 * 1024;

/// How long requests under way may take when the hub stops.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// After a failed accept (no more files, say) the loop rests this long; the next would fail as well.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What a listener needs.
pub struct Serving {
    /// Where connections come from.
    pub listener: TcpListener,
    /// The TLS settings.
    pub tls: Arc<rustls::ServerConfig>,
    pub router: Router,
    /// Connections at a time.
    pub connections_max: usize,
    /// Becomes true when the hub is to stop.
    pub stop: watch::Receiver<bool>,
}

/// Serves until `stop`.
pub async fn serve(serving: Serving) {
    let Serving { listener, tls, router, connections_max, mut stop } = serving;
    let acceptor = TlsAcceptor::from(tls);
    let admit = Admission::new(connections_max);
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => break,
        };
        match accepted {
            Ok((stream, from)) => match admit.admit(from.ip()) {
                Ok((visitor, end)) => {
                    let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
                    connections.spawn(async move {
                        tokio::select! {
                            biased;
                            () = end.notified() => tracing::debug!(action = "serve", result = "made room", %from),
                            () = attend(stream, visitor, &acceptor, router, stop) => {}
                        }
                    });
                }
                Err(refusal) => tracing::debug!(action = "accept", result = "refused", %from, %refusal),
            },
            Err(error) => {
                tracing::warn!(action = "accept", result = "failed", error = %error);
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_GRACE, finished).await.is_err() {
        tracing::warn!(action = "stop", result = "cut", connections = connections.len());
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means stop.
    drop(stop.wait_for(|stop| *stop).await);
}

type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// One connection, from its first byte to its end.
async fn attend(
    stream: TcpStream,
    visitor: AdmittedConnection,
    acceptor: &TlsAcceptor,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let shaken = tokio::time::timeout(HANDSHAKE_WAIT, shake_hands(stream, &visitor, acceptor)).await;
    let Some((stream, peer)) = shaken.ok().flatten() else { return };
    if let Some(Err(refusal)) = peer.map(|peer| visitor.is_host(peer.host)) {
        tracing::debug!(action = "accept", result = "refused", host = ?peer, %refusal);
        return;
    }
    converse(stream, (peer, visitor), router, stop).await;
}

async fn shake_hands(
    stream: TcpStream,
    visitor: &AdmittedConnection,
    acceptor: &TlsAcceptor,
) -> Option<(TlsStream, Option<Presented>)> {
    let mut first = [0; 3];
    let there = stream.peek(&mut first).await.ok()?;
    if !holdfast_tls::begins_tls(first.get(..there)?) {
        return None;
    }
    visitor.speaks();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(action = "accept", result = "failed", error = %error);
    }
    match acceptor.accept(stream).await {
        Ok(stream) => {
            let peer = stream.get_ref().1.peer_certificates().and_then(presented);
            Some((stream, peer))
        }
        Err(error) => {
            tracing::debug!(action = "handshake", result = "failed", error = %error);
            None
        }
    }
}

async fn converse(
    stream: TlsStream,
    (peer, visitor): (Option<Presented>, AdmittedConnection),
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        request.extensions_mut().insert(visitor.clone());
        router.clone().oneshot(request.map(Body::new))
    });
    let wait = if peer.is_some() { AGENT_WAIT } else { STRANGER_WAIT };
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(wait)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(action = "converse", result = "failed", error = %error);
    }
}
