//! Tests of weakened promises and foreign targets.

use serde_json::{Value, json};

use super::*;

/// Backups may go to one storage, or to none.
fn guard(in_force: Option<&Protection>, goal: &Protection, target: Option<&StorageName>) -> Guarded {
    super::guard(in_force, goal, (&|_, name| target == Some(name), &BackupLimits::default()))
}

fn tier(target: &str, last: u32) -> Value {
    json!({
        "target": target,
        "schedule": { "at": ["02:30"], "zone": "UTC", "jitter_min": 5, "window_min": 60 },
        "retention": { "keep": { "last": last } },
        "consistency": "application", "restore_test_days": 30
    })
}

fn promise(tiers: &Value, volumes: &Value) -> Protection {
    serde_json::from_value(json!({ "tiers": tiers, "volumes": volumes })).unwrap()
}

fn local(target: &str, last: u32) -> Protection {
    promise(&json!({ "local": tier(target, last) }), &json!([]))
}

fn here() -> StorageName {
    "backup2".parse().unwrap()
}

/// A volume's own backups, too, begin only on targets that root named.
#[test]
fn a_volume_is_backed_up_where_root_said_or_where_it_was() {
    let here = here();
    let bulk = |target: &str| {
        let media = json!({ "name": "media", "kind": { "bulk": { "backup_to": target } } });
        promise(&json!({ "local": tier("backup2", 3) }), &json!([{ "name": "db", "kind": "hot" }, media]))
    };
    let none = local("backup2", 3);
    for (in_force, goal, held) in [
        (&none, bulk("backup2"), 0),
        (&none, bulk("elsewhere"), 1),
        (&bulk("backup2"), bulk("elsewhere"), 1),
        (&bulk("elsewhere"), bulk("elsewhere"), 0),
    ] {
        let reported = guard(Some(in_force), &goal, Some(&here));
        assert_eq!(reported.unapproved.len(), held, "{in_force:?} to {goal:?}");
        let media =
            |promise: &Protection| promise.volumes.iter().find(|one| one.name.as_str() == "media").cloned();
        let stays = if held == 0 { media(&goal) } else { media(in_force) };
        assert_eq!(media(&reported.next), stays, "{in_force:?} to {goal:?}");
        assert!(
            reported
                .unapproved
                .iter()
                .all(|one| one.part == "volume media" && one.target.as_str() == "elsewhere")
        );
    }
}

/// A target away from the host that operators approved takes volumes as one on the host does: the tier with that target
/// holds them.
#[test]
fn a_volume_may_go_to_an_approved_target_away_from_the_box() {
    let media = json!({ "name": "media", "kind": { "bulk": { "backup_to": "off1" } } });
    let goal = promise(&json!({ "local": tier("backup2", 3) }), &json!([media]));
    let may = |tier, name: &StorageName| match tier {
        Tier::OffSite => name.as_str() == "off1",
        Tier::Local | Tier::Snapshot => name.as_str() == "backup2",
    };
    let guarded = super::guard(Some(&local("backup2", 3)), &goal, (&may, &BackupLimits::default()));
    assert_eq!((guarded.unapproved.len(), &guarded.next), (0, &goal));
}

