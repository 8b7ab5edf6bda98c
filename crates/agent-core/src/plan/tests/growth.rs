//! Tests of growth: passed, held, signed, and without room.

use holdfast_protocol::id::JobId;
use holdfast_protocol::job::{Act, Draft};
use holdfast_protocol::measure::GuestMeasure;
use holdfast_protocol::size::Cores;

use super::*;
use crate::gate::pending_approval::{PendingApproval, Remedy};
use crate::model::growth::{Amount, Grown, Part, Passed, Permit, UnderWay};

fn small() -> World {
    let mut world = world(2);
    let limits = &mut world.records.growth.limits;
    (limits.disk_gib_per_day, limits.guest_disk_gib_per_day) = (200, 200);
    (limits.memory_mib_per_day, limits.guest_memory_mib_per_day) = (4_096, 4_096);
    world
}

fn root(world: &mut World, gib: u32) {
    world.desired[0].size.rootfs_gib = DiskGib::try_from(gib).unwrap();
}

fn kinds(plan: &Plan) -> Vec<(&'static str, String)> {
    plan.actions.iter().map(|one| (one.operation.kind().as_str(), one.operation.name().to_string())).collect()
}

/// What is reported with the guest at a place of the document.
fn reported(plan: &Plan, place: usize) -> Vec<(ErrorCode, String)> {
    let verdict = plan.verdicts.iter().find(|one| one.wanted == Some(place)).unwrap();
    verdict.conditions.iter().map(|one| (one.code, one.message.clone())).collect()
}

fn draft(plan: &Plan) -> &Draft {
    match &plan.held.as_slice() {
        [PendingApproval { remedy: Remedy::Sign(draft), .. }] => draft,
        other => panic!("{other:?}"),
    }
}

/// What the draft of the plan's one held request lets be done, once it is signed.
fn signed(plan: &Plan) -> Permit {
    let Act::AllowGrowth(args) = &draft(plan).act else { panic!("{:?}", draft(plan)) };
    Permit {
        job: JobId::new(uuid::Uuid::from_u128(70)),
        guest: args.guest,
        name: args.name.clone(),
        from: args.from.as_deref().cloned(),
        to: (*args.to).clone(),
        used: BTreeSet::new(),
    }
}

fn grown(guest: u32, amount: Amount, under_way: UnderWay) -> Grown {
    Grown { guest: uid(guest), at: at(-60), amount, passed: Passed::Budget, under_way }
}

#[test]
fn growth_within_the_day_goes_on_and_is_counted() {
    let mut world = small();
    root(&mut world, 208);
    let plan = world.plan();
    let [Action { operation: Operation::Grow(_), growth: Some(growth), .. }] = plan.actions.as_slice() else {
        panic!("{plan}")
    };
    assert_eq!((&growth.part, growth.amount.disk_gib, growth.passed), (&Part::Rootfs, 200, Passed::Budget));
    assert!(plan.held.is_empty());
}

#[test]
fn growth_beyond_it_is_held_with_its_numbers() {
    let mut world = small();
    world.records.growth.ledger.push(grown(2, Amount { disk_gib: 80, ..Amount::default() }, UnderWay::No));
    root(&mut world, 65_536 / 32);
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let reported = reported(&plan, 0);
    let [(ErrorCode::GrowthHeld, text)] = reported.as_slice() else { panic!("{reported:?}") };
    assert!(text.contains("from 8 to 2048"), "{text}");
    assert!(
        text.contains("it asks 2040 GiB of disk, and 120 of 200 a day are left for all guests"),
        "{text}"
    );
    let permit = signed(&plan);
    let from = permit.from.unwrap();
    assert_eq!((from.rootfs_gib, permit.to.rootfs_gib), (8, 2_048));
    assert_eq!((from.volumes_gib.len(), permit.to.volumes_gib.len()), (1, 1));
    assert_eq!(plan.again_at, Some(at(-60 + 24 * 3_600)), "when the day of the first growth is over");
}

/// The budget uses the time of schedules, which follows no wall clock that leaps.
#[test]
fn a_wall_clock_that_leaps_gives_no_second_day_and_takes_none() {
    let mut world = small();
    world.records.growth.ledger.push(grown(2, Amount { disk_gib: 150, ..Amount::default() }, UnderWay::No));
    root(&mut world, 108);
    let plan_at = |wall: i64, schedules: i64| {
        let time = TrustedTime { at: at(schedules), since: at(schedules), steady: Steady::No };
        plan(&Inputs { now: at(wall), time, ..world.inputs() })
    };
    let day = 24 * 3_600;
    for wall in [0, 2 * day, -2 * day] {
        let held = plan_at(wall, 0);
        assert!(held.actions.is_empty(), "{wall}: {held}");
        assert_eq!(held.again_at, Some(at(wall - 60 + day)), "by the clock that the wait is counted on");
        let [Action { growth: Some(growth), .. }] = &plan_at(wall, day).actions[..] else { panic!("{wall}") };
        assert_eq!(growth.at, at(day), "{wall}");
    }
}

