//! Tests of guests signed for a newer image.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::args;
use holdfast_protocol::report::Health;
use holdfast_protocol::root_disk::{
    Coverage, LeftBehind, RootDiskData, RootDiskItem, RootDiskKind, RootDiskPath,
};

use super::*;
use crate::model::records::{HelloRecord, ReportedConditions};
use crate::operation::Target;
use crate::plan::proved_guest::Stays;
use crate::plan::rebase::{Parts, parts};

fn newer(world: &mut World) {
    let golden = world.policy.goldens.values().next().unwrap().clone();
    let golden = Golden { sha256: Some("cd".repeat(32).try_into().unwrap()), ..golden };
    world.policy.goldens.insert("2026.12.1".parse().unwrap(), golden);
}

fn judged(world: &World, version: &str, sha256: &str) -> Result<Parts, Stays> {
    judged_with(world, (version, sha256), LeftBehind::Unlisted)
}

fn judged_with(world: &World, (version, sha256): (&str, &str), leaves: LeftBehind) -> Result<Parts, Stays> {
    let (inputs, target) =
        (world.inputs(), Target { uid: uid(1), name: "web-1".parse().unwrap(), vmid: vmid(300) });
    let args = args::RebaseGuest {
        version: version.parse().unwrap(),
        sha256: sha256.repeat(32).try_into().unwrap(),
        leaves,
    };
    let Detail::Known(facts) = &world.observed.guests[&vmid(300)].detail else { panic!("it is known") };
    parts(&Context::new(&inputs), &args, (target, facts))
}

#[test]
fn every_volume_but_the_root_disk_moves_with_its_mount() {
    let mut world = world(2);
    newer(&mut world);
    let parts = judged(&world, "2026.12.1", "cd").unwrap();
    let volumes: Vec<(u8, &str, &str)> =
        parts.volumes.iter().map(|one| (one.slot, one.path.as_str(), one.volume.as_str())).collect();
    assert_eq!(volumes, [(0, "/srv/db", "fast:300/vm-300-disk-1.raw")]);
    assert_eq!(parts.image.sha256.as_str(), "cd".repeat(32));
    let sizes = parts.successor.sizes;
    assert_eq!((sizes.memory.get(), sizes.cores.unwrap().get(), sizes.rootfs.get()), (512, 2, 8));
}

