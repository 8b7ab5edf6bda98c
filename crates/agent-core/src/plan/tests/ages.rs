//! Tests of the ages that a report states.

use jiff::SignedDuration;

use super::*;

/// Every ten seconds.
const INTERVAL_S: u32 = 10;

/// What is reported of guest 300 when its facts are as old as this, in seconds.
fn reported(power_s: i64, configuration_s: i64) -> (Option<Timestamp>, Option<Timestamp>) {
    let mut world = world(1);
    let at = world.observed.at;
    let ago = |seconds| at.checked_sub(SignedDuration::from_secs(seconds)).unwrap();
    world.observed.times.round = Some(ago(power_s));
    world.observed.times.configurations = [(vmid(300), ago(configuration_s))].into();
    let inputs = world.inputs();
    let guest = report::guests(&inputs, &plan(&inputs), (&BTreeMap::new(), INTERVAL_S)).remove(0);
    (guest.run_as_of, guest.configuration_as_of)
}

#[test]
fn a_lock_is_reported_with_its_first_sight() {
    let mut world = world(1);
    let at = world.observed.at;
    let since = at.checked_sub(SignedDuration::from_secs(90)).unwrap();
    let reported = |world: &World| {
        let inputs = world.inputs();
        report::guests(&inputs, &plan(&inputs), (&BTreeMap::new(), INTERVAL_S)).remove(0).lock
    };
    assert_eq!(reported(&world), None);
    world.observed.guests.get_mut(&vmid(300)).unwrap().lock = Some("backup".to_owned());
    assert_eq!(reported(&world).unwrap().since, at, "nothing older is known");
    world.observed.times.locks = [(vmid(300), since)].into();
    let lock = reported(&world).unwrap();
    assert_eq!((lock.kind.as_str(), lock.since), ("backup", since));
}

#[test]
fn a_fact_names_its_time_when_it_is_older_than_the_bound() {
    let at = world(1).observed.at;
    let ago = |seconds| at.checked_sub(SignedDuration::from_secs(seconds)).ok();
    assert_eq!(reported(30, 130), (None, None));
    assert_eq!(reported(31, 130), (ago(31), None));
    assert_eq!(reported(30, 131), (None, ago(131)));
}

/// Until the next observation a fact without a time grows older by one interval: the host's bounds include that.
#[test]
fn the_bounds_hold_until_the_next_observation() {
    let world = world(1);
    let host = report::host(&"pve1".parse().unwrap(), &world.inputs(), INTERVAL_S).unwrap();
    let ages = host.ages.unwrap();
    assert_eq!((ages.power_s, ages.configuration_s), (30 + INTERVAL_S, 130 + INTERVAL_S));
    assert_eq!((ages.storage_s, ages.version_s), (140, 3_620));
}

#[test]
fn a_guest_that_was_asked_singly_is_as_old_as_the_answer() {
    let mut world = world(1);
    let at = world.observed.at;
    let ago = |seconds| at.checked_sub(SignedDuration::from_secs(seconds)).unwrap();
    world.observed.times.round = Some(ago(300));
    world.observed.times.power = [(vmid(300), ago(5))].into();
    let inputs = world.inputs();
    let reports = report::guests(&inputs, &plan(&inputs), (&BTreeMap::new(), INTERVAL_S));
    assert_eq!(reports[0].run_as_of, None);
}
