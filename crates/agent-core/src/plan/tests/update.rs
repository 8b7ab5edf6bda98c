//! Who exchanges its controller, and what keeps everybody else.

use holdfast_protocol::desired::DesiredController;
use holdfast_protocol::job::act::ReleaseKind;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::Health;
use jiff::SignedDuration;

use super::*;
use crate::model::observed::MissingController;
use crate::model::records::{
    BackupRecord, BackupWhy, ControllerOutcome, ControllerTrial, ControllerVerdict, HelloRecord,
    ReleaseRecord, VolumeId,
};
use crate::model::request::{Ask, QueuedRequest};
use crate::plan::guest_requests::Answer;

const NEW: &str = "cd";

fn goal(version: &str, pair: &str) -> DesiredController {
    let sha256 = pair.repeat(32).try_into().unwrap();
    DesiredController { version: version.to_owned().try_into().unwrap(), sha256 }
}

fn digest(pair: &str) -> crate::model::policy::Sha256Hex {
    pair.repeat(32).try_into().unwrap()
}

/// So many guests that speak, and are to have a controller that may run and is stored on the host.
fn world(count: u32) -> World {
    let mut world = super::world(count);
    for (guest, record) in world.desired.iter_mut().zip(&mut world.records.guests) {
        guest.controller = Some(goal("0.2.0", NEW));
        record.hello = Some(HelloRecord {
            reported: Default::default(),
            version: "0.1.0".to_owned(),
            health: Health::Well,
            boot_id: "b".to_owned(),
            build: Some(digest("ab")),
            at: at(0),
        });
    }
    for (version, pair) in [("0.2.0", NEW), ("0.1.0", "ab")] {
        let (kind, version) = (ReleaseKind::Controller, version.to_owned().try_into().unwrap());
        world.records.releases.push(ReleaseRecord { kind, version, sha256: digest(pair) });
    }
    world.observed.controllers.insert(digest(NEW), 9);
    world
}

fn updates(plan: &Plan) -> Vec<GuestUid> {
    let is = |action: &&Action| action.operation.kind() == OperationKind::UpdateController;
    plan.actions.iter().filter(is).map(|action| action.operation.uid()).collect()
}

fn reported(plan: &Plan, code: ErrorCode) -> Vec<String> {
    let all = plan.verdicts.iter().flat_map(|verdict| &verdict.conditions);
    all.filter(|condition| condition.code == code).map(|condition| condition.message.clone()).collect()
}

#[test]
fn one_guest_at_a_time_on_a_box_the_first_one_first() {
    let mut w = world(3);
    let plan = w.plan();
    assert_eq!(updates(&plan), [uid(1)]);
    assert!(reported(&plan, ErrorCode::ControllerWaits).is_empty(), "who waits for its turn is no news");
    let Operation::UpdateController(update) = &plan.actions[0].operation else { panic!("{plan}") };
    assert_eq!((update.sha256.clone(), update.pace_s), (digest(NEW), 60));
    assert!(update.snapshot.expires_at.is_some());
    w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::UpdateController, guest: uid(1) });
    assert!(updates(&w.plan()).is_empty(), "while one tries it, nobody else does");
    w.records.open.clear();
    w.records.guests[0].hello.as_mut().unwrap().build = Some(digest(NEW));
    assert_eq!(updates(&w.plan()), [uid(2)], "the next one when it came up");
}

fn verdict(guest: u32, outcome: ControllerOutcome, why: &str) -> ControllerVerdict {
    ControllerVerdict {
        sha256: digest(NEW),
        version: "0.2.0".to_owned().try_into().unwrap(),
        guest: uid(guest),
        outcome,
        why: why.to_owned(),
        at: at(0),
    }
}

#[test]
fn a_build_is_bad_for_its_guest_and_for_all_after_a_second() {
    let mut w = world(4);
    w.records.controller_verdicts.push(verdict(1, ControllerOutcome::Bad, "it is not well"));
    let plan = w.plan();
    assert_eq!(updates(&plan), [uid(2)], "one guest says nothing about the others");
    let words = reported(&plan, ErrorCode::ControllerBad);
    assert!(words.len() == 1 && words[0].contains("did not come up here (it is not well)"), "{words:?}");
    w.records.controller_verdicts.push(verdict(2, ControllerOutcome::Bad, "not well either"));
    let plan = w.plan();
    assert!(updates(&plan).is_empty());
    let words = reported(&plan, ErrorCode::ControllerBad);
    let [one, two] = [0, 1].map(|at: usize| w.records.guests[at].name.clone());
    let named = format!("in guests {one} (it is not well) and {two} (not well either)");
    assert!(words.len() == 4 && words.iter().all(|words| words.contains(&named)), "{words:?}");
    // Another one is another one.
    w.desired[1].controller = Some(goal("0.2.0", "ef"));
    w.records.releases[0].sha256 = digest("ef");
    w.observed.controllers.insert(digest("ef"), 9);
    assert_eq!(updates(&w.plan()), [uid(2)]);
}

