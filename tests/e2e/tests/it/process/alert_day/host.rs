//! A day of the hub, of a host's parts, and of silence.

use std::time::Duration;

use e2e::wait;
use serde_json::{Value, json};

use super::super::notices::Answer;
use super::fault::{Fault, Hears, Line, Moment, OPS, PAGER, Phase, SECURITY};
use super::hands::{self, records, write};
use super::player::Day;
use super::settings::{HubBackup, take_backup};

const HUB: Hears = [&[OPS, PAGER]; 2];
const URGENT: Hears = [&[OPS, SECURITY]; 2];
const PLAIN: Hears = [&[OPS]; 2];
/// The pager refuses the first notice, and takes the last.
const LATER: Hears = [&[OPS], &[OPS, PAGER]];

#[rustfmt::skip]
const SCRIPT: &[Fault] = &[
    Fault { code: "RECEIVER_FAILING", of: "the hub, receiver:pager", to: PLAIN, rounds: [1, 2], why: "the pager's service answers that it is gone", act: pager },
    Fault { code: "HUB_BACKUP_OLD", of: "the hub", to: HUB, rounds: [1, 2], why: "the folder of the hub's backups is empty", act: backup },
    Fault { code: "TOKEN_EXPIRING", of: "the hub, token:eve", to: LATER, rounds: [1, 2], why: "a token ends within a week", act: token },
    Fault { code: "HOST_NEVER_SEEN", of: "box2", to: PLAIN, rounds: [1, 3], why: "a host was enrolled and does not report", act: second_host },
    Fault { code: "DISK_FAILING", of: "box1, disk:S1", to: URGENT, rounds: [1, 3], why: "a disk says that it is failing", act: disks },
    Fault { code: "DISK_WORN", of: "box1, disk:S2", to: PLAIN, rounds: [1, 3], why: "a disk has used up its writes", act: nothing },
    Fault { code: "TEMPERATURE_HIGH", of: "box1, disk:S3", to: PLAIN, rounds: [1, 3], why: "a disk is hot", act: nothing },
    Fault { code: "TEMPERATURE_HIGH", of: "box1", to: PLAIN, rounds: [1, 3], why: "the processor is hot", act: sensor },
    Fault { code: "MEMORY_ERRORS", of: "box1", to: URGENT, rounds: [1, 3], why: "an error of the memory was not corrected", act: memory },
    Fault { code: "CLOCK_BEHIND", of: "box1", to: PLAIN, rounds: [1, 3], why: "by its records the agent has seen a later time", act: clock },
    Fault { code: "HOST_OFFLINE", of: "box1", to: URGENT, rounds: [2, 3], why: "the agent is killed and stays away", act: agent },
];

/// Ends a hang.
const LONG: Duration = Duration::from_secs(60);

fn nothing(_: &mut Day, _: Moment) {}

fn pager(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => {
            let [code, of] = ["HUB_BACKUP_OLD", "the hub"].map(str::to_owned);
            day.hears(&[Line { to: PAGER.to_owned(), code, of, phase: Phase::Firing }]);
            day.receivers.named(PAGER).answers(Answer::Gone);
        }
        Moment::End => day.receivers.named(PAGER).answers(Answer::Taken),
    }
}

fn backup(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => {}
        Moment::End => take_backup(day.stand.stage.folder()),
    }
}

fn token(day: &mut Day, moment: Moment) {
    let words: &[&str] = match moment {
        Moment::Begin => &["operator", "add", "eve", "--role", "viewer", "--days", "5"],
        Moment::End => &["operator", "revoke", "eve", "--yes"],
    };
    day.stand.stage.holdfast(words).unwrap();
    day.kill_hub();
}

/// It is enrolled before the day, and revoked.
fn second_host(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => {}
        Moment::End => drop(day.stand.stage.holdfast(&["host", "revoke", "box2", "--yes"]).unwrap()),
    }
}

fn answer(serial: &str, more: &Value) -> Value {
    let mut answer = json!({ "smartctl": { "exit_status": 0 }, "serial_number": serial, "smart_status": { "passed": true } });
    let (all, more) = (answer.as_object_mut().unwrap(), more.as_object().unwrap());
    all.extend(more.clone());
    answer
}

