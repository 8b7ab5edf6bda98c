//! Guests: their configuration in the real `.conf` form, and the rules for changing it.
pub mod change;
pub mod config;
pub mod hot_net;
pub mod options;
pub mod rights;
pub mod shelf;
pub mod spec;
pub mod systemd;
