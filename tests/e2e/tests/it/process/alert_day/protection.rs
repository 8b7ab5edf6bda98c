//! A day of backups, restore tests and guest agents.

use e2e::document;
use serde_json::{Value, json};

use super::super::jobs::{key, lay_down};
use super::super::stand::well;
use super::fault::{ACME, Fault, Hears, Moment, OPS};
use super::hands::{by_hand, edit, now, records, vmid};
use super::player::Day;
use super::settings::HubBackup;

const OF_ACME: Hears = [&[OPS, ACME]; 2];
const PLAIN: Hears = [&[OPS]; 2];

#[rustfmt::skip]
const SCRIPT: &[Fault] = &[
    Fault { code: "GUEST_CRASHED", of: "box1, game of acme", to: OF_ACME, rounds: [1, 3], why: "it stopped, and every start fails", act: crash },
    Fault { code: "POLICY_UNMET", of: "box1, policy:away", to: PLAIN, rounds: [1, 3], why: "a policy names a target that is not attached", act: faulty_document },
    Fault { code: "CONTROLLER_UNAPPROVED", of: "box1, game of acme", to: OF_ACME, rounds: [1, 3], why: "a document names a guest agent that no operator approved", act: nothing },
    Fault { code: "NEEDS_SIGNATURE", of: "box1, game of acme", to: OF_ACME, rounds: [1, 3], why: "that approval waits", act: nothing },
    Fault { code: "BACKUP_FAILED", of: "box1, files (local) of acme", to: OF_ACME, rounds: [1, 2], why: "a backup left no archive", act: lost_archive },
    Fault { code: "GUEST_BROKEN", of: "box1, game of acme", to: OF_ACME, rounds: [2, 3], why: "it was started five times on record", act: broken },
    Fault { code: "RESTORE_TEST_OVERDUE", of: "box1, docs (local) of umbrella", to: PLAIN, rounds: [2, 3], why: "by its records it was promised ten days ago", act: promise },
    Fault { code: "UPDATE_HELD", of: "box1, docs of umbrella", to: PLAIN, rounds: [2, 3], why: "an approved guest agent is not on the host", act: approval },
];

/// Names and customers, by their numbers from 1.
const GUESTS: [(&str, &str); 4] =
    [("files", "acme"), ("media", "umbrella"), ("docs", "umbrella"), ("game", "acme")];

/// Bytes that no operator approved, and bytes that one did.
const STRANGE: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
const APPROVED: &str = "00000000000000000000000000000000000000000000000000000000000000bb";

/// Starts after which a guest counts as broken.
const STARTS: usize = 5;

const DAY_US: i64 = 24 * 3_600 * 1_000_000;

fn nothing(_: &mut Day, _: Moment) {}

