//! The check of a copy that is signed to be discarded.
//!
//! What comes in: the guest, proved to be the one that was signed for, and its copy as our records and the last look have it.
//! What goes out: the operation, or why there is none. Deliberately absent: changing anything; the operation proves all of it
//! again.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::args;
use holdfast_trust::Accepted;

use super::Context;
use super::proved_guest::{Stays, refused};
use super::swap::copy_as_signed;
use crate::gate::warrant::Warrant;
use crate::operation::{DiscardCopy, Operation, Target};

pub(super) fn build(
    context: &Context<'_>,
    job: &Accepted,
    args: &args::DiscardCopy,
    guest: &Target,
) -> Result<Operation, Stays> {
    let (record, _) = copy_as_signed(context, guest, &args.copy)?;
    let fault = |error: &dyn std::error::Error| refused(ErrorCode::Internal, error.to_string());
    let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
    let discard = DiscardCopy::new(warrant, record.made_by).map_err(|error| fault(&error))?;
    Ok(Operation::DiscardCopy(Box::new(discard)))
}