#[test]
fn one_silent_guest_waits_for_a_person_and_the_rest_goes_on() {
    let mut w = world(4);
    w.records.controller_verdicts.push(verdict(1, ControllerOutcome::Silent, "nobody is heard"));
    let plan = w.plan();
    assert_eq!(updates(&plan), [uid(2)]);
    let words = reported(&plan, ErrorCode::ControllerSilent);
    assert!(words.len() == 1 && words[0].contains("pct exec 300 -- systemctl status guestd"), "{words:?}");
    assert!(reported(&plan, ErrorCode::ControllerBad).is_empty(), "silence is no verdict");
    // It speaks again, with what it had before: it is silent no more, and the build is not tried there again.
    w.records.guests[0].hello.as_mut().unwrap().at = at(1);
    let plan = w.plan();
    assert_eq!(updates(&plan), [uid(2)]);
    assert!(reported(&plan, ErrorCode::ControllerSilent).is_empty());
    assert!(reported(&plan, ErrorCode::ControllerWaits)[0].contains("the one before is back"));
}

#[test]
fn two_guests_in_trouble_hold_a_build_until_a_person_looked() {
    for second in [ControllerOutcome::Silent, ControllerOutcome::Bad] {
        let mut w = world(4);
        w.records.controller_verdicts.push(verdict(1, ControllerOutcome::Silent, "nobody is heard"));
        w.records.controller_verdicts.push(verdict(2, second, "the second"));
        let plan = w.plan();
        assert!(updates(&plan).is_empty(), "{plan}");
        assert_eq!(reported(&plan, ErrorCode::ControllerWaits).len(), 2, "the two that did not try it");
        // With the controller of before nothing is answered.
        w.records.guests[0].hello.as_mut().unwrap().at = at(1);
        assert!(updates(&w.plan()).is_empty());
        // The first is heard with the new one: one in trouble is not two.
        w.records.guests[0].hello.as_mut().unwrap().at = at(1);
        w.records.guests[0].hello.as_mut().unwrap().build = Some(digest(NEW));
        assert_eq!(updates(&w.plan()), [uid(3)]);
    }
}

#[test]
fn what_no_one_signed_for_is_held_with_what_to_sign() {
    let mut w = world(1);
    w.records.releases.remove(0);
    let plan = w.plan();
    assert!(updates(&plan).is_empty());
    assert!(reported(&plan, ErrorCode::ControllerUnapproved)[0].contains(&NEW.repeat(32)));
    let draft = match &plan.held[0].remedy {
        crate::gate::pending_approval::Remedy::Sign(draft) => draft.to_json().unwrap(),
        other => panic!("{other:?}"),
    };
    assert!(draft.contains("approve_release") && draft.contains(&NEW.repeat(32)), "{draft}");
}

/// Nothing is rolled back, so what no backup holds is no reason to wait.
#[test]
fn a_guest_with_bulk_volumes_is_exchanged_as_any() {
    let mut w = world(1);
    let bulk = serde_json::json!({ "name": "media", "mount": "/srv/media", "size_gib": 1,
        "kind": { "bulk": { "none": "rebuilt from the origin" } } });
    w.desired[0].volumes.push(serde_json::from_value(bulk).unwrap());
    let plan = w.plan();
    let update = |action: &Action| matches!(action.operation, Operation::UpdateController(_));
    assert!(plan.actions.iter().any(update) || !plan.actions.is_empty(), "{plan}");
    assert!(reported(&plan, ErrorCode::ControllerWaits).is_empty(), "{plan}");
}