/// By every road: only a signature lowers a promise or replaces a key.
#[test]
fn every_weakening_is_an_effect_that_needs_a_signature() {
    let mut text = String::new();
    for facet in [
        Facet::Whole,
        Facet::Schedule,
        Facet::Jitter,
        Facet::Window,
        Facet::Retention,
        Facet::Target,
        Facet::Key,
        Facet::Consistency,
        Facet::RestoreTest,
        Facet::Volume,
    ] {
        let effect = effect(facet);
        for road in [Provenance::Document, Provenance::Schedule, Provenance::Update, Provenance::Restore] {
            let verdict = gate(&effect, road, &Approved::default());
            assert!(matches!(verdict, Verdict::NeedsSignature(_)), "{facet:?} by {road:?}: {verdict:?}");
        }
        assert_eq!(gate(&effect, Provenance::SignedJob, &Approved::default()), Verdict::Free);
        text.push_str(&format!("{:<12} {effect:?}\n", format!("{facet:?}")));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_first_promise_is_free_and_every_one_after_it_is_guarded() {
    let here = here();
    let first = guard(None, &local("backup2", 3), Some(&here));
    assert_eq!(
        (first.next.clone(), first.loosened.len(), first.unapproved.len()),
        (local("backup2", 3), 0, 0)
    );
    assert_eq!(first.raised.len(), 1);

    let less = guard(Some(&first.next), &local("backup2", 1), Some(&here));
    assert_eq!(less.next, first.next, "the old one stays");
    assert_eq!(less.intended, local("backup2", 1));
    assert_eq!(less.loosened[0].reason, "customer data would be less protected");
    assert_eq!(less.loosened[0].change.to_string(), "local retention: from 3 last to 1 last");
    assert!(less.raised.is_empty());

    let none = guard(Some(&first.next), &Protection::default(), Some(&here));
    assert_eq!((none.next, none.loosened.len()), (first.next.clone(), 1));
    let more = guard(Some(&first.next), &local("backup2", 9), Some(&here));
    assert_eq!((more.next, more.loosened.len(), more.raised.len()), (local("backup2", 9), 0, 1));
}

#[test]
fn backups_never_begin_to_go_where_no_one_approved() {
    let here = here();
    let strange = guard(None, &local("elsewhere", 3), Some(&here));
    assert_eq!((strange.next.clone(), strange.raised.len()), (Protection::default(), 0));
    assert_eq!(strange.unapproved[0].target.as_str(), "elsewhere");
    assert_eq!(strange.unapproved[0].reason, "no operator approved this storage target");
    assert_eq!(strange.intended, Protection::default(), "no draft brings it about either");

    let nowhere = guard(None, &local("backup2", 3), None);
    assert_eq!((nowhere.next, nowhere.unapproved.len()), (Protection::default(), 1));

    // What is in force keeps its target, and is raised all the same.
    let moved = guard(Some(&local("backup2", 3)), &local("elsewhere", 5), Some(&here));
    assert_eq!((moved.next, moved.unapproved.len(), moved.loosened.len()), (local("backup2", 5), 1, 0));
    // An approved one that is another waits for a signature.
    let other = "backup3".parse().unwrap();
    let moved = guard(Some(&local("backup2", 3)), &local("backup3", 3), Some(&other));
    assert_eq!((moved.next, moved.intended), (local("backup2", 3), local("backup3", 3)));
    assert_eq!(moved.loosened.len(), 1);
    // Where it went all along it may go on, even though root took the approval back.
    let same = guard(Some(&local("backup2", 3)), &local("backup2", 4), Some(&other));
    assert_eq!((same.next, same.unapproved.len()), (local("backup2", 4), 0));

    let volume = |kind: Value| promise(&json!({}), &json!([{ "name": "media", "kind": kind }]));
    let none = volume(json!({ "bulk": { "none": "made again" } }));
    let strange = volume(json!({ "bulk": { "backup_to": "elsewhere" } }));
    let held = guard(Some(&none), &strange, Some(&here));
    assert_eq!((held.next, held.unapproved.len()), (none, 1));
    assert_eq!(guard(None, &strange, Some(&here)).next, Protection::default());
}

#[test]
fn what_is_signed_for_keeps_the_volumes_that_no_one_named() {
    let in_force =
        promise(&json!({ "local": tier("backup2", 3) }), &json!([{ "name": "db", "kind": "hot" }]));
    let goal = promise(&json!({}), &json!([{ "name": "aux", "kind": "hot" }]));
    let found = guard(Some(&in_force), &goal, Some(&here()));
    let names: Vec<&str> = found.intended.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["aux", "db"]);
    // Once that is in force, the same request has nothing left to ask for.
    let after = guard(Some(&found.intended), &goal, Some(&here()));
    assert_eq!((after.loosened.len(), after.raised.len(), &after.next), (0, 0, &found.intended));
}

/// An attacker who owns the hub may send anything, in any order: nothing that is in force becomes weaker, and no target
/// is new.
#[test]
fn no_row_of_documents_weakens_a_guest() {
    let volumes = |kind: Value| json!([{ "name": "db", "kind": kind }]);
    let mut off_site = json!({ "key": vec!["ab"; 32].join(":"), "backup": tier("backup2", 3) });
    let tiers = json!({ "local": tier("backup2", 3), "off_site": off_site.clone() });
    off_site["key"] = json!(vec!["00"; 32].join(":"));
    let start = promise(&tiers, &volumes(json!("hot")));
    let often = json!({ "schedule": tier("x", 1)["schedule"], "retention": "keep_all" });
    let goals = [
        Protection::default(),
        start.clone(),
        promise(
            &json!({ "local": tier("elsewhere", 9) }),
            &volumes(json!({ "bulk": { "none": "to save room" } })),
        ),
        promise(&json!({ "off_site": off_site }), &json!([])),
        promise(&json!({ "local": tier("backup2", 1), "snapshot": often }), &json!([])),
        promise(
            &json!({ "local": tier("backup2", 9) }),
            &volumes(json!({ "bulk": { "backup_to": "elsewhere" } })),
        ),
    ];
    let count = goals.len();
    for row in 0..count.pow(4) {
        let mut now = start.clone();
        for place in 0..4 {
            let goal = &goals[row / count.pow(place) % count];
            now = guard(Some(&now), goal, Some(&here())).next;
        }
        assert_eq!(compare(&start, &now).loosened, [], "{now:?}");
        let text = serde_json::to_string(&now).unwrap();
        assert!(!text.contains("elsewhere") && !text.contains("00:00"), "{text}");
    }
}
