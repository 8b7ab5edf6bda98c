//! Conditions on a silent guest agent.
//!
//! In: the last hello of each guest agent, to the second, counted from this agent's own start at the earliest. Out: a report
//! for lists, and a condition once three hellos are missed. A guest that stands still, has just been started, or whose access
//! is frozen is not expected to say hello.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::protection::{Consistency, Protection};
use holdfast_protocol::report::{Running, SilenceKind, SilenceReport};
use jiff::Timestamp;

use super::Inputs;
use super::{Context, Judged};
use crate::model::limits;
use crate::model::observed::ObservedGuest;
use crate::model::records::{Access, GuestRecord};
use crate::model::silence::{Silence, judge as judge_silence};

/// How it is heard.
pub(super) fn of(inputs: &Inputs<'_>, record: &GuestRecord, seen: &ObservedGuest) -> Silence {
    let expected =
        seen.run == Running::Running && seen.up_s >= limits::HELLO_WAIT_S && record.access == Access::Open;
    match inputs.records.heard.get(&record.uid).filter(|_| expected) {
        Some(last) => judge_silence(*last, limits::hello_again_s(inputs.desired.len()), inputs.now),
        None => Silence::Heard,
    }
}

/// Since when it is silent.
pub(super) fn since(inputs: &Inputs<'_>, record: &GuestRecord, seen: &ObservedGuest) -> Option<Timestamp> {
    match of(inputs, record, seen) {
        Silence::Silent(since) => Some(since),
        Silence::Heard | Silence::Late(_) => None,
    }
}

pub(super) const fn report(silence: Silence) -> Option<SilenceReport> {
    match silence {
        Silence::Heard => None,
        Silence::Late(since) => Some(SilenceReport { is: SilenceKind::Late, since }),
        Silence::Silent(since) => Some(SilenceReport { is: SilenceKind::Silent, since }),
    }
}

/// What is reported to the operator once it is silent.
pub(super) fn judge(
    context: &Context<'_>,
    judged: Judged,
    record: &GuestRecord,
    seen: &ObservedGuest,
) -> Judged {
    let Some(since) = since(context.inputs, record, seen) else { return judged };
    let promise = context.inputs.records.protections.get(&record.uid).map(AsRef::as_ref);
    let (vmid, backups) = (seen.vmid, if promise.is_some_and(wants_application) { BACKUPS } else { "" });
    let text = format!(
        "its guest agent has been silent since {}: whether its programs are up is not known{backups}; look at it with \
         `pct exec {vmid} -- systemctl status guestd`",
        stamp(since)
    );
    judged.with(ErrorCode::ControllerSilent, text)
}

const BACKUPS: &str = ", and its next backup is crash-consistent, since nobody stops them for it";

fn wants_application(promise: &Protection) -> bool {
    let tiers = &promise.tiers;
    let local = tiers.local.as_ref();
    let backups = local.into_iter().chain(tiers.off_site.as_ref().map(|tier| &tier.backup));
    backups.into_iter().any(|tier| tier.consistency == Consistency::Application)
}

pub(super) fn stamp(at: Timestamp) -> String {
    format!("{at:.0}")
}
