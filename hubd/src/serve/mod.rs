//! The TLS listener for agents and operators.
//!
//! In: a bound listener, the TLS settings, the router. Out: requests that carry who their peer's certificate names. The
//! listener is [`net::server::listener`]; here are its times, and in [`admission`] how many connections each host, each
//! operator, each place and strangers together may have.

mod admission;
mod peer;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use net::server::{Listening, Times, listen};
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::admission::Admission;
pub use admission::{AdmittedConnection, STRANGERS_MAX};
pub use peer::presented;
pub use tls::{HostVerifier, TlsError, server_config};

/// A handshake costs half a millisecond; a peer that takes longer than this, or to begin, is not one.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// How long a strange peer may be silent between or within request heads.
const STRANGER_WAIT: Duration = Duration::from_secs(20);

/// The same for an agent: longer than the longest check-in is held, so that the connection is kept.
const AGENT_WAIT: Duration = Duration::from_secs(90);

/// How long requests under way may take when the hub stops.
const STOP_GRACE: Duration = Duration::from_secs(10);

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
    let Serving { listener, tls, router, connections_max, stop } = serving;
    let times = Times { handshake: HANDSHAKE_WAIT, connection: None, stop_grace: STOP_GRACE };
    let admission = Admission::new(connections_max);
    listen(listener, Listening { tls, router, admission, times, stop }).await;
}