/// A guest that is asked to grow too much is started all the same, and keeps its protection.
#[test]
fn what_is_held_holds_up_nothing_else_of_its_guest() {
    let mut world = small();
    root(&mut world, 2_048);
    world.desired[0].size.memory_mib = MemoryMib::try_from(65_536).unwrap();
    world.seen(300).run = Running::Stopped;
    world.facts(300).protection = Protection::Off;
    world.facts(300).cores = Some(4);
    let plan = world.plan();
    let [Action { operation: Operation::Reconfigure(change), growth: None, .. }] = plan.actions.as_slice()
    else {
        panic!("{plan}")
    };
    assert_eq!((change.memory, change.cores), (None, Some(Cores::try_from(2).unwrap())));
    world.facts(300).protection = Protection::On;
    world.facts(300).cores = Some(2);
    assert_eq!(kinds(&world.plan()), [("start", "web-1".to_owned())]);
}

#[test]
fn a_signature_lets_exactly_what_it_shows_grow_and_each_part_once() {
    let mut world = small();
    root(&mut world, 1_024);
    let permit = signed(&world.plan());
    let passes = |world: &World, permit: &Permit| {
        let mut records = world.records.clone();
        records.growth.permits = vec![permit.clone()];
        let inputs = Inputs { records: &records, ..world.inputs() };
        let plan = plan(&inputs);
        let job = plan.actions.first().and_then(|one| one.growth.as_ref()).map(|growth| growth.passed);
        assert_eq!(plan.actions.is_empty(), !plan.held.is_empty(), "{plan}");
        job == Some(Passed::Signed(permit.job))
    };
    assert!(passes(&world, &permit));
    let but = |change: fn(&mut Permit)| {
        let mut other = permit.clone();
        change(&mut other);
        other
    };
    assert!(!passes(&world, &but(|permit| permit.guest = uid(2))), "another guest");
    assert!(!passes(&world, &but(|permit| permit.name = "web-9".parse().unwrap())), "another name");
    assert!(!passes(&world, &but(|permit| permit.to.rootfs_gib = 2_048)), "another size, even a larger one");
    assert!(!passes(&world, &but(|permit| permit.from.as_mut().unwrap().rootfs_gib = 16)), "from less");
    assert!(!passes(&world, &but(|permit| permit.from = None)), "a guest that was to be made");
    assert!(!passes(&world, &but(|permit| permit.used = BTreeSet::from([Part::Rootfs]))), "used up");
    assert!(passes(&world, &but(|permit| permit.used = BTreeSet::from([Part::Sizes]))), "for another part");
    root(&mut world, 1_025);
    assert!(!passes(&world, &permit), "the document asks for more by now");
}

#[test]
fn a_new_guest_beyond_the_day_is_held_whole_and_made_as_it_was_signed_for() {
    let mut world = small();
    world.records.growth.limits.guests_per_day = 1;
    world.desired.extend([guest(3), guest(4)]);
    let plan = world.plan();
    assert_eq!(kinds(&plan), [("provision", "web-3".to_owned())], "the first one passes");
    assert!(reported(&plan, 3).iter().any(|(code, text)| {
        *code == ErrorCode::GrowthHeld && text.contains("it asks 1 new guests, and 0 of 1 a day are left")
    }));
    let permit = signed(&plan);
    assert_eq!(permit.from, None);
    world.records.growth.permits.push(permit);
    assert_eq!(kinds(&world.plan()).len(), 2);
    world.desired[3].size.cores = Cores::try_from(3).unwrap();
    assert_eq!(kinds(&world.plan()).len(), 1, "not of another size");
}

#[test]
fn nothing_grows_where_there_is_no_room_any_signed() {
    let mut world = small();
    root(&mut world, 1_024);
    let permit = signed(&world.plan());
    world.records.growth.permits.push(permit);
    let fast = |total: u64, available: u64| StorageFact::Active { total, used: total - available, available };
    for (fact, code, text) in [
        (Some(fast(4 << 40, 1_015 << 30)), ErrorCode::StorageFull, "has 1015 GiB left, and it asks 1016 GiB"),
        (Some(fast(520 << 30, 520 << 30)), ErrorCode::StorageFull, "has 520 GiB left"),
        (Some(StorageFact::Unknown), ErrorCode::Unavailable, "how much room storage fast has is not known"),
        (Some(StorageFact::Inactive), ErrorCode::Unavailable, "how much room storage fast has is not known"),
        (None, ErrorCode::Unavailable, "how much room storage fast has is not known"),
    ] {
        let name: holdfast_protocol::id::StorageName = "fast".parse().unwrap();
        match fact {
            Some(fact) => world.observed.storages.insert(name, fact),
            None => world.observed.storages.remove(&name),
        };
        let plan = world.plan();
        assert!(plan.actions.is_empty() && plan.held.is_empty(), "{plan}");
        let reported = reported(&plan, 0);
        assert!(reported.iter().any(|(is, why)| *is == code && why.contains(text)), "{reported:?}");
    }
    world.observed.storages.insert("fast".parse().unwrap(), fast(4 << 40, 1_016 << 30));
    assert_eq!(kinds(&world.plan()), [("grow", "web-1".to_owned())]);
}

