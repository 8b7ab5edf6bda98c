//! Tests of how well guests are protected.

use std::sync::Arc;

use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::local::window::Label;
use holdfast_protocol::protection::{Consistency, Posture, PostureReport, Tier, Took};
use holdfast_protocol::storage::report::PrunedBy;

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::observed::BackupListing;
use crate::model::offsite::Verification;
use crate::model::records::{OpenOperation, TestRecord, VolumeId};

pub(super) fn posture(life: &Life) -> PostureReport {
    life.plan().verdicts[0].protection.as_ref().unwrap().posture.clone().unwrap()
}

/// A guest with a backup of last night, by a policy that asks for a restore test in so many days.
pub(super) fn backed_up(days: Option<u32>) -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.local.as_mut().unwrap().restore_test_days = days.map(|days| days.try_into().unwrap());
    let point = time("2026-06-10T00:30:00Z");
    life.now = time("2026-06-10T12:00:00Z");
    life.keep(Some(point), Some(holdfast_protocol::protection::Tier::Local), point);
    life
}

fn listed(verified: BTreeMap<VolumeId, Verification>, pruned_by: Option<PrunedBy>) -> BackupListing {
    BackupListing::Listed { protected: BTreeSet::new(), verified, pruned_by }
}

pub(super) fn prove(life: &mut Life, at: &str) {
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
fn what_is_missing_missed_dark_or_never_promised_is_reported_as_it_is() {
    let mut life = backed_up(Some(7));
    prove(&mut life, "2026-06-10T03:00:00Z");
    life.world
        .observed
        .listings
        .insert("backup2".parse().unwrap(), BackupListing::Dark("timed out".to_owned()));
    assert_eq!(posture(&life).is, Posture::Unknown, "{:?}", posture(&life));
    let listed = listed(BTreeMap::new(), None);
    life.world.observed.listings.insert("backup2".parse().unwrap(), listed);
    assert_eq!(posture(&life).is, Posture::Protected);
    Arc::make_mut(&mut life.world.records.backups)[0].missing_since = Some(life.now);
    assert_eq!(posture(&life).is, Posture::Unprotected, "{:?}", posture(&life));

    let mut missed = backed_up(Some(7));
    prove(&mut missed, "2026-06-10T03:00:00Z");
    missed.pass(24 * 60);
    assert_eq!(posture(&missed).is, Posture::Attention, "{:?}", posture(&missed));
    assert!(posture(&missed).why[0].contains("was missed"), "{:?}", posture(&missed));

    let world = world(1);
    let reports = world.reports();
    let reported = reports[0].protection.as_ref().unwrap();
    assert_eq!(reported.posture.as_ref().unwrap().is, Posture::Unprotected);
    assert!(reported.in_force.is_none());
}

/// A test of its backup, as the store writes it down.
pub(super) fn tested(life: &mut Life, verdict: TestVerdict, at: &str, why: &str) {
    let backup = &life.world.records.backups[0];
    let test = TestRecord {
        operation: op(77),
        guest: uid(1),
        archive: backup.archive.clone(),
        backup: backup.taken_by,
        taken_at: backup.taken_at,
        verdict,
        why: why.to_owned(),
        began_at: time(at),
        at: time(at),
        bytes: None,
        took: Took::default(),
    };
    if verdict == TestVerdict::Proved {
        prove(life, at);
    }
    life.world.records.tests.push(test);
}

/// Whether a failed test is reported to the operator.
fn reported(life: &Life) -> bool {
    let failed = |condition: &Condition| condition.code == ErrorCode::RestoreTestFailed;
    life.plan().verdicts[0].conditions.iter().any(failed)
}

/// No guest is protected for the rest of the month by a proof after which every test failed.
#[test]
fn a_test_that_failed_counts_at_once_and_until_one_proves_a_backup() {
    let mut life = backed_up(Some(30));
    tested(&mut life, TestVerdict::Proved, "2026-06-10T03:00:00Z", "all is well");
    assert_eq!((posture(&life).is, reported(&life)), (Posture::Protected, false));
    tested(&mut life, TestVerdict::Failed, "2026-06-10T04:00:00Z", "stack shop is not healthy");
    let failed =
        "the restore test of backup2:backup/1 failed at 2026-06-10T04:00:00Z: stack shop is not healthy";
    assert_eq!((posture(&life).is, posture(&life).why[0].as_str()), (Posture::Attention, failed));
    assert!(reported(&life), "{}", life.plan());
    // What says less does not take it back.
    tested(&mut life, TestVerdict::NotRun, "2026-06-10T05:00:00Z", "the host lacks memory");
    assert_eq!((posture(&life).is, reported(&life)), (Posture::Attention, true));
    let why = posture(&life).why.remove(0);
    assert!(why.starts_with(failed) && why.ends_with("could not be run: the host lacks memory"), "{why}");
    tested(&mut life, TestVerdict::Proved, "2026-06-10T06:00:00Z", "all is well");
    assert_eq!((posture(&life).is, reported(&life)), (Posture::Protected, false));
}

/// What keeps a guest from being proved is reported with that.
#[test]
fn why_it_was_never_proved_is_reported() {
    for (verdict, what) in
        [(TestVerdict::BootedOnly, "only booted"), (TestVerdict::NotRun, "could not be run")]
    {
        let mut life = backed_up(Some(7));
        tested(&mut life, verdict, "2026-06-10T03:00:00Z", "nobody spoke");
        let said = posture(&life);
        let why = format!(
            "no local backup of it was ever restored and checked; the last test, at 2026-06-10T03:00:00Z, {what}: nobody spoke"
        );
        assert_eq!((said.is, &said.why[0]), (Posture::Attention, &why));
        assert!(!reported(&life), "a condition is of what failed");
    }
}

/// Its controller is dead, or its stacks do not stop: what was promised is not what is taken.
#[test]
fn a_backup_that_holds_less_than_was_promised_is_reported() {
    for (promised, held, is) in [
        (Consistency::Application, Consistency::Crash, Posture::Attention),
        (Consistency::Application, Consistency::Application, Posture::Protected),
        (Consistency::Crash, Consistency::Crash, Posture::Protected),
    ] {
        let mut life = backed_up(Some(7));
        prove(&mut life, "2026-06-10T03:00:00Z");
        let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
        promise.tiers.local.as_mut().unwrap().consistency = promised;
        assert_eq!(posture(&life).is, Posture::Protected, "a backup without a label says nothing");
        let label = Label { consistency: held, why: "no window was asked for".to_owned() };
        Arc::make_mut(&mut life.world.records.backups)[0].label = Some(label.clone());
        assert_eq!(posture(&life).is, is, "{:?}", posture(&life));
        // Somebody asked for one more without a window: the promise is kept all the same, or not.
        life.keep(None, None, time("2026-06-10T08:00:00Z"));
        Arc::make_mut(&mut life.world.records.backups)[1].label =
            Some(Label { consistency: Consistency::Crash, ..label });
        assert_eq!(posture(&life).is, is, "{:?}", posture(&life));
        let reported = "its newest local backup of 2026-06-10T00:30:00Z is only crash-consistent: no window was asked for";
        assert_eq!(
            posture(&life).why[0].starts_with(reported),
            is == Posture::Attention,
            "{:?}",
            posture(&life)
        );
        // While its operation is open its controller may yet say what makes it better; where nothing runs, nothing ran on.
        let id = life.world.records.backups[0].taken_by;
        let open = OpenOperation { id, kind: OperationKind::QuiescedBackup, guest: uid(1) };
        life.world.records.open.push(open);
        assert_eq!(posture(&life).is, Posture::Protected, "{:?}", posture(&life));
        life.world.records.open.clear();
        life.world.seen(300).run = Running::Stopped;
        assert_eq!(posture(&life).is, Posture::Protected, "{:?}", posture(&life));
    }
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
        let listing = listed(BTreeMap::from([(archive.clone(), said)]), Some(PrunedBy::Server));
        life.world.observed.listings.insert("backup2".parse().unwrap(), listing);
        let posture = posture(&life);
        assert_eq!(posture.is, is, "{posture:?}");
        assert!(posture.why[0].contains(says), "{posture:?}");
    }
    // Another key is as good as none.
    Arc::make_mut(&mut life.world.records.backups)[0].sealed = vec!["cd"; 32].join(":").parse().ok();
    assert_eq!(posture(&life).is, Posture::Unprotected, "{:?}", posture(&life));
}

