//! From a request on the wire to a call, and back; and the listener with TLS.
pub mod body;
pub mod entry;
pub mod listen;
pub mod params;
pub mod tls;
