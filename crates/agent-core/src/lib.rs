//! Decisions of the host agent, as pure functions over data.
//!
//! ```text
//! observed, records, document, policy ──▶ plan ──▶ gate ──▶ operation (spec, steps, journal events)
//! ```
//! | layer | modules |
//! | --- | --- |
//! | 1 | [`plan`], [`gate`], [`operation`]: pure decisions |
//! | 0 | [`model`]: the host as data, and the bounds |
//!
//! Deliberately absent: tokio, files, clocks, SQLite, HTTP. `agentd` observes, stores and performs.
#![forbid(unsafe_code)]

#[cfg(all(feature = "testing", not(any(debug_assertions, feature = "benchmarks"))))]
compile_error!(
    "the feature `testing` is never built for release: name the packages to build, without `harness` (`cargo xtask package`)"
);

pub mod gate;
pub mod model;
pub mod operation;
pub mod plan;
