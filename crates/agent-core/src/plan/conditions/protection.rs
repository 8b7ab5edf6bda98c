//! Conditions of tiers and backup policies.

use std::collections::BTreeMap;

use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::id::{GuestUid, PolicyName};
use jiff::Timestamp;

use super::{Finding, HostKnowledge, Names};
use crate::model::tier_fault::{TierFault, TierFaultKind};
use crate::plan::schedule::conditions::times;

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let (facts, names) = (&known.view.facts, Names::of(known.view));
    let mut found: Vec<Finding> = Vec::new();
    for (uid, faults) in &facts.faults {
        found.extend(faults.iter().map(|fault| of(*uid, &names.name(*uid), fault)));
    }
    let mut unmet: BTreeMap<&PolicyName, Vec<String>> = BTreeMap::new();
    for lacks in &facts.unmet {
        let text = format!("its {} tier names {}, which is not attached", lacks.tier, lacks.target);
        unmet.entry(&lacks.policy).or_default().push(text);
    }
    found.extend(unmet.into_iter().map(|(policy, texts)| {
        let message = format!("policy {policy}: {}", texts.join("; "));
        Finding::new(ConditionCode::PolicyUnmet, Subject::Policy { policy: policy.clone() }, message)
    }));
    found
}

fn of(uid: GuestUid, name: &str, fault: &TierFault) -> Finding {
    let tier = fault.tier;
    let (code, since, text) = stated(&fault.kind);
    Finding::new(code, Subject::Tier { uid, tier }, format!("{name}, {tier} tier: {text}")).since(since)
}

fn stated(fault: &TierFaultKind) -> (ConditionCode, Timestamp, String) {
    match fault {
        TierFaultKind::CrashConsistent { taken_at, why } => {
            let text = format!("the newest backup, of {taken_at:.0}, was taken of running programs: {why}");
            (ConditionCode::BackupCrashConsistent, *taken_at, text)
        }
        TierFaultKind::Failed { point, last, times: count } => {
            let text = format!(
                "the backup of {point:.0} was tried {}, and the try of {last:.0} failed",
                times(*count)
            );
            (ConditionCode::BackupFailed, *last, text)
        }
        TierFaultKind::Late { since, newest } => {
            let newest = newest
                .map_or_else(|| "there is none".to_owned(), |newest| format!("the newest is of {newest:.0}"));
            let text = format!("no backup came of any point since {since:.0}; {newest}");
            (ConditionCode::BackupLate, *since, text)
        }
        TierFaultKind::Missed { point, ended } => {
            let text =
                format!("the backup of {point:.0} did not begin in its window, which ended at {ended:.0}");
            (ConditionCode::BackupMissed, *ended, text)
        }
        TierFaultKind::Missing { since, count, newest } => {
            let text = format!("{count} of its backups are not listed any more; the newest is {newest}");
            (ConditionCode::BackupMissing, *since, text)
        }
        TierFaultKind::Unsealed { taken_at, archive } => {
            let text = format!("its newest backup {archive} is not encrypted with the promised key");
            (ConditionCode::BackupUnsealed, *taken_at, text)
        }
        TierFaultKind::TestFailed { at, why } => (ConditionCode::RestoreTestFailed, *at, why.clone()),
        TierFaultKind::TestOverdue { since, why } => {
            let text = format!("no backup was restored and checked in the promised time: {why}");
            (ConditionCode::RestoreTestOverdue, *since, text)
        }
    }
}
