//! Connections: TLS on one port for everybody, with a client certificate for agents.
//!
//! In: a bound listener, the TLS settings, the router. Out: requests that carry who their peer's certificate names.
//! Every wait has an end and every number a bound; a connection beyond the bound waits in the kernel's queue. When
//! `stop` is told, nothing new is accepted, requests under way are finished, and after a grace the rest is cut.

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
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

pub use peer::presented;
pub use tls::{TlsError, provider, server_config};

use crate::domain::identity::Presented;

/// A handshake costs half a millisecond; a peer that takes longer than this is not one.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// Handshakes at a time. At half a millisecond each this many keep two cores busy for 64 ms.
const HANDSHAKES_MAX: usize = 256;

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
    /// What answers.
    pub router: Router,
    /// Connections at a time.
    pub connections_max: usize,
    /// Becomes true when the hub is to stop.
    pub stop: watch::Receiver<bool>,
}

/// Serves until it is told to stop.
pub async fn serve(serving: Serving) {
    let Serving { listener, tls, router, connections_max, mut stop } = serving;
    let acceptor = TlsAcceptor::from(tls);
    let (places, handshakes) =
        (Arc::new(Semaphore::new(connections_max)), Arc::new(Semaphore::new(HANDSHAKES_MAX)));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = stopped(&mut stop) => break,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                let (handshakes, stop) = (Arc::clone(&handshakes), stop.clone());
                connections.spawn(async move {
                    if let Some((stream, peer)) = shake_hands(stream, &acceptor, &handshakes).await {
                        converse(stream, peer, router, stop).await;
                    }
                    drop(place);
                });
            }
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
    // An error means that whoever would tell us is gone: then it is time, too.
    drop(stop.wait_for(|stop| *stop).await);
}

type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

async fn shake_hands(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    handshakes: &Semaphore,
) -> Option<(TlsStream, Option<Presented>)> {
    let shaking = async {
        let turn = handshakes.acquire().await.ok()?;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(action = "accept", result = "failed", error = %error);
        }
        let shaken = acceptor.accept(stream).await;
        drop(turn);
        match shaken {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::debug!(action = "handshake", result = "failed", error = %error);
                None
            }
        }
    };
    let stream = tokio::time::timeout(HANDSHAKE_WAIT, shaking).await.ok()??;
    let peer = stream.get_ref().1.peer_certificates().and_then(presented);
    Some((stream, peer))
}

async fn converse(
    stream: TlsStream,
    peer: Option<Presented>,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
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
