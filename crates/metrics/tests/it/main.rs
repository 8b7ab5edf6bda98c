//! Tests of what is shipped for Prometheus and Grafana.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod board;
mod schema;
mod shipped;