#[test]
fn what_no_retention_reaches_is_reported() {
    let mut life = backed_up(Some(7));
    prove(&mut life, "2026-06-10T03:00:00Z");
    let point = time("2026-06-09T00:30:00Z");
    life.keep(Some(point), Some(Tier::Local), point);
    let backups = Arc::make_mut(&mut life.world.records.backups);
    backups.sort_by_key(|backup| backup.taken_at);
    backups[0].vmid = holdfast_protocol::id::Vmid::try_from(399).unwrap();
    let newest = backups[1].archive.clone();
    let listing =
        BackupListing::Listed { protected: [newest].into(), verified: BTreeMap::new(), pruned_by: None };
    life.world.observed.listings.insert("backup2".parse().unwrap(), listing);
    let why = posture(&life).why.join("; ");
    assert!(
        why.contains(
            "1 under 399 lie under former VMIDs, where no retention removes them; 1 are protected in Proxmox"
        ),
        "{why}"
    );
    // As right after a swap: the newest one is there as well.
    for backup in Arc::make_mut(&mut life.world.records.backups) {
        backup.vmid = holdfast_protocol::id::Vmid::try_from(399).unwrap();
    }
    let why = posture(&life).why.join("; ");
    assert!(why.contains("2 under 399 lie under former VMIDs"), "{why}");
}

#[test]
fn a_silent_guest_agent_is_said_with_what_it_means_for_the_next_backup() {
    let mut life = backed_up(Some(7));
    prove(&mut life, "2026-06-10T03:00:00Z");
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.local.as_mut().unwrap().consistency = Consistency::Application;
    let says = |life: &Life| {
        posture(life).why.iter().any(|why| {
            why.contains("next local backup will be crash-consistent: its guest agent has been silent since 2026-06-10T11:")
        })
    };
    life.world.seen(300).up_s = 86_400;
    life.world.records.heard.insert(uid(1), time("2026-06-10T11:59:30Z"));
    assert!(!says(&life), "{:?}", posture(&life));
    life.world.records.heard.insert(uid(1), time("2026-06-10T11:00:00Z"));
    assert!(says(&life), "{:?}", posture(&life));
    // A policy that asks for crash-consistent backups loses nothing.
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.local.as_mut().unwrap().consistency = Consistency::Crash;
    assert!(!says(&life), "{:?}", posture(&life));
}
