//! Guests and the rules for changing them.
pub mod change;
pub mod config;
pub mod config_folder;
pub mod hot_net;
pub mod options;
pub mod rights;
pub mod spec;
pub mod systemd;
