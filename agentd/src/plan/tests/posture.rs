//! How well guests are protected, in one word each.

use std::sync::Arc;

use holdfast_protocol::protection::{Posture, PostureReport, Tier};
use holdfast_protocol::storage::report::PrunedBy;

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::observed::Shelf;
use crate::model::offsite::Verification;
use crate::model::record::VolumeId;
use crate::plan::report;

fn posture(life: &Life) -> PostureReport {
    life.plan().verdicts[0].protection.as_ref().unwrap().posture.clone().unwrap()
}

/// A guest with a backup of last night, by a policy that asks for a restore test in so many days.
fn backed_up(days: Option<u32>) -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.local.as_mut().unwrap().restore_test_days = days.map(|days| days.try_into().unwrap());
    let point = time("2026-06-10T00:30:00Z");
    life.now = time("2026-06-10T12:00:00Z");
    life.keep(Some(point), Some(holdfast_protocol::protection::Tier::Local), point);
    life
}

fn listed(verified: BTreeMap<VolumeId, Verification>, pruned_by: Option<PrunedBy>) -> Shelf {
    Shelf::Listed { protected: BTreeSet::new(), verified, pruned_by }
}

fn prove(life: &mut Life, at: &str) {
    let by = life.world.records.backups[0].taken_by;
    life.world.records.proofs.insert(by, time(at));
}

#[test]
fn protected_means_proved_within_the_policys_time() {
    let mut life = backed_up(Some(7));
    assert_eq!(posture(&life).is, Posture::Attention);
    assert!(posture(&life).why[0].contains("was ever restored"), "{:?}", posture(&life));
    prove(&mut life, "2026-06-10T03:00:00Z");
    assert_eq!(posture(&life).is, Posture::Protected, "{:?}", posture(&life));
    // The proof grows old although backups go on.
    life.now = time("2026-06-20T12:00:00Z");
    let point = time("2026-06-20T00:30:00Z");
    life.keep(Some(point), Some(holdfast_protocol::protection::Tier::Local), point);
    assert_eq!(posture(&life).is, Posture::Attention);
    assert!(posture(&life).why[0].contains("within 7"), "{:?}", posture(&life));

    let mut untested = backed_up(None);
    prove(&mut untested, "2026-06-10T03:00:00Z");
    assert_eq!(posture(&untested).is, Posture::Attention, "a policy without tests proves nothing");
}

#[test]
fn what_is_missing_missed_dark_or_never_promised_is_told_as_it_is() {
    let mut life = backed_up(Some(7));
    prove(&mut life, "2026-06-10T03:00:00Z");
    life.world.observed.shelves.insert("backup2".parse().unwrap(), Shelf::Dark("timed out".to_owned()));
    assert_eq!(posture(&life).is, Posture::Unknown, "{:?}", posture(&life));
    let listed = listed(BTreeMap::new(), None);
    life.world.observed.shelves.insert("backup2".parse().unwrap(), listed);
    assert_eq!(posture(&life).is, Posture::Protected);
    Arc::make_mut(&mut life.world.records.backups)[0].missing_since = Some(life.now);
    assert_eq!(posture(&life).is, Posture::Unprotected, "{:?}", posture(&life));

    let mut missed = backed_up(Some(7));
    prove(&mut missed, "2026-06-10T03:00:00Z");
    missed.pass(24 * 60);
    assert_eq!(posture(&missed).is, Posture::Attention, "{:?}", posture(&missed));
    assert!(posture(&missed).why[0].contains("was missed"), "{:?}", posture(&missed));

    let world = world(1);
    let reports = report::guests(&world.inputs(), &world.plan());
    let told = reports[0].protection.as_ref().unwrap();
    assert_eq!(told.posture.as_ref().unwrap().is, Posture::Unprotected);
    assert!(told.in_force.is_none());
}

/// The same guest, its tier off-site.
fn off_site() -> Life {
    let mut life = backed_up(Some(7));
    let key: holdfast_protocol::id::KeyFingerprint = vec!["ab"; 32].join(":").parse().unwrap();
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    let backup = promise.tiers.local.take().unwrap();
    let tier = holdfast_protocol::protection::OffSiteTier { key: key.clone(), verify_days: None, backup };
    promise.tiers.off_site = Some(tier);
    let backup = &mut Arc::make_mut(&mut life.world.records.backups)[0];
    (backup.tier, backup.sealed) = (Some(Tier::OffSite), Some(key));
    prove(&mut life, "2026-06-10T03:00:00Z");
    life
}

#[test]
fn an_off_site_backup_says_its_key_what_its_server_found_and_who_prunes() {
    let mut life = off_site();
    assert_eq!(posture(&life).is, Posture::Protected, "{:?}", posture(&life));
    assert!(
        posture(&life).why[0].contains("encrypted with key ab:ab:ab:ab:ab:ab:ab:ab…; never looked through")
    );
    let archive = life.world.records.backups[0].archive.clone();
    for (well, is, says) in [
        (
            true,
            Posture::Protected,
            "found its bytes whole at 2026-06-10T04:00:00Z; pruned by the server alone",
        ),
        (false, Posture::Attention, "found its newest off-site backup of 2026-06-10T00:30:00Z damaged"),
    ] {
        let said = Verification { well, at: time("2026-06-10T04:00:00Z") };
        let shelf = listed(BTreeMap::from([(archive.clone(), said)]), Some(PrunedBy::Server));
        life.world.observed.shelves.insert("backup2".parse().unwrap(), shelf);
        let posture = posture(&life);
        assert_eq!(posture.is, is, "{posture:?}");
        assert!(posture.why[0].contains(says), "{posture:?}");
    }
    // Another key is as good as none.
    Arc::make_mut(&mut life.world.records.backups)[0].sealed = vec!["cd"; 32].join(":").parse().ok();
    assert_eq!(posture(&life).is, Posture::Unprotected, "{:?}", posture(&life));
}

#[test]
fn what_no_retention_reaches_is_told() {
    let mut life = backed_up(Some(7));
    prove(&mut life, "2026-06-10T03:00:00Z");
    let point = time("2026-06-09T00:30:00Z");
    life.keep(Some(point), Some(Tier::Local), point);
    let backups = Arc::make_mut(&mut life.world.records.backups);
    backups.sort_by_key(|backup| backup.taken_at);
    backups[0].vmid = holdfast_protocol::id::Vmid::try_from(399).unwrap();
    let newest = backups[1].archive.clone();
    let shelf = Shelf::Listed { protected: [newest].into(), verified: BTreeMap::new(), pruned_by: None };
    life.world.observed.shelves.insert("backup2".parse().unwrap(), shelf);
    let why = posture(&life).why.join("; ");
    assert!(why.contains("1 older ones lie under a former number"), "{why}");
    assert!(why.contains("1 are protected in Proxmox"), "{why}");
}
