//! The alert engine, as pure functions over data.
//!
//! ```text
//! signal ──▶ next ──▶ rows that changed, log entries, notices ──▶ outbox (one transaction of the hub)
//! ```
//! The words and their meanings are Alertmanager's: group, route, receiver, inhibition, silence, repeat. One [`Scope`]
//! is one host, or the hub itself. A signal for a scope touches the rows of this scope alone, so its cost does not grow
//! with the fleet. Every suppression is a log entry with its reason, and one function decides on all of them:
//! [`should_deliver`].
//!
//! | module | contents |
//! | --- | --- |
//! | [`signal`] | what comes in |
//! | [`reduce`] | the reducer |
//! | [`deliver`] | the one decision whether a receiver hears of an incident now |
//! | [`suppression`] | the reasons why something is not sent |
//! | [`state`], [`incident`], [`ending`], [`group`], [`group_key`] | rows that a store keeps |
//! | [`rules`], [`label`], [`quiet`], [`silence`], [`name`] | what operators configure |
//! | [`setting`] | what a decision depends on besides the state |
//! | [`notice`], [`log`] | what goes out |
//! | [`digest`], [`outbox`] | notices that are combined or cancelled before they are sent |
//! | [`explain`] | which route an incident would take, and what would mute it |
//!
//! Deliberately absent: a clock, a store, channels and their texts. Labels are matched by `=` and `!=` alone; regular
//! expressions would make a rule hard to check and are not worth a library here.
#![forbid(unsafe_code)]

pub mod deliver;
pub mod digest;
pub mod ending;
pub mod explain;

pub mod group;
pub mod group_key;
pub mod incident;
pub mod label;
pub mod log;
pub mod name;
pub mod notice;
pub mod outbox;

pub mod quiet;
pub mod reduce;
pub mod rules;
pub mod setting;
pub mod signal;
pub mod silence;
pub mod state;
pub mod suppression;
mod time;

pub use deliver::{Purpose, Verdict, View, should_deliver};
pub use ending::Ending;
pub use incident::{Incident, IncidentId, Scope};
pub use notice::{Notice, Reason};
pub use reduce::{Decision, next};
pub use rules::{Rules, Ruleset};
pub use setting::Setting;
pub use signal::{HostState, Signal};
pub use silence::Silence;
pub use state::ScopeState;
pub use suppression::Suppression;
