//! Tests of conditions of tiers and policies.

use holdfast_protocol::protection::Tier;

use super::*;
use crate::model::condition_facts::UnmetTier;
use crate::model::tier_fault::{TierFault, TierFaultKind};

fn with(kind: TierFaultKind) -> Box7 {
    let mut host = Box7::well();
    host.view.facts.faults.insert(uid(1), vec![TierFault { tier: Tier::Local, kind }]);
    host
}

fn unmet() -> Box7 {
    let mut host = Box7::well();
    let lacks =
        |tier| UnmetTier { policy: "usual".parse().unwrap(), tier, target: "backup2".parse().unwrap() };
    host.view.facts.unmet = vec![lacks(Tier::Local), lacks(Tier::OffSite)];
    host
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    let (archive, why) = ("backup2:a".to_owned(), "no guest agent".to_owned());
    vec![
        (
            "BACKUP_CRASH_CONSISTENT",
            with(TierFaultKind::CrashConsistent { taken_at: at(-9), why: why.clone() }),
        ),
        ("BACKUP_FAILED", with(TierFaultKind::Failed { point: at(-9), last: at(-8), times: 2 })),
        ("BACKUP_LATE", with(TierFaultKind::Late { since: at(-9), newest: Some(at(-90)) })),
        ("BACKUP_MISSED", with(TierFaultKind::Missed { point: at(-9), ended: at(-8) })),
        ("BACKUP_MISSING", with(TierFaultKind::Missing { since: at(-9), count: 2, newest: archive.clone() })),
        ("BACKUP_UNSEALED", with(TierFaultKind::Unsealed { taken_at: at(-9), archive })),
        ("RESTORE_TEST_FAILED", with(TierFaultKind::TestFailed { at: at(-9), why: why.clone() })),
        ("RESTORE_TEST_OVERDUE", with(TierFaultKind::TestOverdue { since: at(-9), why })),
        ("POLICY_UNMET", unmet()),
    ]
}

#[test]
fn a_message_has_the_guest_the_tier_and_the_facts() {
    let host = with(TierFaultKind::Late { since: at(0), newest: None });
    let says = "web-1, local tier: no backup came of any point since 2027-01-15T08:00:00Z; there is none";
    assert_eq!(host.found()[0].message, says);
    let both = "policy usual: its local tier names backup2, which is not attached; its off-site tier names backup2, which is not \
                attached";
    assert_eq!(unmet().found()[0].message, both);
}
