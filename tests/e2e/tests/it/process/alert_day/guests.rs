//! A day of guests, storages and a Proxmox that hangs.

use std::path::PathBuf;

use e2e::document;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::jobs::{key, lay_down};
use super::super::stand::well;
use super::fault::{ACME, Fault, Hears, Moment, OPS, SECURITY};
use super::hands::{by_hand, configuration, edit, hold_every_stop, signal, uses, vmid};
use super::player::Day;
use super::settings::HubBackup;

const URGENT: Hears = [&[OPS, SECURITY]; 2];
const OF_ACME: Hears = [&[OPS, ACME]; 2];
const PLAIN: Hears = [&[OPS]; 2];

#[rustfmt::skip]
const SCRIPT: &[Fault] = &[
    Fault { code: "GUEST_MISSING", of: "box1, web of acme", to: OF_ACME, rounds: [1, 2], why: "its configuration was removed by hand", act: lose_configuration },
    Fault { code: "CPU_HIGH", of: "box1, mail of acme", to: OF_ACME, rounds: [1, 2], why: "it computes without end", act: processor },
    Fault { code: "MEMORY_HIGH", of: "box1, wiki of umbrella", to: PLAIN, rounds: [1, 2], why: "its memory is full", act: guest_memory },
    Fault { code: "ROOT_DISK_FULL", of: "box1, shop of umbrella", to: PLAIN, rounds: [1, 2], why: "its root disk is nearly full", act: root_disk },
    Fault { code: "MEMORY_HIGH", of: "box1", to: PLAIN, rounds: [1, 2], why: "the memory of the host is full", act: host_memory },
    Fault { code: "STORAGE_FILLING", of: "box1, storage:tank", to: PLAIN, rounds: [1, 2], why: "a storage is nearly full", act: storage },
    Fault { code: "GUEST_CRASHED", of: "box1, blog of acme", to: OF_ACME, rounds: [1, 2], why: "it stopped, and every start fails", act: crash },
    Fault { code: "GUEST_FROZEN", of: "box1, chat of umbrella", to: URGENT, rounds: [1, 2], why: "its token was used from another address", act: copy },
    Fault { code: "BULK_CHANGE_HELD", of: "box1", to: PLAIN, rounds: [1, 2], why: "a document stops more guests than the brake allows", act: document_with_faults },
    Fault { code: "NEEDS_SIGNATURE", of: "box1, old of umbrella", to: PLAIN, rounds: [1, 2], why: "a document has a guest no more", act: nothing },
    Fault { code: "PROXMOX_AWAY", of: "box1", to: URGENT, rounds: [3, 4], why: "Proxmox hangs, and all its guests with it", act: proxmox },
];

/// Names and customers, by their numbers from 1.
const GUESTS: [(&str, &str); 7] = [
    ("web", "acme"),
    ("mail", "acme"),
    ("wiki", "umbrella"),
    ("shop", "umbrella"),
    ("blog", "acme"),
    ("chat", "umbrella"),
    ("old", "umbrella"),
];

/// More starts than are tried in a round.
const STARTS: usize = 20;

fn nothing(_: &mut Day, _: Moment) {}

/// What is lost keeps its configuration here.
fn lost(day: &Day) -> PathBuf {
    day.stand.stage.folder().join("lost.json")
}

fn lose_configuration(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => {
            let (vmid, config) = configuration(&day.stand, "web");
            std::fs::write(lost(day), json!([vmid, config]).to_string()).unwrap();
            by_hand(&day.stand, &[edit(&json!({ "edit": "lose-config", "vmid": vmid }))]);
        }
        Moment::End => {
            let text = std::fs::read_to_string(lost(day)).unwrap();
            let (vmid, config): (u32, String) = serde_json::from_str(&text).unwrap();
            by_hand(&day.stand, &[edit(&json!({ "edit": "place", "vmid": vmid, "config": config }))]);
        }
    }
}

fn guest_uses(day: &Day, name: &str, percent: [u64; 3], moment: Moment) {
    let vmid = vmid(&day.stand, name);
    let percent = match moment {
        Moment::Begin => percent,
        Moment::End => [10; 3],
    };
    uses(&day.stand, Some(vmid), Some(percent));
}

