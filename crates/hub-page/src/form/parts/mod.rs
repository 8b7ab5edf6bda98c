//! The fields of each kind of part.

mod guest;
mod policy;
mod target;
mod volume;

use holdfast_protocol::resource::PartKind;

use super::{Field, Group, Input};

/// The form of a kind of part.
#[must_use]
pub const fn form_of(kind: PartKind) -> &'static [Group] {
    match kind {
        PartKind::Guest => guest::FORM,
        PartKind::Volume => volume::FORM,
        PartKind::StorageTarget => target::FORM,
        PartKind::Policy => policy::FORM,
    }
}

/// The field that names a part for good. A guest has its uid for that, and its name may change.
pub(crate) const fn name_of(kind: PartKind) -> Option<&'static str> {
    match kind {
        PartKind::Guest => None,
        PartKind::Volume | PartKind::StorageTarget | PartKind::Policy => Some("name"),
    }
}

/// What the content of a part has that its form does not show, and why.
#[cfg(test)]
pub(crate) const fn left_out(kind: PartKind) -> &'static [&'static str] {
    match kind {
        // The identity is made once; volumes have pages of their own.
        PartKind::Guest => &["uid", "volumes"],
        PartKind::Volume | PartKind::StorageTarget | PartKind::Policy => &[],
    }
}

const fn field(path: &'static str, label: &'static str, input: Input) -> Field {
    Field { path, label, input }
}

const fn text(path: &'static str, label: &'static str) -> Field {
    field(path, label, Input::Text)
}

const fn number(path: &'static str, label: &'static str) -> Field {
    field(path, label, Input::Number)
}
