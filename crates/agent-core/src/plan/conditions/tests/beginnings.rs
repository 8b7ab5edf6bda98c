//! Tests of the times since when conditions hold.

use crate::model::storage::FirstPoll;

use super::*;

fn crashed() -> Box7 {
    Box7::with_guest(json!({ "run": "stopped" }))
}

/// The reports of these hosts, one after the other, from nothing.
fn reports(hosts: impl IntoIterator<Item = Box7>) -> Vec<ReportedCondition> {
    hosts.into_iter().fold(Vec::new(), |last, host| host.after(&last))
}

#[test]
fn a_condition_that_goes_on_keeps_its_beginning() {
    let later = |second| Box7 { now: at(second), ..crashed() };
    assert_eq!(reports([later(0), later(60), later(600)])[0].since, at(0));
    let well = Box7 { now: at(60), ..Box7::well() };
    assert_eq!(reports([later(0), well, later(600)])[0].since, at(600), "it is another one");
}

#[test]
fn a_clock_that_steps_back_leaves_no_beginning_in_the_future() {
    let at_second = |second| Box7 { now: at(second), ..crashed() };
    assert_eq!(reports([at_second(600), at_second(0)])[0].since, at(0));
    // Neither where the condition cannot be seen at present.
    let mut unseen = Box7 { now: at(0), ..Box7::well() };
    unseen.view.facts.power_unclear.insert(uid(1));
    assert_eq!(reports([at_second(600), unseen])[0].since, at(0));
}

#[test]
fn a_time_that_the_facts_have_counts_and_does_not_move_on() {
    let silent = |second, hello| {
        let silence = json!({ "is": "silent", "since": at(hello) });
        let controller =
            json!({ "version": "1.0.0", "hello_at": at(hello), "health": "well", "silence": silence });
        Box7 { now: at(second), ..Box7::with_guest(json!({ "controller": controller })) }
    };
    assert_eq!(reports([silent(0, -600)])[0].since, at(-600));
    assert_eq!(reports([silent(0, -600), silent(60, -30)])[0].since, at(-600));
    assert_eq!(reports([silent(0, 900)])[0].since, at(0), "no fact is from the future");
}

/// After a restart nothing was observed yet, and what an earlier run reported goes on.
#[test]
fn what_was_not_observed_since_the_start_stays_as_it_was() {
    let mut before = crashed();
    before.view.facts.clock_behind = Some(at(9));
    before.records = Some(RecordsFault::Full("full".to_owned()));
    let last = reports([before]);
    assert_eq!(names(&last), ["CLOCK_BEHIND", "DISK_FULL", "GUEST_CRASHED"]);
    let mut restarted = Box7 { now: at(600), view: HostSnapshot::default(), ..Box7::well() };
    restarted.storage = StorageView::default();
    let again = restarted.after(&last);
    assert_eq!(names(&again), ["CLOCK_BEHIND", "GUEST_CRASHED"], "the records are always known");
    assert!(again.iter().all(|condition| condition.since == at(0)));
    assert_eq!(names(&Box7::well().after(&again)), [""; 0]);
}

#[test]
fn storage_is_known_once_it_was_polled() {
    let target = json!({
        "name": "disk1", "backend": "a disk", "role": "local-backup", "class": "slow", "status": "dropped", "since": at(-60),
        "reason": "it was pulled out"
    });
    let mut lost = Box7::well();
    lost.storage.targets = vec![serde_json::from_value(target).unwrap()];
    let last = lost.after(&[]);
    let mut restarted = Box7::well();
    restarted.storage.looked = FirstPoll::NotYet;
    assert_eq!(names(&restarted.after(&last)), ["STORAGE_GONE"]);
    assert_eq!(names(&Box7::well().after(&last)), [""; 0]);
}
