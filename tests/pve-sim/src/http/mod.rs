//! The HTTPS listener, and requests as calls.
pub mod body;
pub mod entry;
pub mod listen;
pub mod params;
pub mod tls;
