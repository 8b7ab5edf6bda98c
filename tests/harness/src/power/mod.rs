//! The power-loss suite: a disk that drops unsynced changes.
//!
//! Before every change of a file the power can be lost. Unsynced data is then lost, or all there, or there in part. The
//! disk itself is `tests/power-disk`; a guest's windows are covered by `guestd/tests/it/power_loss`.
//!
//! | module | whose power is lost |
//! | --- | --- |
//! | [`suite`] | an agent's in a story, once and again during recovery |
//! | [`first_start`] | an agent's while it makes its database |
//! | [`files`] | that of a program that replaces a small file |
//! | [`hub`] | a hub's from its first start through its first day |
//! | [`server`] | the process that serves the disk |

pub mod files;
pub mod first_start;
pub mod hub;
mod hub_client;
mod hub_requests;
pub mod server;
pub mod suite;
