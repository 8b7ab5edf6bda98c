//! Alerts: the engine's rows, its decisions, and the outbox.
//!
//! | module | contents |
//! | --- | --- |
//! | [`rows`] | reading a scope, writing what changed |
//! | [`decide`] | signals to the engine, in the transaction of their cause |
//! | [`signals`] | signals out of check-ins and of silence |
//! | [`facts`] | what the hub finds wrong by its own rows |
//! | [`queue`], [`outbox`] | notices that wait, and what became of them |
//! | [`incidents`], [`commands`] | what operators read and change |
//! | [`names`] | names of hosts, guests and customers that the hub has heard of |

mod commands;
mod decide;
mod facts;
mod incidents;
mod names;
mod outbox;
mod queue;
mod rows;
mod signals;

pub(super) use decide::{Moment, decide};
pub(super) use facts::{HostImages, compared_builds};
pub(super) use incidents::{announced_until, maintenance_until};
pub(super) use rows::{Json, json};
pub(super) use signals::{deleted_guests, newly_deleted, relabelled, silent, spoken};
