//! Facts that a cycle leaves for conditions.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::{Condition, GuestStatus, Running};
use jiff::Timestamp;

use crate::gate::change_limit::BulkHeld;
use crate::model::condition_facts::{ConditionFacts, UnmetTier};
use crate::model::records::{Access, ControllerOutcome};
use crate::plan::schedule::target;
use crate::plan::{GuestVerdict, Inputs, Plan};

/// Gathers them. `clock_behind` is the latest time that was seen, where the wall clock is behind it.
#[must_use]
pub fn gather(
    (inputs, plan): (&Inputs<'_>, &Plan),
    problems: Vec<ErrorBody>,
    clock_behind: Option<Timestamp>,
) -> ConditionFacts {
    let records = inputs.records;
    let open: BTreeSet<GuestUid> = records.open.iter().map(|open| open.guest).collect();
    let ours = plan.verdicts.iter().filter_map(|verdict| Some((uid(inputs, verdict)?, verdict)));
    let unjudged = ours.clone().filter(|(uid, verdict)| open.contains(uid) || is_unjudged(verdict));
    let power_unclear = ours.clone().filter(|(uid, verdict)| open.contains(uid) || !is_seen(inputs, verdict));
    let frozen = records.guests.iter().filter(|record| record.access == Access::Frozen);
    let mut parked: BTreeMap<GuestUid, Vec<String>> = BTreeMap::new();
    for one in &records.parked {
        let text = format!("{} was parked: {}", one.kind.as_str(), one.message);
        parked.entry(one.about).or_default().push(text);
    }
    ConditionFacts {
        parked,
        frozen: frozen.map(|record| record.uid).collect(),
        lost: inputs.observed.lost.keys().chain(inputs.observed.orphaned.keys()).copied().collect(),
        unjudged: unjudged.map(|(uid, _)| uid).collect(),
        faults: ours
            .clone()
            .filter(|(_, verdict)| !verdict.faults.is_empty())
            .map(|(uid, verdict)| (uid, verdict.faults.clone()))
            .collect::<BTreeMap<_, _>>(),
        unmet: unmet(inputs),
        braked: plan.braked.as_ref().map(BulkHeld::report),
        problems,
        clock_behind,
        power_unclear: power_unclear.map(|(uid, _)| uid).collect(),
        went_back: ours.filter_map(|(uid, verdict)| Some((uid, went_back(inputs, verdict, uid)?))).collect(),
    }
}

fn uid(inputs: &Inputs<'_>, verdict: &GuestVerdict) -> Option<GuestUid> {
    let record = verdict.recorded.and_then(|place| inputs.records.guests.get(place));
    let wanted = || verdict.wanted.and_then(|place| inputs.desired.get(place)).map(|guest| guest.uid);
    record.map(|record| record.uid).or_else(wanted)
}

/// Its judge stopped before it looked at everything.
fn is_unjudged(verdict: &GuestVerdict) -> bool {
    let is_unseen = verdict.status == GuestStatus::Missing && !is_proved_missing(&verdict.conditions);
    let locked = verdict.conditions.iter().any(|condition| condition.code == ErrorCode::Locked);
    is_unseen || locked || verdict.status == GuestStatus::Parked
}

/// Whether it is known whether it runs. A guest that was not made yet does not.
fn is_seen(inputs: &Inputs<'_>, verdict: &GuestVerdict) -> bool {
    let known = |vmid| inputs.observed.guests.get(&vmid).is_some_and(|seen| seen.run != Running::Unknown);
    verdict.vmid.is_none_or(known)
}

/// When a guest went back from the controller that the document asks for.
fn went_back(inputs: &Inputs<'_>, verdict: &GuestVerdict, uid: GuestUid) -> Option<Timestamp> {
    let wanted = verdict.wanted.and_then(|place| inputs.desired.get(place))?;
    let goal = wanted.controller.as_ref()?;
    let own = inputs.records.controller_verdicts.iter().find(|one| {
        one.guest == uid
            && one.outcome == ControllerOutcome::Bad
            && one.sha256.as_str() == goal.sha256.as_str()
    });
    own.map(|one| one.at)
}

/// Whether a guest with the status *missing* is known to be away, and not only out of sight.
pub(super) fn is_proved_missing(conditions: &[Condition]) -> bool {
    let proves = |condition: &Condition| {
        matches!(condition.code, ErrorCode::NotFound | ErrorCode::VmidForeign | ErrorCode::Restoring)
    };
    conditions.iter().any(proves)
}

/// A tier with a target that neither root named nor an operator signed for.
fn unmet(inputs: &Inputs<'_>) -> Vec<UnmetTier> {
    let mut unmet = Vec::new();
    for policy in inputs.policies {
        let local = policy.tiers.local.as_ref().map(|tier| (Tier::Local, &tier.target));
        let off_site = policy.tiers.off_site.as_ref().map(|tier| (Tier::OffSite, &tier.backup.target));
        let tiers = local.into_iter().chain(off_site);
        let lacks = tiers
            .filter(|(tier, name)| !target::is_approved(inputs.policy, inputs.records, *tier, name))
            .map(|(tier, name)| UnmetTier { policy: policy.name.clone(), tier, target: name.clone() });
        unmet.extend(lacks);
    }
    unmet
}
