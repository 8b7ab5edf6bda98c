//! Text output; every function is pure and has a snapshot.

pub mod alert;
#[cfg(test)]
pub mod alert_tests;
pub mod approval;
pub mod audit;
pub mod builds;
pub mod certificate;
mod condition;
pub mod customer;
pub mod desired;
pub mod escrow;
pub mod event;
pub mod explanation;
pub mod golden;
pub mod guest;
pub mod guest_job;
mod hardware;
#[cfg(test)]
mod hardware_tests;
pub mod host;
pub mod host_state;
pub mod job;
pub mod login;
pub mod mute;
pub mod operator;
pub mod order;
#[cfg(test)]
mod person_tests;
pub mod policy;
pub mod preview;
pub mod protection;
pub mod receiver;
pub mod release;
pub mod rollout;
pub mod root_disk;
#[cfg(test)]
pub mod samples;
pub mod sparkline;
pub mod state;
pub mod storage;
mod table;
pub mod token;
mod tunnels;
mod updates;

use holdfast_protocol::time_text as time;

pub use table::{Field, Tone, clean, plain, table};
pub use time::age;

#[cfg(test)]
mod tests;
