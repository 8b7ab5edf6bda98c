//! The power-loss suite: a disk that drops unsynced changes.
//!
//! In: stories, and which of their changes the power goes before. Out: what does not hold. Every change of a file is a
//! place where the power can go; what was not synced is then lost, or all there, or there in part.

pub mod files;
pub mod first_start;
pub mod hub;
mod hub_client;
mod hub_requests;
pub mod server;
pub mod suite;