fn processor(day: &mut Day, moment: Moment) {
    guest_uses(day, "mail", [99, 10, 10], moment);
}

fn guest_memory(day: &mut Day, moment: Moment) {
    guest_uses(day, "wiki", [10, 98, 10], moment);
}

fn root_disk(day: &mut Day, moment: Moment) {
    guest_uses(day, "shop", [10, 10, 95], moment);
}

fn host_memory(day: &mut Day, moment: Moment) {
    let memory = match moment {
        Moment::Begin => 98,
        Moment::End => 10,
    };
    uses(&day.stand, None, Some([10, memory, 10]));
}

fn storage(day: &mut Day, moment: Moment) {
    let percent = match moment {
        Moment::Begin => json!(93),
        Moment::End => Value::Null,
    };
    by_hand(&day.stand, &[edit(&json!({ "edit": "storage-fill", "storage": "tank", "percent": percent }))]);
}

fn crash(day: &mut Day, moment: Moment) {
    let vmid = vmid(&day.stand, "blog");
    let orders = match moment {
        Moment::Begin => {
            let failure = json!({ "arm": { "fault": "fail-worker", "task": "vzstart", "phase": "", "text": "no device" } });
            let mut orders = vec![failure; STARTS];
            orders.push(edit(&json!({ "edit": "stop", "vmid": vmid })));
            orders
        }
        Moment::End => vec![json!("clear"), edit(&json!({ "edit": "start", "vmid": vmid }))],
    };
    by_hand(&day.stand, &orders);
}

/// A call with the guest's token, from the address of its neighbour.
#[expect(clippy::disallowed_methods, reason = "the program of a guest, where it does not belong")]
fn copy(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => {
            let vmid = vmid(&day.stand, "chat");
            let images = day.stand.stage.folder().join("sim/root/mnt/tank/images");
            let root = images.join(format!("{vmid}/vm-{vmid}-disk-0/tree"));
            let programs = std::env::var_os("HOLDFAST_E2E_PROGRAMS").unwrap();
            let mut command = std::process::Command::new(PathBuf::from(programs).join("guestd"));
            command.args(["audit", "--source-address", "127.66.0.199", "--root"]).arg(root);
            let output = command.output().unwrap();
            assert!(!output.status.success(), "{output:?}");
        }
        Moment::End => {
            let words = ["thaw", "chat", "--reason", "the copy is gone"];
            drop(day.stand.stage.agent_does(&words).unwrap());
        }
    }
}

/// The document; with both faults, where the moment is the beginning.
fn document_with_faults(day: &mut Day, moment: Moment) {
    let ground = day.stand.stage.ground();
    let numbers = 1..=u8::try_from(GUESTS.len()).unwrap();
    let mut guests: Vec<Value> = numbers
        .zip(GUESTS)
        .map(|(number, (name, customer))| document::guest(&ground, number, name, customer))
        .collect();
    if moment == Moment::Begin {
        guests.retain(|guest| guest["name"] != "old");
        for guest in guests.iter_mut().filter(|guest| guest["name"] == "shop") {
            guest["run"] = json!("stopped");
        }
    }
    let document = json!({ "poll_interval_s": 5, "alarm_after_s": 60, "guests": guests });
    day.stand.stage.apply(&document, "the day").unwrap();
}

fn proxmox(day: &mut Day, moment: Moment) {
    match moment {
        Moment::Begin => signal(&day.stand, Signal::STOP),
        Moment::End => signal(&day.stand, Signal::CONT),
    }
}

#[test]
fn faults_of_guests_and_storages_and_a_proxmox_that_hangs() {
    let mut day = Day::begin(1, HubBackup::Taken);
    hold_every_stop(&day.stand);
    let desk = tempfile::tempdir().unwrap();
    lay_down(&day.stand, &key(desk.path()));
    day.stand.stage.start_agent(None).unwrap();
    document_with_faults(&mut day, Moment::End);
    let made = |guests: &[Value]| guests.iter().filter(|guest| well(guest)).count() == GUESTS.len();
    day.stand.stage.guests_until("all guests", made).unwrap();
    day.plays(SCRIPT);
}
