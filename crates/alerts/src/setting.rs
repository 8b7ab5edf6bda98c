//! The setting of a decision: rules, silences, the host, the listening hub.

use holdfast_protocol::id::{CustomerId, HostName};
use jiff::Timestamp;

use crate::rules::Ruleset;
use crate::silence::Silence;

/// What a decision depends on besides the state.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The rules.
    pub rules: &'a Ruleset,
    /// All silences that are not over.
    pub silences: &'a [Silence],
    /// The name of the scope's host; none for the hub.
    pub host: Option<&'a HostName>,
    /// Who the host belongs to: the customer of all its guests, where they are of one. What is about no guest belongs to
    /// this customer.
    pub customer: Option<&'a CustomerId>,
    /// Since when the hub listens without a gap, by its clock. Conditions must last from then on before they fire or
    /// are resolved, so neither a restart nor a step of the clock makes them do so.
    pub listening_since: Timestamp,
}
