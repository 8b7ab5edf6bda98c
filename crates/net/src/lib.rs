//! The network layer of all programs: TLS, clients, servers, limits.
//!
//! | module | does | built with |
//! | --- | --- | --- |
//! | [`tls`] | pinned trust for clients, TLS 1.3 settings for servers | always |
//! | [`admission`] | which connections a listener keeps | always |
//! | [`rate`] | how often one peer may ask | always |
//! | [`client`] | calls to a pinned server, with bounded answers opened from their envelope | `client` |
//! | [`server`] | connections, envelope, request ids, bodies of a server | `server` |
//!
//! A program takes the half that it uses, so that a guest's controller links no server and the hub no client.
#![forbid(unsafe_code)]

pub mod admission;
#[cfg(feature = "client")]
pub mod client;
pub mod rate;
#[cfg(feature = "server")]
pub mod server;
pub mod tls;
