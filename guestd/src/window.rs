//! Quiesce window, from the request to the end.
//!
//! ```text
//! agent's answers ──┐
//! own clock ────────┼──▶ decide (pure) ──▶ wait │ quiesce │ say quiesced │ resume │ give up ──▶ run (does it)
//! marker, request ─────┘
//! ```
//!
//! Nothing that the agent says, or does not say, keeps a stack stopped: the bound is counted here, and the marker and its
//! timer outlive us.

pub mod calls;
pub mod decide;
pub mod run;
#[cfg(test)]
mod tests;