/// A thin storage is promised up to the policy's share of it, by all disks together, those under way included.
#[test]
fn a_thin_storage_is_promised_no_more_than_the_policy_lets() {
    let mut world = small();
    let thin = StorageFact::Active { total: 100 << 30, used: 0, available: 100 << 30 };
    world.observed.storages.insert("fast".parse().unwrap(), thin);
    // Two guests with 12 GiB each.
    root(&mut world, 8 + 76);
    world.records.growth.limits.disk_percent = 100;
    assert_eq!(kinds(&world.plan()).len(), 1);
    world.records.growth.ledger.push(grown(2, Amount { disk_gib: 1, ..Amount::default() }, UnderWay::Yes));
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let text = &reported(&plan, 0)[0].1;
    assert!(text.contains("disks were promised 25 GiB, it asks 76 GiB more, and 100 GiB (100 %)"), "{text}");
    world.records.growth.limits.disk_percent = 101;
    assert_eq!(kinds(&world.plan()).len(), 1);
}

#[test]
fn memory_is_promised_no_more_than_the_node_has() {
    let mut world = small();
    world.observed.node.as_mut().unwrap().memory_bytes = 4 << 30;
    // Two guests with 512 MiB each, and 1,024 MiB for the node.
    let memory = |world: &mut World, mib: u32| {
        world.desired[0].size.memory_mib = MemoryMib::try_from(mib).unwrap();
    };
    memory(&mut world, 512 + 2_048);
    assert_eq!(kinds(&world.plan()), [("reconfigure", "web-1".to_owned())]);
    memory(&mut world, 512 + 2_049);
    world.seen(301).run = Running::Stopped;
    world.desired[1].run = RunState::Stopped;
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "one of ours that stands still may be started any time: {plan}");
    let reported = reported(&plan, 0);
    assert!(
        reported.iter().any(|(code, text)| {
            *code == ErrorCode::MemoryFull
                && text.contains("promised 1024 MiB, it asks 2049 MiB more, and 3072 MiB")
        }),
        "{reported:?}"
    );
    world.records.growth.limits.memory_percent = 150;
    assert_eq!(kinds(&world.plan()).len(), 1);
    world.observed.node = None;
    assert!(world.plan().actions.is_empty(), "what is not known is no room");
}

#[test]
fn a_guest_that_is_being_made_counts_once() {
    let mut world = small();
    world.observed.node.as_mut().unwrap().memory_bytes = 4 << 30;
    let making = Amount { guests: 1, memory_mib: 512, disk_gib: 12, ..Amount::default() };
    world.records.growth.ledger.push(grown(2, making, UnderWay::Yes));
    world.desired[0].size.memory_mib = MemoryMib::try_from(512 + 2_048).unwrap();
    assert_eq!(kinds(&world.plan()).len(), 1);
    world.records.growth.ledger[0].guest = uid(9);
    assert!(world.plan().actions.is_empty(), "one that is not seen yet");
}

/// Less gives nothing back: only what becomes more is an amount.
#[test]
fn a_smaller_size_is_no_growth() {
    let mut world = small();
    world.desired[0].size.memory_mib = MemoryMib::try_from(256).unwrap();
    world.facts(300).cores = None;
    let plan = world.plan();
    assert!(matches!(plan.actions.as_slice(), [Action { growth: None, .. }]), "{plan}");
}

#[test]
fn a_volume_is_made_within_the_day_and_held_beyond_it() {
    let mut world = small();
    let mut more = volume("media", json!("hot"));
    more.size_gib = DiskGib::try_from(201).unwrap();
    world.desired[0].volumes.extend([more, volume("cache", json!("hot"))]);
    let plan = world.plan();
    let [Action { operation: Operation::AttachVolume(attach), growth: Some(growth), .. }] =
        plan.actions.as_slice()
    else {
        panic!("{plan}")
    };
    assert_eq!(attach.volume.name.as_str(), "cache", "what fits is not held up");
    assert_eq!((growth.amount.volumes, growth.amount.disk_gib), (1, 4));
    let permit = signed(&plan);
    let media: holdfast_protocol::id::VolumeName = "media".parse().unwrap();
    let of = |measure: &GuestMeasure| measure.volumes_gib.get(&media).copied();
    assert_eq!((permit.from.as_ref().and_then(of), of(&permit.to)), (None, Some(201)));
    world.records.growth.permits.push(permit);
    let plan = world.plan();
    let growth = plan.actions[0].growth.as_ref().unwrap();
    assert_eq!(growth.part, Part::Volume(media));
}
