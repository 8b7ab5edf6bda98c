//! Steps of an adoption: verify, then tag.
//!
//! Before each effect the guest is read anew; it carries no mark of ours or its own old one, and all its volumes are those
//! that were signed for. What was found in the place of our mark is in the journal before it is replaced.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::look_at;
use super::step_config::{change, mark_changes};
use super::trouble::StepError;
use crate::gate::adoption::{judge, judge_bridges};
use crate::gate::warrant::road;
use crate::gate::{Approved, Effect, Verdict, gate};
use crate::model::mark::{self, Mark};
use crate::operation::log::Finding;
use crate::operation::{Adopt, Operation};
use crate::port::pve::change::{Description, Labels, Tag};
use crate::port::pve::config::Switch;
use crate::port::pve::destroy::{compare, compare_unmarked};
use crate::port::pve::{ConfigChange, GuestConfig, PveError};
use crate::port::store::guest::Reserved;

fn spec<'a>(context: &'a Context<'_>) -> Result<&'a Adopt, StepError> {
    match &context.progress.operation {
        Operation::AdoptGuest(adopt) => Ok(adopt),
        other => Err(StepError::fault(format!("a {} takes nobody over", other.kind().as_str()))),
    }
}

/// The guest as it is now, if it is still the one that was signed for and has no other owner.
async fn found(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    let guest = spec(context)?.guest();
    let config = context.ports.pve.guest_config(guest.vmid).await?;
    if let Some(kind) = config.lock.clone() {
        return Err(PveError::Locked { kind }.into());
    }
    match mark::read(&config.tags, &config.description) {
        Mark::None => {}
        Mark::Of(uid) if uid == guest.uid => {}
        Mark::Of(_) | Mark::Copy { .. } | Mark::Broken => {
            let text = format!(
                "guest {} carries another mark: it is somebody else's, or was changed by hand",
                guest.vmid
            );
            return Err(StepError::give_up(ErrorCode::ForeignGuest, text));
        }
    }
    compare_unmarked(guest, &config)
        .map_err(|why| StepError::give_up(ErrorCode::TargetChanged, why.to_string()))?;
    Ok(config)
}

/// What no signature allows.
fn lawful(adopt: &Adopt, config: &GuestConfig) -> Result<(), StepError> {
    judge(&config.lines(), &config.raw_lxc)
        .and_then(|()| judge_bridges(&config.bridges(), &adopt.bridge))
        .map_err(|why| StepError::give_up(ErrorCode::Forbidden, why.to_string()))
}

/// Checks that all is as the operator saw it, and that it may be done. Nothing was done yet; the number is ours from
/// here on.
pub(super) async fn prove(context: &Context<'_>) -> Result<Started, StepError> {
    let adopt = spec(context)?;
    match gate(&Effect::Adopt, road(adopt.warrant()), &Approved::default()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => return Err(StepError::fault(why)),
    }
    let config = found(context).await?;
    lawful(adopt, &config)?;
    let guest = adopt.guest();
    if context.ports.store.reserve_vmid(guest.uid, guest.vmid).await? == Reserved::Anothers {
        let text = format!("number {} is or was another guest's of ours: it is not taken over", guest.vmid);
        return Err(StepError::give_up(ErrorCode::ForeignGuest, text));
    }
    let mut facts = vec![Finding::FoundMarked { tags: config.tags, description: config.description }];
    facts.extend(guest.volumes.iter().cloned().map(Finding::Volume));
    let note = format!("guest {} is as it was signed for", guest.vmid);
    Ok(Started::Learnt(StepOutput { facts, note: Some(note) }))
}

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = found(context).await?;
    Ok(match mark::read(&config.tags, &config.description) {
        Mark::Of(_) => Checked::Happened(StepOutput::nothing()),
        _ => Checked::Not,
    })
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let config = found(context).await?;
    let changes = mark_changes(context)?;
    change(context, config, changes).await
}

/// The guest is read again: the mark is set, and it is still what was signed for.
pub(super) async fn confirm(context: &Context<'_>) -> Result<Started, StepError> {
    let adopt = spec(context)?;
    let config = found(context).await?;
    compare(adopt.guest(), &config)
        .map_err(|why| StepError::give_up(ErrorCode::TargetChanged, why.to_string()))?;
    lawful(adopt, &config)?;
    let protected = if config.protection == Switch::On { "protected" } else { "not protected yet" };
    Ok(Started::Learnt(StepOutput::note(format!("it carries our mark, {protected}"))))
}

/// The undo of marking: the former values are restored. Without our mark there is nothing to remove.
pub(super) async fn give_back(context: &Context<'_>) -> Result<Option<String>, StepError> {
    let guest = spec(context)?.guest();
    let Some((tags, description)) = context.progress.found_marked() else {
        return Ok(Some("nothing was changed".to_owned()));
    };
    let config = context.ports.pve.guest_config(guest.vmid).await?;
    if config.tags == *tags && config.description == description {
        return Ok(Some("it is labelled as it was found".to_owned()));
    }
    if mark::read(&config.tags, &config.description) != Mark::Of(guest.uid) {
        let text = format!("guest {} was labelled anew by somebody: it is left so", guest.vmid);
        return Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(guest.vmid)));
    }
    let changes = labels(tags, description)?;
    change(context, config, changes).await?;
    let now = context.ports.pve.guest_config(guest.vmid).await?;
    if now.tags == *tags && now.description == description {
        return Ok(Some("it is labelled as it was found".to_owned()));
    }
    let text = "its old labels were put back by Proxmox's word, but the guest does not show them";
    Err(StepError::again(ErrorCode::Unavailable, text))
}

fn labels(tags: &BTreeSet<String>, description: &str) -> Result<Vec<ConfigChange>, StepError> {
    let fault = |why: String| StepError::fault(format!("what was found on it cannot be put back: {why}"));
    let mut changes = Vec::new();
    if !tags.is_empty() {
        let tags = tags.iter().map(|tag| tag.parse::<Tag>()).collect::<Result<Vec<_>, _>>();
        changes.push(ConfigChange::Tags(tags.map_err(|error| fault(error.to_string()))?));
    }
    if !description.is_empty() {
        let text = Description::try_from(description.to_owned()).map_err(|error| fault(error.to_string()))?;
        changes.push(ConfigChange::Description(text));
    }
    match (tags.is_empty(), description.is_empty()) {
        (true, true) => changes.push(ConfigChange::Unlabel(Labels::Both)),
        (true, false) => changes.push(ConfigChange::Unlabel(Labels::Tags)),
        (false, true) => changes.push(ConfigChange::Unlabel(Labels::Description)),
        (false, false) => {}
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_put_back_in_one_call() {
        let tags: BTreeSet<String> = ["web".to_owned()].into();
        let kinds = |tags: &BTreeSet<String>, text: &str| labels(tags, text).unwrap().len();
        assert_eq!(kinds(&tags, "a note"), 2);
        assert_eq!(labels(&BTreeSet::new(), "").unwrap(), [ConfigChange::Unlabel(Labels::Both)]);
        assert_eq!((kinds(&tags, ""), kinds(&BTreeSet::new(), "a note")), (2, 2));
    }
}
