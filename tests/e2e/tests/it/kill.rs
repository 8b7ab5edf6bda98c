//! `kill -9` of the agent at each point of *provision*'s journal, and at any moment: no guest twice, no volume left
//! behind, the same end.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use e2e::document;
use e2e::stage::Failpoint;
use e2e::wait;
use serde_json::{Value, json};

use super::stand::{self, FOREIGN_VMID, Stand, well};

/// Each step's effect happened and nobody was told; and around the restore, whose reply can be lost, every point.
const POINTS: &[&str] = &[
    "operation:before:frame",
    "choose_vmid:after:effect",
    "judge_archive:after:outcome",
    "restore:after:intent",
    "restore:after:effect",
    "restore:before:posted",
    "restore:after:posted",
    "restore:before:outcome",
    "mark:after:effect",
    "grow_rootfs:before:posted",
    "grow_rootfs:after:effect",
    "attach_volume:after:effect",
    "protect:after:effect",
    "hand_over_claim:after:effect",
    "first_start:before:posted",
    "first_start:after:effect",
    "await_hello:before:outcome",
    "drop_claim:after:effect",
    "first_backup:before:posted",
    "first_backup:after:effect",
    "read_back:before:outcome",
];

const LONG: Duration = Duration::from_secs(120);

fn wish(stand: &Stand, count: u8) -> Value {
    let ground = stand.stage.ground();
    let guests: Vec<Value> = (1..=count)
        .map(|number| {
            let mut guest = document::guest(&ground, number, &format!("g{number}"), "acme");
            // Larger than the golden's, so that growing is real work.
            guest["size"]["rootfs_gib"] = json!(3);
            guest["volumes"] = json!([{ "name": "db", "mount": "/srv/db", "size_gib": 1, "kind": "hot" }]);
            guest
        })
        .collect();
    json!({ "poll_interval_s": 5, "guests": guests })
}

/// Volumes on the disk by VMID, against the guests that there are.
fn nothing_twice_and_nothing_left(stand: &Stand, wished: u8) {
    let configurations = stand.stage.configurations().unwrap();
    let ours: Vec<(&u32, &String)> =
        configurations.iter().filter(|(_, text)| text.contains("hostname: g")).collect();
    let names: BTreeSet<&str> = ours
        .iter()
        .filter_map(|(_, text)| text.lines().find_map(|line| line.strip_prefix("hostname: ")))
        .collect();
    assert_eq!(ours.len(), usize::from(wished), "one configuration a guest: {configurations:#?}");
    assert_eq!(names.len(), usize::from(wished), "no guest twice: {names:?}");
    let images = stand.stage.folder().join("sim/root/mnt/tank/images");
    for entry in std::fs::read_dir(images).unwrap() {
        let folder = entry.unwrap();
        let vmid: u32 = folder.file_name().to_string_lossy().parse().unwrap();
        let Some(text) = configurations.get(&vmid) else { panic!("volumes of {vmid}, and no such guest") };
        for volume in std::fs::read_dir(folder.path()).unwrap() {
            let name = volume.unwrap().file_name().to_string_lossy().into_owned();
            let stem = name.split('.').next().unwrap_or_default();
            assert!(text.contains(stem), "{name} belongs to no guest:\n{text}");
        }
    }
    assert!(configurations.contains_key(&FOREIGN_VMID), "somebody else's guest is still there");
}

#[test]
fn killed_at_each_point_of_provision_the_end_is_the_same() {
    let mut stand = stand::enrolled();
    let mut count = 0;
    for point in POINTS {
        count += 1;
        stand.stage.apply(&wish(&stand, count), &format!("guest {count}, killed at {point}")).unwrap();
        stand.stage.start_agent(Some(&Failpoint((*point).to_owned()))).unwrap();
        let status = stand
            .stage
            .agent_ended(LONG)
            .unwrap_or_else(|error| panic!("{point} was never reached: {error:#}"));
        assert_eq!(status.signal(), Some(6), "{point}: aborted at the point, not ended otherwise");
        stand.stage.start_agent(None).unwrap();
        let what = format!("{count} guests after {point}");
        stand
            .stage
            .guests_until(&what, |guests| {
                guests.iter().filter(|guest| well(guest)).count() == usize::from(count)
            })
            .unwrap();
        nothing_twice_and_nothing_left(&stand, count);
        assert!(stand.stage.stop_agent().unwrap().success(), "a polite end after {point}");
    }
    println!("{} points, 0 violations", POINTS.len());
}

#[test]
fn killed_again_and_again_at_any_moment_the_end_is_the_same() {
    const COUNT: u8 = 4;
    const KILLS: u32 = 12;
    let mut stand = stand::enrolled();
    stand.stage.apply(&wish(&stand, COUNT), "four guests under fire").unwrap();
    let journal = stand.stage.folder().join("agent/state/agent.db-wal");
    for round in 0..KILLS {
        stand.stage.start_agent(None).unwrap();
        // A moment is a number of further writes to the journal, not of milliseconds.
        let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |found| found.len());
        let (begun, further) = (size(&journal), u64::from(1 + round * 7 % 23) * 4096);
        let reached = wait::until("some journal writes", Duration::from_secs(20), || {
            let now = size(&journal);
            Ok((now >= begun + further || now < begun).then_some(()))
        });
        // At the end of the story there is nothing left to write; then the kill comes while the agent rests.
        drop(reached);
        stand.stage.kill_agent().unwrap();
    }
    stand.stage.start_agent(None).unwrap();
    stand
        .stage
        .guests_until("four guests", |guests| {
            guests.iter().filter(|guest| well(guest)).count() == usize::from(COUNT)
        })
        .unwrap();
    nothing_twice_and_nothing_left(&stand, COUNT);
}
