//! The hub's side of the alert engine, without a store.
//!
//! | module | contents |
//! | --- | --- |
//! | [`context`] | the checked rules, and since when the hub listens |
//! | [`observed`] | conditions of a report, with their labels |
//! | [`notice_text`] | notices as messages for channels |
//! | [`sample`] | conditions that do not exist, for explanations |
//! | [`own`] | what is wrong with the hub itself, and with a host as the hub sees it |

pub mod context;
pub mod notice_text;
pub mod observed;
pub mod own;
pub mod sample;

pub use context::{AlertContext, HostOfScope};
pub use observed::{GuestLabels, ReportedConditions};
