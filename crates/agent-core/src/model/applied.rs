//! Values of a guest's fields as they were last applied.

use std::collections::BTreeMap;

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::report::InForce;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What was last carried out of a guest's fields.
pub type Applied = BTreeMap<GuestField, AppliedField>;

/// One field as it was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedField {
    pub value: String,
    pub at: Timestamp,
    /// From when on a guest has it that ran then.
    pub takes: InForce,
}
