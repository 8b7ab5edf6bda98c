//! Tests of every effect from every origin, as one table.

use super::*;

fn operation(n: u8) -> OperationId {
    OperationId::new(uuid::Uuid::from_u128(u128::from(n)))
}

fn golden(version: &str) -> GoldenVersion {
    version.parse().unwrap()
}

fn controller(version: &str) -> ReleaseVersion {
    version.to_owned().try_into().unwrap()
}

fn bytes(pair: &str) -> Sha256Hex {
    pair.repeat(32).try_into().unwrap()
}

fn effects() -> Vec<Effect> {
    vec![
        Effect::RestoreFresh { golden: golden("2026.11.1"), sha256: bytes("ab") },
        Effect::RestoreFresh { golden: golden("2026.11.1"), sha256: bytes("cd") },
        Effect::RestoreFresh { golden: golden("2026.11.2"), sha256: bytes("ab") },
        Effect::RestoreOwnBackup,
        Effect::RestoreCopy,
        Effect::Start,
        Effect::GrowDisk,
        Effect::AttachNewVolume,
        Effect::LiftToAttach,
        Effect::Snapshot,
        Effect::Backup,
        Effect::Protect,
        Effect::UndoOwnMaking { undoing: operation(1) },
        Effect::UndoOwnMaking { undoing: operation(2) },
        Effect::DestroyScratch,
        Effect::StopOrRestart,
        Effect::Reconfigure,
        Effect::ExpireSnapshot(Expiry::OwnPastItsTime),
        Effect::ExpireSnapshot(Expiry::OwnOutsidePolicy),
        Effect::ExpireSnapshot(Expiry::OwnAsked(GuestUid::new(uuid::Uuid::nil()))),
        Effect::ExpireSnapshot(Expiry::OwnAsked(GuestUid::new(uuid::Uuid::max()))),
        Effect::ExpireSnapshot(Expiry::Other),
        Effect::PruneBackup(Prune::OutsidePolicy),
        Effect::PruneBackup(Prune::NewestProved),
        Effect::PruneBackup(Prune::Kept),
        Effect::PruneBackup(Prune::Last),
        Effect::PruneBackup(Prune::OnlyHolder),
        Effect::RollBack(RollBack::Itself(GuestUid::new(uuid::Uuid::nil()))),
        Effect::RollBack(RollBack::Itself(GuestUid::new(uuid::Uuid::max()))),
        Effect::RollBack(RollBack::ItselfWithBulk),
        Effect::RollBack(RollBack::Other),
        Effect::DestroyGuest,
        Effect::DiscardCopy,
        Effect::DeleteBackup,
        Effect::ReassignVolume,
        Effect::SwapGuest,
        Effect::RebaseGuest,
        Effect::ShrinkDisk,
        Effect::AttachUnapprovedTarget,
        Effect::LoseTarget,
        Effect::LowerProtection,
        Effect::RaiseBeyond,
        Effect::ReplaceKey,
        Effect::Adopt,
        Effect::ReplaceController { version: controller("0.2.0"), sha256: bytes("ab") },
        Effect::ReplaceController { version: controller("0.2.0"), sha256: bytes("cd") },
        Effect::ReplaceController { version: controller("0.3.0"), sha256: bytes("ab") },
        Effect::RunUnapproved,
    ]
}

fn roads() -> [(&'static str, Provenance); 9] {
    [
        ("document", Provenance::Document),
        ("local-api", Provenance::LocalApi(GuestUid::new(uuid::Uuid::nil()))),
        ("schedule", Provenance::Schedule),
        ("signed-job", Provenance::SignedJob),
        ("work-order", Provenance::WorkOrder),
        ("journal", Provenance::Journal(operation(1))),
        ("scratch-record", Provenance::ScratchRecord),
        ("update", Provenance::Update),
        ("restore", Provenance::Restore),
    ]
}

fn approved() -> Approved {
    Approved {
        goldens: [(golden("2026.11.1"), bytes("ab"))].into(),
        controllers: [(controller("0.2.0"), bytes("ab"))].into(),
    }
}

#[test]
fn every_effect_by_every_road() {
    let mut text = String::new();
    for effect in effects() {
        text.push_str(&format!("{effect:?}\n"));
        for (name, road) in roads() {
            text.push_str(&format!("  {name:<15} {:?}\n", gate(&effect, road, &approved())));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn no_road_opens_what_is_forbidden_and_only_a_signature_opens_what_needs_one() {
    for effect in effects() {
        let by_document = gate(&effect, Provenance::Document, &approved());
        match by_document {
            Verdict::NeedsSignature(_) => {
                assert_eq!(gate(&effect, Provenance::SignedJob, &approved()), Verdict::Free, "{effect:?}");
                assert_ne!(gate(&effect, Provenance::Schedule, &approved()), Verdict::Free, "{effect:?}");
            }
            Verdict::Forbidden(_) => {
                assert_ne!(gate(&effect, Provenance::SignedJob, &approved()), Verdict::Free, "{effect:?}");
            }
            Verdict::Free => {}
        }
    }
}

#[test]
fn a_work_order_passes_five_effects_and_none_that_a_schedule_may_not_have() {
    let free = |road| move |effect: &Effect| gate(effect, road, &approved()) == Verdict::Free;
    let mut all = effects();
    all.push(Effect::TryBackup);
    let ordered: Vec<Effect> =
        all.iter().filter(|effect| free(Provenance::WorkOrder)(effect)).cloned().collect();
    let wanted = [Effect::Start, Effect::Snapshot, Effect::Backup, Effect::StopOrRestart, Effect::TryBackup];
    assert_eq!(ordered, wanted);
    assert!(ordered.iter().all(free(Provenance::Schedule)));
}

/// What may be ordered by a signature: to what, by how many, after what delay, how often.
#[test]
fn every_verb_that_may_be_signed() {
    use holdfast_protocol::job::Verb;
    use holdfast_trust::Policy;
    use holdfast_trust::policy::{Lane, Quorum, Rule};
    let mut text = String::new();
    for verb in Verb::ALL {
        let Rule { signatures, delay_s, per_day, .. } = Rule::first(*verb);
        let (name, target) = (verb.as_str(), verb.target().as_str());
        text.push_str(&format!(
            "{name:<16} {target:<6} signatures {signatures}  delay {delay_s:>4} s  a day {per_day:>4}\n"
        ));
        let (rule, lane) = Policy::first().rule_for(*verb, Quorum { signed: 1, able: 2 });
        if lane == Lane::Alone {
            text.push_str(&format!("{name:<16} alone where two could sign   delay {} s\n", rule.delay_s));
        }
    }
    insta::assert_snapshot!(text);
}
