//! Tests of backups of bulk volumes.

use std::sync::Arc;

use holdfast_protocol::protection::{Posture, Protection as Promise, Tier};

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::observed::BackupFlag;
use crate::model::records::HeldMounts;
use crate::plan::bulk::elsewhere;

/// A guest with a proved backup of last night, and a bulk volume of this kind at `/srv/media`.
fn with_media(kind: serde_json::Value) -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.world.desired[0].volumes.push(volume("media", kind));
    let tier = life.world.policies[0].tiers.local.as_mut().unwrap();
    tier.restore_test_days = Some(7.try_into().unwrap());
    let promise = Promise::of_document(&life.world.desired[0], &life.world.policies).unwrap();
    life.world.records.protections.insert(uid(1), Arc::new(promise));
    let media = MountFacts {
        volume: volumes(300).last().cloned(),
        path: "/srv/media".to_owned(),
        bytes: Some(4 << 30),
        backup: BackupFlag::On,
    };
    life.world.facts(300).mounts.insert(1, media);
    let point = time("2026-06-10T00:30:00Z");
    life.now = time("2026-06-10T12:00:00Z");
    life.keep(Some(point), Some(Tier::Local), point);
    let by = life.world.records.backups[0].taken_by;
    life.world.records.proofs.insert(by, time("2026-06-10T03:00:00Z"));
    life
}

fn held(life: &mut Life, holds: &[&str], left_out: &[&str]) {
    let own = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let mounts = Some(HeldMounts { holds: own(holds), left_out: own(left_out) });
    Arc::make_mut(&mut life.world.records.backups)[0].mounts = mounts;
}

/// The posture, and its reasons in one text.
fn posture(life: &Life) -> (Posture, String) {
    let plan = life.plan();
    let reported = plan.verdicts[0].protection.as_ref().unwrap().posture.clone().unwrap();
    (reported.is, reported.why.join("; "))
}

#[test]
fn a_guest_is_protected_only_with_what_its_volumes_are_promised() {
    let mut life = with_media(json!({ "bulk": { "backup_to": "backup2" } }));
    // Taken before that was written down, and taken without it.
    let (is, why) = posture(&life);
    assert!(is == Posture::Attention && why.contains("does not hold it"), "{why}");
    held(&mut life, &["/srv/db"], &["/srv/media"]);
    assert_eq!(posture(&life).0, Posture::Attention);
    held(&mut life, &["/srv/db", "/srv/media"], &[]);
    assert_eq!(posture(&life).0, Posture::Protected, "{}", posture(&life).1);
    assert!(life.plan().verdicts[0].conditions.is_empty(), "{}", life.plan());
    // Attached when no backup of it was asked for: only a stop of the guest changes that.
    life.world.facts(300).mounts.get_mut(&1).unwrap().backup = BackupFlag::Off;
    let (is, why) = posture(&life);
    assert!(is == Posture::Attention && why.contains("set backup=1"), "{why}");
    assert_eq!(life.plan().verdicts[0].conditions.len(), 1, "{}", life.plan());
}

#[test]
fn a_target_where_no_tier_goes_is_reported_and_a_decision_against_is_reported_with_its_reason() {
    let mut life = with_media(json!({ "bulk": { "backup_to": "shelf" } }));
    held(&mut life, &["/srv/db"], &["/srv/media"]);
    let (is, why) = posture(&life);
    assert!(is == Posture::Attention && why.contains("shelf, where no tier of its policy goes"), "{why}");
    let mut life = with_media(json!({ "bulk": { "none": "rebuilt from the origin" } }));
    held(&mut life, &["/srv/db"], &[]);
    let (is, why) = posture(&life);
    assert!(is == Posture::Protected && why.contains("not backed up: rebuilt from the origin"), "{why}");
}

/// Every backup that the plan begins says what it leaves out.
#[test]
fn a_backup_leaves_out_what_goes_to_another_target_by_the_promise_that_is_in_force() {
    for (target, left_out) in [("backup2", vec![]), ("shelf", vec!["/srv/media"])] {
        let mut life = with_media(json!({ "bulk": { "backup_to": target } }));
        life.pass(24 * 60);
        let plan = life.plan();
        let backup = plan.actions[0].operation.backup().unwrap();
        let paths: Vec<&str> = backup.leaves_out.iter().map(|path| path.as_str()).collect();
        assert_eq!(paths, left_out, "{target}");
    }
    let mut guest = guest(1);
    guest.volumes.push(volume("media", json!({ "bulk": { "backup_to": "shelf" } })));
    guest.volumes.push(volume("cache", json!({ "bulk": { "none": "made anew" } })));
    let out = |promise: Option<&Promise>, to: &str| {
        elsewhere(&guest.volumes, promise, &to.parse().unwrap())
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!((out(None, "backup2"), out(None, "shelf")), (vec!["/srv/media".to_owned()], vec![]));
    let mut promise = Promise::of_volumes(&guest);
    let media = promise.volumes.iter_mut().find(|kept| kept.name.as_str() == "media").unwrap();
    media.kind = serde_json::from_value(json!({ "bulk": { "backup_to": "backup2" } })).unwrap();
    assert_eq!(out(Some(&promise), "backup2"), Vec::<String>::new(), "what is only wanted changes nothing");
}

/// No token of ours may look for a volume of a number that no guest has: the report says what to look for.
#[test]
fn of_a_lost_guest_each_volume_that_its_backup_lacks_is_reported() {
    let mut world = world(1);
    world.policy.bulk_storage = Some("slow".parse().unwrap());
    world.desired[0].volumes.push(volume("media", json!({ "bulk": { "none": "rebuilt from the origin" } })));
    world.observed.guests.remove(&vmid(300));
    let reason = |world: &mut World, mounts: Option<HeldMounts>| {
        let mut loss = placement::remains("backup2:backup/vzdump-lxc-300-1.tar.zst");
        loss.remains[0].backup.mounts = mounts;
        world.observed.lost.insert(uid(1), loss);
        let plan = world.plan();
        assert!(!plan.actions.is_empty(), "{plan}");
        plan.actions[0].reason.clone()
    };
    let own = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let lacks = HeldMounts { holds: own(&["/srv/db"]), left_out: own(&["/srv/media"]) };
    let said = reason(&mut world, Some(lacks));
    for words in [
        "empty when it is back, since this backup does not hold them: /srv/media;",
        "`pvesm list fast --vmid 300`",
        "`pct set`",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // What it holds was not written down: what was restored must not be called empty.
    let said = reason(&mut world, None);
    assert!(!said.contains("empty") && !said.contains("pct set"), "{said}");
    let whole = HeldMounts { holds: own(&["/srv/db", "/srv/media"]), left_out: Vec::new() };
    let said = reason(&mut world, Some(whole));
    assert!(!said.contains("empty"), "{said}");
}
