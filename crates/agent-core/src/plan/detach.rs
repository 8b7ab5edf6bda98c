//! The outcome of signed attachments and releases of targets.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::job::Act;

use super::Inputs;
use crate::gate::only_copy::{KeptCopies, against};
use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::model::observed::Detail;
use crate::model::records::{GuestRecord, Place};

/// As many reasons as a person reads.
const REASONS_MAX: usize = 5;

/// Whether it may have its effect now.
pub(super) fn judge(inputs: &Inputs<'_>, act: &Act) -> Result<(), ErrorBody> {
    let (effect, let_go) = match act {
        Act::DetachStorage(args) => (Effect::LoseTarget, Some(&args.from.name)),
        _ => (Effect::AttachUnapprovedTarget, None),
    };
    if let Verdict::NeedsSignature(why) | Verdict::Forbidden(why) =
        gate(&effect, Provenance::SignedJob, &Approved::default())
    {
        return Err(ErrorBody::new(ErrorCode::Forbidden, why));
    }
    let Some(target) = let_go else { return Ok(()) };
    let reasons = against(target, inputs.records.guests.iter().flat_map(|record| kept(inputs, record)));
    if reasons.is_empty() {
        return Ok(());
    }
    let first: Vec<String> = reasons.iter().take(REASONS_MAX).cloned().collect();
    let text = format!(
        "storage {target} is in use ({}; {} in all): move or loosen that first, then sign anew",
        first.join("; "),
        reasons.len()
    );
    Err(ErrorBody::new(ErrorCode::Forbidden, text))
}

/// Its volumes as written down and as seen, and its promise.
fn kept<'a>(inputs: &Inputs<'a>, record: &'a GuestRecord) -> Vec<KeptCopies<'a>> {
    let name = &record.name;
    let written = match &record.place {
        Place::Made { volumes, .. } => Some(volumes),
        Place::Nowhere | Place::Making { .. } | Place::Gone { .. } => None,
    };
    let seen = record.place.vmid().and_then(|vmid| inputs.observed.guests.get(&vmid));
    let seen = seen.and_then(|seen| match &seen.detail {
        Detail::Known(facts) => Some(&facts.volumes),
        Detail::Unknown(_) => None,
    });
    let volumes = written.into_iter().chain(seen).flatten();
    let mut kept: Vec<KeptCopies<'a>> =
        volumes.map(|volume| KeptCopies { name, volume: Some(volume), promise: None }).collect();
    let promise = inputs.records.protections.get(&record.uid).map(AsRef::as_ref);
    kept.push(KeptCopies { name, volume: None, promise });
    kept
}
