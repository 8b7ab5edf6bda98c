//! Commands of `agentd` for a person at the host.
//!
//! Input: arguments. Output: the outcome on standard output, or an error of the command's own. The program is `agentd`,
//! which has the list of commands; each is a module here.
//!
//! | command | module |
//! | --- | --- |
//! | `audit` | [`audit`] |
//! | `doctor` | [`doctor`] |
//! | `enroll` | [`enroll`] |
//! | `escrow` | [`escrow`] |
//! | `golden` | [`golden`] |
//! | `metrics` | [`metrics`] |
//! | `parked` | [`parked`] |
//! | `recover` | [`recover`] |
//! | `recovery` | [`recovery`] |
//! | `release` | [`release`] |
//! | `rescue` | [`rescue`] |
//! | `restore-tests` | [`restore_tests`] |
//! | `setup` | [`setup`] |
//! | `status` | [`status`] |
//! | `storage` | [`storage`] |
//! | `renew-tokens` | [`token_renewal`] |
//! | `thaw` | [`unfreeze`] |

#![forbid(unsafe_code)]

use agent_core::{gate, model, plan};
use agent_ports as port;
use agent_ports::settings;
use clap::ValueEnum;
use serde::Serialize;

use crate::port::clock::{Clock, RealClock};

mod ago;
pub mod audit;
pub mod break_glass;
mod code_prompt;
pub mod diagnose;
pub mod doctor;
mod drop_privileges;
pub mod enroll;
pub mod escrow;
pub mod golden;
pub mod metrics;
pub mod parked;
pub mod recover;
pub mod recovery;
pub mod release;
pub mod rescue;
pub mod restore_tests;
pub mod setup;
pub mod status;
pub mod storage;
mod terminal;
pub mod token_renewal;
pub mod unfreeze;

/// How an outcome is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Writes a value for programs.
fn print_json<T: Serialize>(value: &T) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("agentd: the outcome cannot be written as JSON: {error}"),
    }
}

/// For "three hours ago", which needs a now.
fn now() -> jiff::Timestamp {
    RealClock::start().now()
}
