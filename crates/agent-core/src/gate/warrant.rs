//! The warrant at the gate: what it is, is data ([`crate::model::warrant`]); what it opens is decided here.

use super::Provenance;

pub use crate::model::warrant::{Allows, Seen, Warrant, WrongWarrant};

/// The road by which a wish with a warrant came. There is no other way to say so in the engine.
#[must_use]
pub const fn road(_: &Warrant) -> Provenance {
    Provenance::SignedJob
}