/// A minute that begins within 15 to 75 seconds.
fn soon() -> String {
    let minute = (now().as_secs() + 75) / 60 % 1_440;
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

fn guests(day: &Day) -> Vec<Value> {
    let ground = day.stand.stage.ground();
    let numbers = 1..=u8::try_from(GUESTS.len()).unwrap();
    let made = numbers
        .zip(GUESTS)
        .map(|(number, (name, customer))| document::guest(&ground, number, name, customer));
    made.collect()
}

fn tier(target: &str, at: &str) -> Value {
    let schedule = json!({ "at": [at], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    json!({ "target": target, "schedule": schedule, "retention": { "keep": { "last": 9 } }, "consistency": "crash" })
}

/// The hour of the backups is kept for the end.
fn at(day: &Day) -> String {
    let file = day.stand.stage.folder().join("at");
    if !file.exists() {
        std::fs::write(&file, soon()).unwrap();
    }
    std::fs::read_to_string(file).unwrap()
}

/// The document: a tier that nothing is attached for, and guest agents that guests are to have.
fn applies(day: &Day, unmet: &[&str], controllers: &[(&str, &str)]) {
    let at = at(day);
    let mut tested = tier("backup2", &at);
    tested["restore_test_days"] = json!(7);
    let mut policies = vec![
        json!({ "name": "nightly", "tiers": { "local": tier("backup2", &at) } }),
        json!({ "name": "tested", "tiers": { "local": tested } }),
    ];
    policies.extend(
        unmet.iter().map(|target| json!({ "name": "away", "tiers": { "local": tier(target, &at) } })),
    );
    let mut guests = guests(day);
    for guest in &mut guests {
        let name = guest["name"].as_str().unwrap().to_owned();
        match name.as_str() {
            "files" | "media" => guest["policy"] = json!("nightly"),
            "docs" => guest["policy"] = json!("tested"),
            _ => {}
        }
        for (_, sha256) in controllers.iter().filter(|(of, _)| *of == name) {
            guest["controller"] = json!({ "version": "99.0.0", "sha256": sha256 });
        }
    }
    let document =
        json!({ "poll_interval_s": 5, "alarm_after_s": 60, "policies": policies, "guests": guests });
    day.stand.stage.apply(&document, "the day").unwrap();
}

fn faulty_document(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => applies(day, &["usb-1"], &[("game", STRANGE)]),
        Moment::End => applies(day, &[], &[]),
    }
}

fn crash(day: &mut Day, moment: Moment) {
    let vmid = vmid(&day.stand, "game");
    match moment {
        Moment::Begin => {
            let failure = json!({ "arm": { "fault": "fail-worker", "task": "vzstart", "phase": "", "text": "no device" } });
            let mut orders = vec![failure; 4 * STARTS];
            orders.push(edit(&json!({ "edit": "stop", "vmid": vmid })));
            by_hand(&day.stand, &orders);
        }
        Moment::End => {
            by_hand(&day.stand, &[json!("clear")]);
            drop(day.stand.stage.agent_does(&["parked", "retry", "game"]).unwrap());
        }
    }
}

fn lost_archive(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => {
            let vmid = vmid(&day.stand, "files");
            by_hand(&day.stand, &[json!({ "arm": { "fault": "no-archive", "vmid": vmid } })]);
        }
        // It is tried again after a minute.
        Moment::End => {}
    }
}

/// The records of an agent that does not run are changed.
fn changes_records(day: &mut Day, sql: &str) {
    day.stand.stage.kill_agent().unwrap();
    records(&day.stand).execute_batch(sql).unwrap();
    day.stand.stage.start_agent(None).unwrap();
}

/// More starts like those that failed.
fn broken(day: &mut Day, moment: Moment) {
    if moment == Moment::Begin {
        let one = "INSERT INTO operation (id, kind, guest, version, spec, generation, opened_at, ended_at, outcome, message)
            SELECT lower(hex(randomblob(4)) || '-0000-4000-8000-' || hex(randomblob(6))), kind, guest, version, spec, generation,
                   opened_at, ended_at, outcome, message
            FROM operation WHERE kind = 'start' AND outcome = 'undone' ORDER BY serial DESC LIMIT 1;
            UPDATE operation_hold SET ended = 1 WHERE operation = last_insert_rowid();";
        changes_records(day, &one.repeat(STARTS));
    }
}

fn promise(day: &mut Day, moment: Moment) {
    let sign = match moment {
        Moment::Begin => '-',
        Moment::End => '+',
    };
    let days = 10 * DAY_US;
    let sql = format!(
        "UPDATE tier SET since = since {sign} {days} WHERE guest = (SELECT uid FROM guest WHERE name = 'docs');"
    );
    changes_records(day, &sql);
}

/// What an operator signed for long ago is in the records.
fn approval(day: &mut Day, moment: Moment) {
    if moment == Moment::Begin {
        let sql = format!("INSERT INTO release VALUES ('controller', '99.0.0', '{APPROVED}', 'ada', 0);");
        changes_records(day, &sql);
        applies(day, &["usb-1"], &[("game", STRANGE), ("docs", APPROVED)]);
    }
}

#[test]
fn faults_of_backups_restore_tests_and_guest_agents() {
    let mut day = Day::begin(2, HubBackup::Taken);
    let desk = tempfile::tempdir().unwrap();
    lay_down(&day.stand, &key(desk.path()));
    day.stand.stage.start_agent(None).unwrap();
    let document = json!({ "poll_interval_s": 5, "alarm_after_s": 60, "guests": guests(&day) });
    day.stand.stage.apply(&document, "all guests").unwrap();
    let made = |guests: &[Value]| guests.iter().filter(|guest| well(guest)).count() == GUESTS.len();
    day.stand.stage.guests_until("all guests", made).unwrap();
    day.plays(SCRIPT);
}