/// Its previous controller knew no way back: it hears the verdict, and runs the bad build on.
#[test]
fn a_guest_that_runs_a_bad_build_on_is_reported() {
    let mut w = world(1);
    w.records.controller_verdicts.push(verdict(1, ControllerOutcome::Bad, "it is not well"));
    let hello = w.records.guests[0].hello.as_mut().unwrap();
    hello.build = Some(digest(NEW));
    let plan = w.plan();
    assert!(reported(&plan, ErrorCode::ControllerBad).is_empty(), "it hears of it with its next hello");
    w.records.guests[0].hello.as_mut().unwrap().at = at(0) + SignedDuration::from_mins(3);
    let words = reported(&w.plan(), ErrorCode::ControllerBad);
    assert!(
        words.len() == 1 && words[0].contains("runs it still: the one before comes back with `pct exec 300"),
        "{words:?}"
    );
}

/// What keeps a guest, and whether it is reported to the operator.
#[test]
fn what_is_not_here_or_not_newer_is_left_as_it_is() {
    let kept = |change: fn(&mut World), words: &str| {
        let mut w = world(1);
        change(&mut w);
        let plan = w.plan();
        assert!(updates(&plan).is_empty(), "{words}: {plan}");
        let reported = reported(&plan, ErrorCode::ControllerWaits).join("; ");
        assert!(reported.contains(words) && reported.is_empty() == words.is_empty(), "{words}: {reported}");
    };
    kept(|w| w.observed.controllers.clear(), "it is fetched from the hub");
    kept(
        |w| {
            w.observed.controllers.clear();
            w.observed.missing_controllers.insert(digest(NEW), MissingController::NotAtHub);
        },
        "`holdfast release upload` at the hub, or `agentd release import FILE --version 0.2.0`",
    );
    kept(
        |w| {
            w.observed.controllers.clear();
            let full = MissingController::Failed("the disk is full".to_owned());
            w.observed.missing_controllers.insert(digest(NEW), full);
        },
        "could not be fetched from the hub (the disk is full)",
    );
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().version = "0.3.0".to_owned(), "is older than 0.3.0");
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().version = "main".to_owned(), "is not known");
    kept(|w| w.records.guests[0].hello = None, "");
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().at = at(0) - SignedDuration::from_hours(1), "");
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().build = None, "");
    kept(|w| w.seen(300).lock = Some("backup".to_owned()), "");
    kept(
        |w| w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::Backup, guest: uid(1) }),
        "",
    );
    kept(
        |w| {
            let parked = ParkedOperation {
                id: op(9),
                kind: OperationKind::UpdateController,
                guest: uid(2),
                about: uid(2),
                message: "look".to_owned(),
            };
            w.records.parked.push(parked);
        },
        "",
    );
    kept(
        |w| {
            let failed = Attempts {
                guest: uid(1),
                kind: OperationKind::UpdateController,
                failed: 3,
                last: at(0),
                message: "a storage without snapshots".to_owned(),
            };
            w.records.attempts.push(failed);
        },
        "a storage without snapshots",
    );
}

#[test]
fn a_guest_that_came_back_silent_is_reported_as_that_and_kept_as_any() {
    let mut world = super::world(2);
    world.records.silent.insert(uid(1), "no hello came".to_owned());
    let plan = world.plan();
    assert_eq!(reported(&plan, ErrorCode::ControllerSilent), ["no hello came"]);
    assert!(plan.actions.is_empty(), "{plan}");
}

fn backups(plan: &Plan) -> Vec<GuestUid> {
    let is = |action: &&Action| action.operation.kind() == OperationKind::Backup;
    plan.actions.iter().filter(is).map(|action| action.operation.uid()).collect()
}

fn backup(n: u32, taken_at: Timestamp) -> BackupRecord {
    BackupRecord {
        archive: VolumeId::new(format!("backup2:backup/{n}")),
        guest: uid(n),
        vmid: vmid(299 + n),
        storage: "backup2".parse().unwrap(),
        bytes: 1 << 20,
        taken_at,
        taken_by: op(u128::from(n)),
        why: BackupWhy::Asked,
        tier: None,
        point: None,
        sealed: None,
        missing_since: None,
        took: None,
        label: None,
        mounts: None,
        hardware: None,
        disks: None,
    }
}

/// Two guests that want a backup of at most a day first, on a host with a storage for backups.
fn careful() -> World {
    let mut w = world(2);
    for guest in &mut w.desired {
        guest.backup_before_exchange_h = Some(24.try_into().unwrap());
    }
    w.policy.backup_storage = Some("backup2".parse().unwrap());
    w
}