/// The file that root's service writes. In the end the three disks were replaced by one.
fn disks(day: &mut Day, moment: Moment) {
    let disks = match moment {
        Moment::Begin => vec![
            answer("S1", &json!({ "smart_status": { "passed": false } })),
            answer("S2", &json!({ "nvme_smart_health_information_log": { "percentage_used": 96 } })),
            answer("S3", &json!({ "temperature": { "current": 84, "drive_trip": 85 } })),
        ],
        Moment::End => vec![answer("S9", &json!({}))],
    };
    let now = hands::now().as_secs();
    let rows = disks.iter().enumerate().map(|(at, answer)| format!("disk /dev/sd{at}\nanswer {answer}\n"));
    let text = format!("holdfast-disks 1 {now}\n{}", rows.collect::<String>());
    write(&day.hardware().join("disks"), &text);
}

fn sensor(day: &mut Day, moment: Moment) {
    let chip = day.hardware().join("hwmon/hwmon0");
    let input = match moment {
        Moment::Begin => "99000\n",
        Moment::End => "45000\n",
    };
    let files = [("name", "coretemp\n"), ("temp1_label", "Package\n"), ("temp1_crit", "100000\n")];
    for (name, text) in files.into_iter().chain([("temp1_input", input)]) {
        write(&chip.join(name), text);
    }
}

/// The board was replaced by one without counters, in the end.
fn memory(day: &mut Day, moment: Moment) {
    let folder = day.hardware().join("edac");
    match moment {
        Moment::Begin => {
            write(&folder.join("mc0/ce_count"), "0\n");
            write(&folder.join("mc0/ue_count"), "1\n");
        }
        Moment::End => std::fs::remove_dir_all(folder).unwrap(),
    }
}

/// A day that was seen and is not reached yet, in the records of an agent that does not run. It starts with them, and with
/// the broken parts: what is there then is read then, and later every two minutes.
fn clock(day: &mut Day, moment: Moment) {
    if moment == Moment::Begin {
        day.stand.stage.kill_agent().unwrap();
    }
    let days = match moment {
        Moment::Begin => 1,
        Moment::End => -1,
    };
    let now = hands::now().as_micros();
    let seen = i64::try_from(now).unwrap() + days * 24 * 3_600 * 1_000_000;
    let sql = "INSERT INTO counter (key, value) VALUES ('latest_time', ?1)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    records(&day.stand).execute(sql, [seen]).unwrap();
    if moment == Moment::Begin {
        day.stand.stage.start_agent(None).unwrap();
    }
}

fn agent(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => drop(day.stand.stage.kill_agent().unwrap()),
        Moment::End => drop(day.stand.stage.start_agent(None).unwrap()),
    }
}

/// A host that is enrolled, with a document, and never runs.
fn enrol_second_host(day: &mut Day, document: &Value) {
    let stage = &day.stand.stage;
    let invite = stage.holdfast(&["host", "invite", "box2"]).unwrap();
    stage.change_state("box1", None).unwrap();
    stage.enrol_with(invite["code"].as_str().unwrap(), &[]).unwrap();
    stage.change_state("box2", Some("box1")).unwrap();
    let file = stage.write_document(document).unwrap();
    let words = ["desired", "apply", "box2", file.to_str().unwrap(), "--yes", "--reason", "it will be used"];
    let output = stage.holdfast_command(&words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn faults_of_the_hub_and_of_a_host_and_its_silence() {
    let mut day = Day::begin(0, HubBackup::Missing);
    let document = json!({ "poll_interval_s": 5, "alarm_after_s": 60, "guests": [] });
    enrol_second_host(&mut day, &document);
    day.stand.stage.start_agent(None).unwrap();
    day.stand.stage.apply(&document, "no guest yet").unwrap();
    let answers = || Ok(day.stand.stage.agent_at_its_listener().map(drop));
    wait::until("the agent answers", LONG, answers).unwrap();
    day.plays(SCRIPT);
}
