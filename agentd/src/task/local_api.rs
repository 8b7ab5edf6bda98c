//! The task that serves guests' connections.
//!
//! In: addresses of the guests' bridge, the certificate, the router, the addresses of known guests. Out: requests with
//! the connection's two addresses in their extensions. The listener is [`net::server::listener`]; this module has its
//! addresses and timeouts, and [`admit`] decides which connections it keeps. Deliberately absent: which guest a caller
//! is; `api` finds that from its token.

mod admit;
pub mod guests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use net::server::{Listening, Times, listen};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::admit::{Admit, CONNECTIONS_ALL};
use self::guests::KnownAddresses;
use super::stop::Stop;
use crate::port::clock::Clock;
use crate::port::store::Store;

/// A guest on the same host completes the handshake in milliseconds. It must begin to send within this time, too.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// The same for a request's head; it also ends a connection that idles.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// No connection lives longer; a controller that needs more opens another.
const CONNECTION_MAX: Duration = Duration::from_secs(600);
/// What runs when the agent stops may finish within this.
const STOP_GRACE: Duration = Duration::from_secs(2);

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

    /// Binds all addresses, or none, whether the host has them yet or not.
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
    /// The addresses that have connections of their own.
    pub known: watch::Receiver<Arc<KnownAddresses>>,
    /// Records which guests could not be heard.
    pub store: Store,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Serves until the agent stops.
pub async fn run(serving: Serving, stop: Stop) {
    let Serving { listeners, tls, router, known, store, clock } = serving;
    let times = Times { handshake: HANDSHAKE_MAX, connection: Some(CONNECTION_MAX), stop_grace: STOP_GRACE };
    let admission = Admit::new(known, store, clock);
    let listening = Listening { tls, router, admission, times, stop: stop.signal() };
    let mut loops = JoinSet::new();
    for listener in listeners.0 {
        loops.spawn(listen(listener, listening.clone()));
    }
    while loops.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests;