#[test]
fn a_backup_comes_first_where_the_document_asks_for_one() {
    let mut w = careful();
    let plan = w.plan();
    assert_eq!((updates(&plan), backups(&plan)), (vec![], vec![uid(1)]), "one guest at a time: {plan}");
    assert!(reported(&plan, ErrorCode::ControllerWaits).is_empty(), "its backup begins");
    assert!(plan.actions[0].reason.contains("before the exchange for controller 0.2.0"), "{plan}");
    // The one of its making, an old one, one whose storage does not list it any more, and one of another guest are none.
    let mut missing = backup(1, at(-60));
    missing.missing_since = Some(at(-30));
    let mut of_its_making = backup(1, at(-60));
    of_its_making.why = BackupWhy::First;
    let others =
        [of_its_making, backup(1, at(-24 * 3_600 - 1)), missing, backup(2, at(-60)), backup(1, at(60))];
    w.records.backups = Arc::new(others.to_vec());
    Arc::make_mut(&mut w.records.backups).sort_by_key(|one| one.guest);
    assert_eq!(backups(&w.plan()), [uid(1)]);
    w.records.backups = Arc::new(vec![backup(1, at(-24 * 3_600))]);
    let plan = w.plan();
    assert_eq!((updates(&plan), backups(&plan)), (vec![uid(1)], vec![]), "{plan}");
    // While another guest tries the build, the next one's backup would only grow old.
    w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::UpdateController, guest: uid(1) });
    assert!(w.plan().actions.is_empty());
}

#[test]
fn without_the_setting_no_backup_is_asked_for() {
    let mut w = careful();
    w.desired[0].backup_before_exchange_h = None;
    let plan = w.plan();
    assert_eq!((updates(&plan), backups(&plan)), (vec![uid(1)], vec![]));
}

#[test]
fn what_keeps_the_backup_is_reported_and_the_build_waits() {
    let kept = |change: fn(&mut World), words: &str| {
        let mut w = careful();
        w.desired[1].controller = None;
        change(&mut w);
        let plan = w.plan();
        assert!(updates(&plan).is_empty() && backups(&plan).is_empty(), "{words}: {plan}");
        let reported = reported(&plan, ErrorCode::ControllerWaits).join("; ");
        assert!(
            reported.contains("a backup of at most 24 h must be there first") && reported.contains(words),
            "{words}: {reported}"
        );
    };
    kept(|w| w.policy.backup_storage = None, "this box has no storage for backups");
    kept(
        |w| {
            let full = StorageFact::Active { total: 1 << 30, used: 1 << 30, available: 0 };
            w.observed.storages.insert("backup2".parse().unwrap(), full);
        },
        "none can be taken",
    );
    kept(
        |w| {
            let message = "the backup server is away".to_owned();
            w.records.attempts.push(Attempts {
                guest: uid(1),
                kind: OperationKind::Backup,
                failed: 2,
                last: at(0),
                message,
            });
        },
        "one failed 2 times (the backup server is away): tried again at",
    );
}

/// The guest's timer would be held by a backup, and an exchange that is not decided is no state to back up.
#[test]
fn nothing_is_begun_on_a_guest_that_did_not_hear_the_verdict_yet() {
    let mut w = careful();
    let ask = |w: &mut World, n: u32| {
        let ask = Ask::Backup { tier: None };
        w.records.requests.push(QueuedRequest {
            serial: n.into(),
            id: op(n.into()),
            guest: uid(n),
            ask,
            asked_at: at(-60),
        });
    };
    ask(&mut w, 1);
    ask(&mut w, 2);
    let begun = |w: &World| -> Vec<GuestUid> {
        let begins = |one: RequestDecision| match one.answer {
            Answer::Begin(action) => Some(action.operation.uid()),
            Answer::Refuse(_) => None,
        };
        w.plan().asked.into_iter().filter_map(begins).collect()
    };
    assert_eq!(begun(&w), [uid(1), uid(2)]);
    let trial = |until| ControllerTrial { guest: uid(1), sha256: digest(NEW), until };
    w.records.controller_trials.push(trial(at(1)));
    assert_eq!(begun(&w), [uid(2)]);
    assert_eq!(w.plan().again_at, Some(at(1)), "looked at again when its own timer is over");
    w.records.requests.clear();
    assert_eq!(backups(&w.plan()), [uid(2)]);
    w.records.controller_trials[0] = trial(at(0));
    assert_eq!(backups(&w.plan()), [uid(1)], "no trial is longer");
}
