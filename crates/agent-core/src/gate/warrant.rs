//! The effects that a warrant allows.

use super::Provenance;

pub use crate::model::warrant::{Allows, SignedState, Warrant, WrongWarrant};

/// The road by which a request with a warrant came. There is no other way to say so in the engine.
#[must_use]
pub const fn road(_: &Warrant) -> Provenance {
    Provenance::SignedJob
}
