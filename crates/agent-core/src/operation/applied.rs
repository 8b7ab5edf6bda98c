//! Fields that a finished operation has applied.

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::report::InForce;

use crate::model::field::Texts;

/// What an operation leaves behind in the records of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliedBy {
    /// The guest is new: nothing that was carried out before counts.
    Anew(Texts),
    /// These changed; a guest that ran has each from when on [`InForce::of_change`] says.
    Changed(Texts),
}

impl AppliedBy {
    /// One field changed.
    pub(super) fn one(field: GuestField, text: String) -> Option<Self> {
        Some(Self::Changed(Texts::from([(field, text)])))
    }

    /// From when on a guest has a field of it.
    #[must_use]
    pub const fn takes(&self, field: GuestField) -> InForce {
        match self {
            Self::Anew(_) => InForce::Now,
            Self::Changed(_) => InForce::of_change(field),
        }
    }

    #[must_use]
    pub const fn texts(&self) -> &Texts {
        match self {
            Self::Anew(texts) | Self::Changed(texts) => texts,
        }
    }
}
