//! Caller identification: peer credentials of the socket, or sudo.
//!
//! Socket: standard input is the connection, and the kernel reports who opened it. Sudo: the process already runs as
//! root, and the allow-list of `sudoers/` decided who may start it; the kernel's login uid is written to the journal.

use rustix::fs::FileType;
use rustix::net::AddressFamily;
use rustix::net::sockopt::{socket_domain, socket_peercred};

use crate::policy::Policy;
use crate::procfs;
use crate::reply::{Refusal, refusal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// By the socket, as this uid.
    Socket(u32),
    /// As root, with the login uid of the kernel; services have none.
    Root(Option<u32>),
}

/// Checks standard input. The peer of a connection must be root or the one uid of the policy.
pub fn identify(policy: &Policy) -> Result<Caller, Refusal> {
    let input = std::io::stdin();
    let failed = |error| refusal!(Peer, "cannot stat standard input: {error}");
    let stat = rustix::fs::fstat(&input).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        let login_uid = procfs::attribute("/proc/self/loginuid").and_then(|text| text.parse().ok());
        return Ok(Caller::Root(login_uid.filter(|uid| *uid != u32::MAX)));
    }
    // Checked before the credentials: a socket of another kind, or without a peer, has no credentials.
    let connected = rustix::net::getpeername(&input).is_ok();
    if !connected || socket_domain(&input).map_err(failed)? != AddressFamily::UNIX {
        return Err(refusal!(Peer, "standard input is a socket, but not a connected Unix socket"));
    }
    let uid = socket_peercred(&input).map_err(failed)?.uid.as_raw();
    if uid == 0 || uid == policy.caller_uid {
        return Ok(Caller::Socket(uid));
    }
    Err(refusal!(Peer, "uid {uid} may not use the helper; the policy allows uid {}", policy.caller_uid))
}
