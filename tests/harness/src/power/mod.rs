//! The power-loss suite: a disk that drops unsynced changes.
//!
//! Every change of a file is a place where the power can go; what was not synced is then lost, or all there, or there in
//! part. The disk itself is `tests/power-disk`; a guest's windows are walked by `guestd/tests/it/power_loss`.
//!
//! | module | whose power goes |
//! | --- | --- |
//! | [`suite`] | an agent's in a story, once and again during recovery |
//! | [`first_start`] | an agent's while it makes its database |
//! | [`files`] | whoever's who replaces a small file |
//! | [`hub`] | a hub's from its first start through its first day |
//! | [`server`] | the process that serves the disk |

pub mod files;
pub mod first_start;
pub mod hub;
mod hub_client;
mod hub_requests;
pub mod server;
pub mod suite;
