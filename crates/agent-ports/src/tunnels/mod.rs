//! Tunnels of this host: services, metrics, probes, files.
//!
//! In: the settings of a tunnel. Out: one reading of it, and what root's service needs for a restart or a token. Each
//! question has a bound in time and bytes. Deliberately absent: what follows from a reading.
//!
//! | module | what it reaches |
//! | --- | --- |
//! | [`files`] | requests, results and tokens in the folder that root made |
//! | [`local_http`] | the metrics of a tunnel at the loopback |
//! | [`probe`] | the far end |
//! | [`systemctl`] | systemd, by its own program |

pub mod files;
pub mod local_http;
pub mod probe;
pub mod systemctl;

pub use files::{TunnelFileError, TunnelFiles};
pub use systemctl::Systemctl;
