//! Notices of a service to systemd, sent without waiting.
//!
//! In: what a service says of itself. Out: a datagram to systemd, where it takes one at once. Its queue is short, and a
//! program with one thread that waited for it would stand still with all its loops. Deliberately absent: sending again;
//! the caller knows what is still true then.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

pub use sd_notify::{NotifyState, watchdog_enabled};

/// What became of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is with systemd, or there is none.
    Now,
    Later,
}

/// Sends to systemd what it takes at once. Without systemd there is nothing to send.
pub fn send(state: &[NotifyState<'_>]) -> Sent {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return Sent::Now };
    let text: String = state.iter().map(|state| format!("{state}\n")).collect();
    match send_to(&socket, &text) {
        Ok(()) => Sent::Now,
        Err(error) => {
            tracing::debug!(%error, "systemd was not notified");
            Sent::Later
        }
    }
}

/// Sends without waiting. A name that begins with `@` is one without a file.
fn send_to(socket: &OsStr, text: &str) -> io::Result<()> {
    let to = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let from = UnixDatagram::unbound()?;
    from.set_nonblocking(true)?;
    from.send_to_addr(text.as_bytes(), &to).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_full_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let mut taken = 0;
        while send_to(path.as_os_str(), "STATUS=x\n").is_ok() {
            taken += 1;
        }
        let full = send_to(path.as_os_str(), "WATCHDOG=1\n").unwrap_err();
        assert!(taken > 0 && full.kind() == io::ErrorKind::WouldBlock, "{full}");
        let mut bytes = [0; 64];
        let length = systemd.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"STATUS=x\n");
        send_to(path.as_os_str(), "WATCHDOG=1\n").unwrap();
    }

    #[test]
    fn a_name_without_a_file_is_reached() {
        let name = format!("holdfast-test-{}", std::process::id());
        let at = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let systemd = UnixDatagram::bind_addr(&at).unwrap();
        send_to(OsStr::new(&format!("@{name}")), "READY=1\n").unwrap();
        let mut bytes = [0; 64];
        let length = systemd.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"READY=1\n");
    }
}
