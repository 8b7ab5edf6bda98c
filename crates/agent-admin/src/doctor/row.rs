//! One line of the findings of `doctor`.

use holdfast_protocol::json::chain;
use serde::Serialize;

use crate::port::pve::PveError;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Good,
    /// Not as it should be.
    Failed,
    /// Nothing is wrong, and a person should know it.
    Notice,
    /// It could not be checked.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The result.
    pub state: State,
    /// The checked item.
    pub name: String,
    /// The finding.
    pub detail: String,
    /// Commands that fix it.
    pub mend: Vec<String>,
}

impl Check {
    pub(super) fn new(state: State, name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { state, name: name.into(), detail: detail.into(), mend: Vec::new() }
    }

    pub(super) fn of_error(name: impl Into<String>, error: &PveError) -> Self {
        Self::new(State::Failed, name, chain(error))
    }
}
