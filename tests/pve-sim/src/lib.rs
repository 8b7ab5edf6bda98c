//! A Proxmox VE that remembers: for tests, and for trying Holdfast without one.
//!
//! It shares no types with Holdfast's own client, so a shared misreading cannot hide.
#![forbid(unsafe_code)]

pub mod archive;
pub mod runtime;
