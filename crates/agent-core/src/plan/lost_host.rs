//! Which guests were lost with another host, and are not back yet.

use super::Inputs;
use crate::model::records::GuestRecord;
use crate::operation::Whence;

/// Where a guest was lost, and so whether its token counts here.
pub(super) fn whence(inputs: &Inputs<'_>, record: &GuestRecord) -> Whence {
    if is_away(inputs, record) { Whence::LostBox } else { Whence::ThisBox }
}

/// Whether it was on the lost host and is not here yet.
pub(super) fn is_away(inputs: &Inputs<'_>, record: &GuestRecord) -> bool {
    inputs.records.left.as_ref().is_some_and(|left| left.is_away(record))
}
