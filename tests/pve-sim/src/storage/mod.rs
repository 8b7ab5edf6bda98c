//! Storages and their volumes.
pub mod backup_client;
pub mod backup_key;
pub mod backup_server;
pub mod config;
pub mod content;
pub mod copy;
pub mod server_names;
pub mod volume;
