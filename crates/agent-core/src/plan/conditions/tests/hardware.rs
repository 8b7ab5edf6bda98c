//! Tests of conditions of disks, memory and temperatures.

use super::*;
use crate::model::hardware_health::RawHardware;
use crate::model::hardware_health::disks_file;
use crate::model::hardware_health::sensors::{RawController, RawSensor};

/// One disk, read so many hours from the beginning, with these fields over those of one in order.
fn disk(hours: i64, fields: Value) -> RawHardware {
    let mut answer = json!({
        "smartctl": { "exit_status": 0 }, "model_name": "Example NV1", "serial_number": "NV1",
        "smart_status": { "passed": true }, "nvme_smart_health_information_log": { "media_errors": 4 }
    });
    answer.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    with_disks(hours, &format!("disk /dev/nvme0\nanswer {answer}\n"))
}

fn with_disks(hours: i64, rows: &str) -> RawHardware {
    let text = format!("holdfast-disks 1 {}\n{rows}", at(hours * 3_600).as_second());
    let sensor = RawSensor {
        chip: "coretemp".to_owned(),
        label: "Core 0".to_owned(),
        input: "40000".to_owned(),
        critical: Some("100000".to_owned()),
    };
    let memory = vec![RawController { corrected: "5".to_owned(), uncorrected: "0".to_owned() }];
    let disks = disks_file::read(text.as_bytes()).ok();
    RawHardware { disks, sensors: vec![sensor], memory, updates: packages::nothing_waits() }
}

/// The hardware of a host that was read for a day, and then this.
fn watched(last: RawHardware) -> HardwareView {
    let day = HardwareView::default().next(disk(-25, json!({})), at(-25 * 3_600));
    day.next(last, at(0))
}

/// On which all is well.
pub(super) fn well() -> HardwareView {
    watched(disk(0, json!({})))
}

fn host(last: RawHardware) -> Box7 {
    Box7 { hardware: watched(last), ..Box7::well() }
}

fn with_memory(corrected: &str, uncorrected: &str) -> RawHardware {
    let memory = vec![RawController { corrected: corrected.to_owned(), uncorrected: uncorrected.to_owned() }];
    RawHardware { memory, ..disk(0, json!({})) }
}

fn hot() -> RawHardware {
    let mut hot = disk(0, json!({}));
    hot.sensors[0].input = "98000".to_owned();
    hot
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    let log = |log: Value| json!({ "nvme_smart_health_information_log": log });
    vec![
        ("DISK_FAILING", host(disk(0, json!({ "smart_status": { "passed": false } })))),
        ("DISK_FAILING", host(disk(0, log(json!({ "media_errors": 5 }))))),
        ("DISK_WORN", host(disk(0, log(json!({ "media_errors": 4, "percentage_used": 90 }))))),
        ("MEMORY_ERRORS", host(with_memory("16", "0"))),
        ("MEMORY_ERRORS", host(with_memory("5", "1"))),
        ("TEMPERATURE_HIGH", host(hot())),
        ("TEMPERATURE_HIGH", host(disk(0, json!({ "temperature": { "current": 70, "drive_trip": 65 } })))),
    ]
}

fn severity(last: RawHardware) -> Vec<Severity> {
    let reported = host(last).after(&[]);
    reported.iter().map(|condition| condition.severity).collect()
}

#[test]
fn what_a_part_itself_calls_a_failure_is_critical() {
    let log = |log: Value| json!({ "nvme_smart_health_information_log": log });
    assert_eq!(severity(disk(0, json!({ "smart_status": { "passed": false } }))), [Severity::Critical]);
    assert_eq!(severity(disk(0, log(json!({ "media_errors": 9 })))), [Severity::Warning]);
    assert_eq!(severity(with_memory("16", "0")), [Severity::Warning]);
    assert_eq!(severity(with_memory("16", "2")), [Severity::Critical]);
}

#[test]
fn values_below_the_bounds_raise_nothing() {
    let log = |log: Value| json!({ "nvme_smart_health_information_log": log });
    for quiet in [
        disk(0, log(json!({ "media_errors": 4, "percentage_used": 89 }))),
        disk(0, log(json!({ "media_errors": 0 }))),
        with_memory("15", "0"),
        RawHardware::default(),
    ] {
        assert_eq!(host(quiet.clone()).codes(), [""; 0], "{quiet:?}");
    }
    let unread = Box7 { hardware: HardwareView::default(), ..Box7::well() };
    assert_eq!(unread.codes(), [""; 0]);
}

/// Root's service writes the time of the wall clock, which may be behind the trusted time by days.
#[test]
fn a_reading_is_judged_by_the_clock_that_it_was_read_by() {
    let failing = || host(disk(0, json!({ "smart_status": { "passed": false } })));
    assert_eq!(Box7 { now: at(24 * 3_600), ..failing() }.codes(), ["DISK_FAILING"]);
    assert_eq!(Box7 { wall: at(4 * 3_600), ..failing() }.codes(), [""; 0], "nothing was read for hours");
}

/// What is not known ends no condition.
#[test]
fn a_disk_that_is_not_read_keeps_its_condition() {
    let failing = host(disk(0, json!({ "smart_status": { "passed": false } }))).after(&[]);
    let asleep = |device: &str| format!("disk {device}\nanswer {{\"smartctl\":{{\"exit_status\":3}}}}\n");
    let other = json!({ "smartctl": { "exit_status": 0 }, "serial_number": "NEW" });
    let restarted = HardwareView::default().next(disk(0, json!({})), at(0));
    for (hardware, kept) in [
        // Nothing was read yet, or not for hours, or root's service wrote nothing.
        (HardwareView::default(), true),
        (watched(disk(-4, json!({}))), true),
        (HardwareView::default().next(RawHardware::default(), at(0)), true),
        (watched(with_disks(0, &asleep("/dev/nvme0"))), true),
        // Another device that may be the same disk.
        (HardwareView::default().next(with_disks(0, &asleep("/dev/nvme1")), at(0)), true),
        // It was read, and not yet for a day.
        (restarted, true),
        (well(), false),
        // Another disk is in its place.
        (watched(with_disks(0, &format!("disk /dev/nvme0\nanswer {other}\n"))), false),
    ] {
        let next = Box7 { hardware: hardware.clone(), ..Box7::well() }.after(&failing);
        assert_eq!(!next.is_empty(), kept, "{hardware:?}");
    }
}

#[test]
fn errors_of_memory_end_after_a_quiet_day_or_with_the_counters() {
    let failing = host(with_memory("5", "1")).after(&[]);
    let next = |hardware: HardwareView| Box7 { hardware, ..Box7::well() }.after(&failing);
    assert_eq!(next(HardwareView::default().next(disk(0, json!({})), at(0))).len(), 1, "no day yet");
    assert_eq!(next(well()), []);
    assert_eq!(next(watched(RawHardware::default())), [], "nothing counts any more");
}

#[test]
fn a_message_names_the_disk_and_its_facts() {
    let found = host(disk(0, json!({ "smart_status": { "passed": false } }))).found();
    assert_eq!(found[0].message, "disk /dev/nvme0 (Example NV1) says that it fails");
    assert_eq!(found[0].subject.to_string(), "disk:NV1");
    assert_eq!(host(hot()).found()[0].message, "coretemp Core 0 has 98 of 100 °C");
}
