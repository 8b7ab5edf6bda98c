//! The hub's HTTP API as a table of calls.

pub mod calls;
pub mod openapi;