/// Each with its code, and with a word of its reason.
#[test]
fn what_cannot_be_put_on_a_newer_image_is_refused_with_its_reason() {
    type Case = (&'static str, &'static str, fn(&mut World), ErrorCode, &'static str);
    let cases: [Case; 10] = [
        ("2026.11.1", "ab", |_| {}, ErrorCode::Range, "is not newer"),
        ("2026.10.9", "ab", |_| {}, ErrorCode::Range, "is not newer"),
        ("2026.12.2", "cd", |_| {}, ErrorCode::GoldenUnapproved, "names its archive"),
        ("2026.12.1", "ef", |_| {}, ErrorCode::TargetChanged, "not the one that was signed"),
        (
            "2026.12.1",
            "cd",
            |world| {
                let version = "2026.12.1".parse().unwrap();
                let golden = world.policy.goldens.get_mut(&version).unwrap();
                golden.sha256 = None;
                let seen = crate::model::observed::GoldenFact::Is("cd".repeat(32).try_into().unwrap());
                world.observed.goldens.insert(version, seen);
            },
            ErrorCode::GoldenUnapproved,
            "sign for the image first",
        ),
        (
            "2026.12.1",
            "cd",
            |world| world.records.snapshots.push(snapshot(1, "before", 60)),
            ErrorCode::Locked,
            "no volume that a snapshot holds",
        ),
        (
            "2026.12.1",
            "cd",
            |world| {
                let stray = VolumeId::new("fast:300/vm-300-disk-9.raw");
                world.facts(300).volumes.insert(stray.clone());
                world.facts(300).detached.insert(stray);
            },
            ErrorCode::Unsupported,
            "mounted nowhere",
        ),
        (
            "2026.12.1",
            "cd",
            |world| {
                let mount = world.facts(300).mounts.values_mut().next().unwrap();
                mount.volume = None;
            },
            ErrorCode::Unsupported,
            "is no volume",
        ),
        (
            "2026.12.1",
            "cd",
            |world| {
                world.observed.golden_roots.insert("2026.12.1".parse().unwrap(), 9 << 30);
            },
            ErrorCode::Range,
            "grow to 9 GiB",
        ),
        (
            "2026.12.1",
            "cd",
            |world| {
                let numbers = (300..=399).map(|number| (vmid(number), uid(7)));
                world.records.used_vmids = numbers.collect();
            },
            ErrorCode::VmidRangeFull,
            "widens vmid_range",
        ),
    ];
    for (version, sha256, change, code, text) in cases {
        let mut world = world(2);
        newer(&mut world);
        change(&mut world);
        match judged(&world, version, sha256) {
            Err(Stays::Refused(problem)) => {
                assert_eq!(problem.code, code, "{problem}");
                assert!(problem.message.contains(text), "{problem}");
            }
            other => panic!("{version} {text}: {other:?}"),
        }
    }
}

/// By what the guest reports now, whatever was reported when an operator looked.
#[test]
fn data_on_the_root_disk_stays_behind_only_where_that_was_signed() {
    let path = |text: &str| RootDiskPath::try_from(text.to_owned()).unwrap();
    let item = |text: &str| RootDiskItem { kind: RootDiskKind::Database, path: path(text), bytes: 1 << 30 };
    let listed = |text: &str| LeftBehind::Listed([path(text)].into());
    let judge = |items: Option<Vec<RootDiskItem>>, leaves: LeftBehind| {
        let mut world = world(2);
        newer(&mut world);
        let at = world.inputs().now;
        let data = items.map(|items| RootDiskData { at, coverage: Coverage::Whole, items });
        world.records.guests[0].hello = Some(HelloRecord {
            version: "1".to_owned(),
            health: Health::Well,
            boot_id: "b".to_owned(),
            build: None,
            reported: ReportedConditions { root_disk: data, ..ReportedConditions::default() },
            at,
        });
        match judged_with(&world, ("2026.12.1", "cd"), leaves) {
            Ok(_) => None,
            Err(Stays::Refused(problem)) => Some((problem.code, problem.message)),
            Err(Stays::Waits) => panic!("it waits"),
        }
    };
    let mysql = || vec![item("/var/lib/mysql")];
    assert_eq!(judge(Some(Vec::new()), LeftBehind::Nothing), None);
    assert_eq!(judge(Some(mysql()), listed("/var/lib/mysql")), None);
    assert_eq!(judge(None, LeftBehind::Unlisted), None);
    for (items, leaves, word) in [
        (Some(mysql()), LeftBehind::Nothing, "/var/lib/mysql (database"),
        (Some(mysql()), LeftBehind::Unlisted, "/var/lib/mysql"),
        (Some(mysql()), listed("/srv/wiki"), "/var/lib/mysql"),
        (None, LeftBehind::Nothing, "reported nothing of it"),
    ] {
        let (code, text) = judge(items, leaves).unwrap();
        assert_eq!(code, ErrorCode::RootDiskData);
        assert!(text.contains(word) && text.contains("--leave-behind"), "{text}");
    }
}

/// In the middle of it the new container carries the mark of its guest: nothing is done to either.
#[test]
fn neither_container_is_acted_on_while_it_is_under_way() {
    let mut world = world(2);
    restored_copy::being_swapped(&mut world);
    world.records.open[0].kind = OperationKind::RebaseGuest;
    world.records.copies[0].stage = CopyStage::Making;
    let plan = world.plan();
    assert!(plan.actions.iter().all(|action| action.operation.uid() != uid(1)), "{:?}", plan.actions);
}
