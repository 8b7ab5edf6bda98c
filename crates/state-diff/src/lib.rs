//! What changed between two snapshots of state.
//!
//! In: one host, before and after. Out: what of it and of its guests is another, with the direction where there is one:
//! better, worse, or only different. Only what is so is compared, not when it was seen. Deliberately absent: input and
//! output, a clock, and the two documents, of which the caller passes one host at a time.
//!
//! | module | contents |
//! | --- | --- |
//! | [`change`] | one change, and its words |
//! | [`comparison`] | all changes between two snapshots, the worst first |
//! | `host`, `guest`, `protection`, `condition` | what is compared of each |
//! | `flat` | documents as flat fields |
#![forbid(unsafe_code)]

pub mod change;
pub mod comparison;
mod condition;
mod flat;
mod guest;
mod host;
mod protection;

pub use change::{Area, Change, Direction};
pub use comparison::{Comparison, GuestChanges, HostChanges, Presence, Side, Totals};
pub use host::compare_hosts;

#[cfg(test)]
mod tests;
