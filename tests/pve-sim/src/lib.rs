//! A Proxmox VE that remembers.
//!
//! ```text
//!  listener   --> http::entry: login, route, rights, parameters --> call::* --> node::World (access, storage, guests)
//!                                    |                            '--> task::worker (long work) --> archive, power
//!                                    '-- schema: the table of calls and their checks
//! ```
//! It is built from the published rules (schema, privileges, notes) and checked against recordings of a genuine node by [`replay`]. It
//! shares no type with any client, so that a shared misreading cannot hide. Deliberately absent: virtual machines, clustering, firewall,
//! SDN.
#![forbid(unsafe_code)]

pub mod access;
pub mod archive;
pub mod backup_api;
pub mod call;
pub mod clock;
pub mod fail;
pub mod fault;
pub mod firewall;
pub mod folder_sizes;
pub mod guard;
pub mod guest;
pub mod http;
pub mod in_process;
pub mod node;
pub mod power;
pub mod replay;
pub mod round;
pub mod runtime;
pub mod schema;
pub mod sim;
pub mod state;
pub mod storage;
pub mod task;
pub mod wire;

pub use sim::{Builder, Handle, Opened, Sim, StartError};
