//! Network namespaces by name, and sockets inside them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::tool::{ip, ip_if_there};
use crate::runtime::error::RuntimeError;

const NAMESPACES: &str = "/run/netns";

/// Where a named namespace is to be found.
pub(super) fn path_of(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// Makes a namespace; one of the same name, which can only be left over, is replaced.
pub(super) fn create(name: &str) -> Result<(), RuntimeError> {
    remove(name)?;
    ip(&["netns", "add", name])?;
    ip(&["-n", name, "link", "set", "lo", "up"])?;
    Ok(())
}

/// Removes a namespace; none is fine.
pub(super) fn remove(name: &str) -> Result<(), RuntimeError> {
    if path_of(name).exists() {
        ip_if_there(&["netns", "delete", name])?;
    }
    Ok(())
}

/// The names of all namespaces that begin with a prefix.
pub(super) fn with_prefix(prefix: &str) -> Result<Vec<String>, RuntimeError> {
    let failed = || RuntimeError::system("listing", NAMESPACES);
    let entries = match std::fs::read_dir(NAMESPACES) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed())?.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Listens on an address inside a network namespace. Only the thread that binds the socket enters the namespace, and
/// that thread then ends. The socket stays in the namespace, whichever thread uses it.
pub fn listen_in_namespace(namespace: &Path, address: SocketAddr) -> Result<TcpListener, RuntimeError> {
    let path = namespace.to_owned();
    let bind = move || {
        let entrance = std::fs::File::open(&path)?;
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&entrance), Some(LinkNameSpaceType::Network))?;
        TcpListener::bind(address)
    };
    let failed = || RuntimeError::system("listening in the network namespace", namespace);
    let thread = std::thread::Builder::new().name("namespace".to_owned()).spawn(bind).map_err(failed())?;
    thread
        .join()
        .map_err(|_panic| io::Error::other("the binding thread panicked"))
        .flatten()
        .map_err(failed())
}
