//! Isolation check of a scratch guest: host ports that must be closed.
//!
//! What comes in: the agent's endpoint. What goes out: which other ports of that address accept a connection. The host
//! keeps its own firewall rules, and a flush of them is not reported; a connection from in here shows it. Deliberately
//! absent: looking further than the host, which a guest that is not isolated must not do.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::time::timeout;

/// What every Proxmox host listens on at all its addresses: SSH and its own web server.
const HOST_PORTS: [u16; 2] = [22, 8006];

/// An open port answers at once; a filtered port never answers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The ports that let us in although none but the agent's should; empty when we are alone.
pub async fn reached(endpoint: &str, source: Option<IpAddr>) -> Vec<u16> {
    let host = endpoint.strip_prefix("https://").and_then(|rest| rest.parse::<SocketAddr>().ok());
    let Some(host) = host else { return Vec::new() };
    let mut reached = Vec::new();
    for port in HOST_PORTS.into_iter().filter(|port| *port != host.port()) {
        if accepts(SocketAddr::new(host.ip(), port), source).await {
            reached.push(port);
        }
    }
    reached
}

async fn accepts(address: SocketAddr, source: Option<IpAddr>) -> bool {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let Ok(socket) = socket else { return false };
    if let Some(source) = source
        && socket.bind(SocketAddr::new(source, 0)).is_err()
    {
        return false;
    }
    matches!(timeout(TIMEOUT, socket.connect(address)).await, Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn open_and_closed_ports_are_distinguished() {
        let open = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        assert!(accepts(open.local_addr().unwrap(), None).await);
        let shut = tokio::net::TcpSocket::new_v4().unwrap();
        shut.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        assert!(!accepts(shut.local_addr().unwrap(), None).await);
        assert_eq!(reached("no endpoint", None).await, Vec::<u16>::new());
    }
}
