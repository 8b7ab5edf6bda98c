//! Firewall configuration: kept and shown, never in force.
//!
//! In: files in the real form (`STATE/etc/firewall/301.fw`, `cluster.fw`, `host.fw`). Out: [`Config`] and the text again. The recorded node's
//! firewall daemon does not run, and the API never says whether a rule is in force; here none is. Deliberately absent: security groups, macros,
//! and what rules mean.
pub mod address;
pub mod config;
pub mod file;

pub use config::{Config, Entry, IpSet, Rule};
