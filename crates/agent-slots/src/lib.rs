//! The slots of the agent: which build runs, is tried, or failed.
//!
//! In: the state as root's file holds it, and one event. Out: the next state. The gate program (`gate/`) writes a state
//! before it acts on it. The agent only reads the state. Deliberately absent: files, clocks, signatures (`trust`).
//!
//! | module | what |
//! | --- | --- |
//! | [`state`] | the state, as it is stored |
//! | [`machine`] | the next state of a state and an event |
//! | [`offer`] | whether the agent fetches a release that the hub offers |
//! | [`start`] | which build a start runs |
//! | [`withdrawal`] | whether the build on trial is offered no more |
//! | [`health`] | the health of a running agent, and the verdict on a build on trial |
#![forbid(unsafe_code)]

pub mod health;
pub mod machine;
pub mod offer;
pub mod start;
pub mod state;
pub mod withdrawal;

pub use machine::{Event, Refusal, next};
pub use start::{NoBuild, Program, Sound, choose};
pub use state::{Build, FailReason, Failure, Moment, Slot, SlotsState, Trial, TrialReboots};

#[cfg(test)]
mod exhaustive;
