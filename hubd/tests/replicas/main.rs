//! Several hubs as processes on one PostgreSQL server.
//!
//! In: agents with certificates of their own, operators, a receiver of alerts, and faults. Out: whether what was answered
//! is durable, whether each alarm came once, and whether held check-ins were woken. The server is this program's own, since
//! faults end it.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod chaos;
mod fault;
mod fleet;
mod hubs;
mod judge;
#[expect(dead_code, reason = "the other test program uses the rest of it")]
#[path = "../../../tests/support/postgres.rs"]
mod postgres_server;
mod proxy;
mod receiver;
mod two_hubs;
#[expect(dead_code, reason = "the other test program uses the rest of it")]
#[path = "../it/world.rs"]
mod world;
