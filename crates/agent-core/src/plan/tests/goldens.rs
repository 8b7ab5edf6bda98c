//! Goldens that no guest waits for, and goldens that grew old.

use holdfast_protocol::job::act::ReleaseKind;
use holdfast_protocol::report::{ImageBuild, ImageOrigin, WaitingForSignature};

use super::*;
use crate::gate::pending_approval::PendingApproval;
use crate::model::observed::GoldenFact;
use crate::model::policy::{GoldenDump, Sha256Hex};
use crate::model::records::ReleaseRecord;
use crate::plan::golden::{missing, old, waiting};

fn bytes(digit: &str) -> Sha256Hex {
    digit.repeat(64).try_into().unwrap()
}

/// A golden that was built on the host.
fn built(world: &mut World, version: &str, digit: &str, made_at: jiff::Timestamp) {
    let golden = Golden {
        archive: VolumeId::new(format!("local:backup/vzdump-lxc-900001-{version}.tar.zst")),
        sha256: None,
        file: format!("/dump/{version}").into(),
        build: Some(ImageBuild {
            built_at: Some(made_at),
            inputs_sha256: "cd".repeat(32).try_into().unwrap(),
            size_bytes: 1,
            origin: ImageOrigin::Built,
        }),
    };
    world.policy.goldens.insert(version.parse().unwrap(), golden);
    world.observed.goldens.insert(version.parse().unwrap(), GoldenFact::Is(bytes(digit)));
}

fn sign(world: &mut World, version: &str, digit: &str) {
    let release = ReleaseRecord {
        kind: ReleaseKind::Golden,
        version: version.to_owned().try_into().unwrap(),
        sha256: bytes(digit),
    };
    world.records.releases.push(release);
}

fn reported(world: &World, held: &[PendingApproval]) -> Vec<String> {
    let words = |one: WaitingForSignature| {
        assert_eq!(one.guest, None);
        assert!(one.payload.contains("approve_release") && !one.reason.is_empty(), "{one:?}");
        one.effect.split(", sha256").next().unwrap().to_owned()
    };
    waiting(&world.inputs(), held).into_iter().map(words).collect()
}

#[test]
fn a_newer_golden_waits_for_a_signature_though_no_guest_wants_it() {
    let mut world = world(1);
    // Root named 2026.11.1 with its digest.
    assert_eq!(reported(&world, &[]), [""; 0]);
    for (version, digit) in [("2026.10.3", "1"), ("2026.11.9", "2"), ("2026.11.10", "3")] {
        built(&mut world, version, digit, at(-100));
    }
    let newer = ["make guests from golden 2026.11.10", "make guests from golden 2026.11.9"];
    assert_eq!(reported(&world, &[]), newer, "and no older one");
    sign(&mut world, "2026.11.9", "2");
    assert_eq!(reported(&world, &[]), newer[..1]);
    sign(&mut world, "2026.11.10", "4");
    assert_eq!(reported(&world, &[]), newer[..1], "other bytes were signed for");
    let unread = GoldenFact::Unread("no such file".to_owned());
    world.observed.goldens.insert("2026.11.10".parse().unwrap(), unread);
    assert_eq!(reported(&world, &[]), [""; 0], "nobody signs for what cannot be read");
}

#[test]
fn what_a_guest_waits_for_is_reported_once() {
    let mut world = world(1);
    built(&mut world, "2026.11.10", "3", at(-100));
    world.desired[0].golden = "2026.11.10".parse().unwrap();
    world.records.guests.clear();
    world.observed.guests.clear();
    let held = world.plan().held;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(reported(&world, &held), [""; 0]);
    assert_eq!(reported(&world, &[]).len(), 1);
}

#[test]
fn the_newest_golden_is_reported_when_it_is_too_old() {
    let mut world = world(1);
    let days = |days: i64| at(-days * 86_400);
    built(&mut world, "2026.10.1", "1", days(90));
    let says = |world: &World| old(&world.inputs()).map(|problem| problem.to_string());
    assert_eq!(says(&world), None, "root lets none be built here");
    let (storage, folder) = ("local".parse().unwrap(), "/dump".into());
    world.policy.golden_dump = Some(GoldenDump { storage, folder, refresh_days: 30 });
    // How old root's own image is, from which the guest came, is not known.
    assert!(!says(&world).unwrap().contains("guests of"), "{:?}", says(&world));
    world.records.guests[0].golden = "2026.10.1".parse().unwrap();
    let said = says(&world).unwrap();
    let guest = world.records.guests[0].name.clone();
    assert!(said.contains(&format!("guests of images as old: {guest} (2026.10.1)")), "{said}");
    assert!(said.contains("2026.10.1, is 90 days old") && said.contains("golden build"), "{said}");
    built(&mut world, "2026.10.2", "2", days(30));
    assert!(says(&world).unwrap().contains("2026.10.2, is 30 days old"), "the newest counts");
    built(&mut world, "2026.10.3", "3", days(29));
    assert_eq!(says(&world), None);
    // A clock that was wrong when it was built.
    built(&mut world, "2026.10.4", "4", days(-400));
    assert_eq!(says(&world), None);
}

#[test]
fn an_approved_image_that_a_guest_waits_for_and_that_is_not_here_is_missing() {
    let mut world = world(1);
    let lacks = |world: &World| missing(&world.inputs()).into_iter().collect::<Vec<_>>();
    world.desired[0].golden = "2026.12.1".parse().unwrap();
    sign(&mut world, "2026.12.1", "5");
    assert_eq!(lacks(&world), [], "the guest is there already");
    world.records.guests.clear();
    world.observed.guests.clear();
    assert_eq!(lacks(&world), [("2026.12.1".parse().unwrap(), bytes("5"))]);
    let plan = world.plan();
    assert!(plan.held.is_empty(), "nothing more is to be signed: {:?}", plan.held);
    // What was signed for last is the one.
    sign(&mut world, "2026.12.1", "6");
    assert_eq!(lacks(&world), [("2026.12.1".parse().unwrap(), bytes("6"))]);
    built(&mut world, "2026.12.1", "6", at(-100));
    assert_eq!(lacks(&world), []);
    let gone = GoldenFact::Unread("no such file".to_owned());
    world.observed.goldens.insert("2026.12.1".parse().unwrap(), gone);
    assert_eq!(lacks(&world).len(), 1, "pruned since");
    world.records.releases.clear();
    assert_eq!(lacks(&world), [], "nobody approved it");
}
