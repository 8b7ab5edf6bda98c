//! The proof that an operation made what it takes back.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;

use super::context::Context;
use super::identity::look_at;
use super::trouble::StepError;
use crate::model::mark;
use crate::operation::Operation;
use crate::operation::step::Step;
use crate::port::pve::undo::{Evidence, Made, UndoProof};
use crate::port::pve::{GuestConfig, Upid};

/// From its own journal, and from the guest as it is now.
pub(super) fn prove(context: &Context<'_>, config: &GuestConfig) -> Result<UndoProof, StepError> {
    let refuse = |why: String, vmid: Vmid| StepError::park(ErrorCode::ForeignGuest, why, look_at(vmid));
    let vmid = context.progress.vmid().ok_or_else(|| StepError::fault("there is no VMID to undo"))?;
    let volumes =
        context.progress.volumes().iter().filter_map(|volume| volume.as_str().parse().ok()).collect();
    let made = Made { vmid, evidence: evidence(context, config)?, volumes };
    UndoProof::establish(&made, config).map_err(|why| refuse(why.to_string(), vmid))
}

fn evidence(context: &Context<'_>, config: &GuestConfig) -> Result<Evidence, StepError> {
    let (uid, by) = (context.progress.operation.uid(), context.progress.id);
    let restore = || {
        let upid = context.progress.restored_by().and_then(|text| text.parse::<Upid>().ok());
        upid.ok_or_else(|| StepError::fault("the journal does not name the restore"))
    };
    let seen = mark::read(&config.tags, &config.description);
    let copies = matches!(
        context.progress.operation,
        Operation::RestoreCopy(_) | Operation::RestoreTest(_) | Operation::RebaseGuest(_)
    );
    if copies {
        let first_line = mark::copy_line(uid, by);
        return Ok(if seen == (mark::Mark::Copy { of: uid, by }) {
            Evidence::Mark { tags: mark::copy_tags(by).into(), first_line }
        } else {
            Evidence::RestoredAs { restore: restore()?, first_line }
        });
    }
    // The mark may be set although its outcome was never written: then it is the better evidence.
    let began = context.progress.began(Step::Mark) && seen == mark::Mark::Of(uid);
    Ok(if context.progress.did(Step::Mark) || began {
        Evidence::Mark { tags: mark::tags(uid).into(), first_line: mark::first_line(uid) }
    } else {
        Evidence::Restore(restore()?)
    })
}
