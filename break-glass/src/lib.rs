//! Root's side of break-glass: decisions, state, and effects.
//!
//! In: an order that the agent put into its own folder, the settings and keys that root laid down, the clocks. Out: one
//! line of an `authorized_keys` file that ends by itself, recordings of what was done with it, a log, a status file.
//! Deliberately absent: network, threads, any program of the agent's, and trust in anything that the agent wrote.
//!
//! | module | what |
//! | --- | --- |
//! | [`settings`] | root's file: whether, which ways, whose consent |
//! | [`decide`] | whether an order opens a way; pure |
//! | [`entry`] | the line of an `authorized_keys` file; pure |
//! | [`state`] | used orders, the open way, and what an event makes of them; pure |
//! | [`moment`] | the two clocks, and how long a way is still open |
//! | [`log`] | the hash chain of what was done; pure |
//! | [`processes`] | which processes belong to a session |
//! | [`files`] | every file of it, read and written without following links |
//! | [`order`] | reads, judges and carries out one order |
//! | [`guard`] | closes what is over, and ends its sessions |
//! | [`session`] | one recorded session of a person |
//! | [`command`] | the arguments of the program |
#![forbid(unsafe_code)]

pub mod command;
pub mod decide;
pub mod entry;
pub mod files;
pub mod guard;
pub mod log;
pub mod moment;
pub mod order;
pub mod processes;
pub mod session;
pub mod settings;
pub mod state;
