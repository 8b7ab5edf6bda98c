//! Tests of readings of the hardware, hostile ones among them.
//!
//! The answers are written by us after the names of fields in smartctl's manual and public samples; none was recorded.

use holdfast_protocol::report::{DiskFault, DiskHealth};
use serde_json::{Value, json};

use super::*;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hours * 3_600).unwrap()
}

/// A disk of SATA, in order.
fn ata() -> Value {
    let attribute = |id: u64, name: &str, value: u64, raw: u64| {
        json!({ "id": id, "name": name, "value": value, "worst": value, "thresh": 10, "when_failed": "",
            "flags": { "prefailure": true }, "raw": { "value": raw, "string": raw.to_string() } })
    };
    json!({
        "smartctl": { "version": [7, 4], "exit_status": 0 },
        "device": { "name": "/dev/sda", "type": "sat", "protocol": "ATA" },
        "model_name": "Example EX4000", "serial_number": "EX-0001", "user_capacity": { "bytes": 4_000_787_030_016_u64 },
        "smart_status": { "passed": true }, "temperature": { "current": 34 }, "power_on_time": { "hours": 20_123 },
        "ata_smart_attributes": { "table": [
            attribute(5, "Reallocated_Sector_Ct", 100, 8), attribute(177, "Wear_Leveling_Count", 97, 60),
            attribute(197, "Current_Pending_Sector", 100, 0), attribute(198, "Offline_Uncorrectable", 100, 0)
        ] },
        "ata_smart_self_test_log": { "standard": { "table": [
            { "status": { "value": 0, "string": "Completed without error", "passed": true } }
        ] } }
    })
}

/// A disk of NVMe, in order.
fn nvme() -> Value {
    json!({
        "smartctl": { "version": [7, 4], "exit_status": 0 },
        "device": { "name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe" },
        "model_name": "Example NV1", "serial_number": "NV 0002/b", "user_capacity": { "bytes": 1_000_204_886_016_u64 },
        "smart_status": { "passed": true }, "temperature": { "current": 41 }, "power_on_time": { "hours": 900 },
        "nvme_composite_temperature_threshold": { "warning": 82, "critical": 85 },
        "nvme_smart_health_information_log": { "critical_warning": 0, "percentage_used": 12, "available_spare": 100,
            "available_spare_threshold": 10, "media_errors": 0 }
    })
}

/// The answer with one field changed; a path that is not there is made.
fn with(mut answer: Value, path: &str, value: Value) -> Value {
    match answer.pointer_mut(path) {
        Some(field) => *field = value,
        None => answer[path.trim_start_matches('/')] = value,
    }
    answer
}

fn file(hours: i64, answers: &[(&str, String)]) -> Vec<u8> {
    let mut text = format!("holdfast-disks 1 {}\n", at(hours).as_second());
    for (device, answer) in answers {
        text.push_str(&format!("disk {device}\nanswer {answer}\n"));
    }
    text.into_bytes()
}

fn one(answer: &Value) -> DiskReport {
    raw_one(&answer.to_string())
}

fn raw_one(answer: &str) -> DiskReport {
    let read = disks_file::read(&file(0, &[("/dev/sda", answer.to_owned())])).unwrap();
    assert_eq!(read.disks.len(), 1);
    read.disks[0].clone()
}

#[test]
fn a_disk_is_read_with_what_it_reports() {
    let disk = one(&ata());
    assert_eq!(disk.model.as_ref().map(HardwareName::as_str), Some("Example EX4000"));
    assert_eq!(disk.serial.as_ref().map(|serial| serial.as_str()), Some("EX-0001"));
    assert_eq!(
        (disk.reading, disk.read_at, disk.health),
        (DiskReading::Read, Some(at(0)), DiskHealth::Passed)
    );
    assert_eq!((disk.wear_percent, disk.power_on_hours), (Some(3), Some(20_123)));
    let counts = (disk.reallocated_sectors, disk.pending_sectors, disk.uncorrectable_errors);
    assert_eq!(counts, (Some(8), Some(0), Some(0)));
    assert_eq!(disk.temperature, Some(rated(34, None)));
    assert_eq!(disk.faults, []);
    let disk = one(&nvme());
    assert_eq!(disk.serial.as_ref().map(|serial| serial.as_str()), Some("NV-0002-b"));
    assert_eq!((disk.wear_percent, disk.uncorrectable_errors), (Some(12), Some(0)));
    assert_eq!(disk.temperature, Some(rated(41, Some(85))));
    assert_eq!(disk.faults, []);
}

#[test]
fn each_fault_is_read_from_its_field() {
    let log = |field: &str, value: u64| {
        with(nvme(), &format!("/nvme_smart_health_information_log/{field}"), json!(value))
    };
    let attribute =
        |field: &str, value: Value| with(ata(), &format!("/ata_smart_attributes/table/0/{field}"), value);
    for (answer, faults) in [
        (with(ata(), "/smart_status/passed", json!(false)), vec![DiskFault::HealthFailing]),
        (attribute("when_failed", json!("now")), vec![DiskFault::AttributeFailing]),
        (attribute("when_failed", json!("past")), vec![]),
        (
            with(ata(), "/ata_smart_self_test_log/standard/table/0/status/passed", json!(false)),
            vec![DiskFault::SelfTestFailed],
        ),
        // Stopped by its user: neither passed nor failed.
        (with(ata(), "/ata_smart_self_test_log/standard/table/0/status", json!({ "value": 24 })), vec![]),
        (
            with(nvme(), "/nvme_self_test_log", json!({ "table": [{ "self_test_result": { "value": 7 } }] })),
            vec![DiskFault::SelfTestFailed],
        ),
        (log("critical_warning", 1), vec![DiskFault::SpareLow]),
        (log("critical_warning", 2), vec![]),
        (log("critical_warning", 4 + 8), vec![DiskFault::Unreliable, DiskFault::ReadOnly]),
        (log("critical_warning", 16), vec![DiskFault::BackupPower]),
        (log("available_spare", 9), vec![DiskFault::SpareLow]),
    ] {
        assert_eq!(one(&answer).faults, faults, "{answer}");
    }
    assert_eq!(one(&log("critical_warning", 2)).temperature.unwrap().heat, Heat::High);
    assert_eq!(one(&log("percentage_used", 255)).wear_percent, Some(255));
    assert_eq!(one(&log("percentage_used", 256)).wear_percent, None);
}

#[test]
fn what_is_not_there_or_cannot_be_true_is_absent() {
    let raw = "/ata_smart_attributes/table/0/raw/value";
    for wrong in
        [json!(-1), json!(1.5), json!("8"), json!(u64::MAX), json!(null), json!([8]), json!({ "a": 8 })]
    {
        assert_eq!(one(&with(ata(), raw, wrong.clone())).reallocated_sectors, None, "{wrong}");
        let disk = one(&with(ata(), "/power_on_time/hours", wrong.clone()));
        assert_eq!(disk.power_on_hours, None, "{wrong}");
        assert_eq!(one(&with(ata(), "/ata_smart_attributes/table", wrong)).wear_percent, None);
    }
    for wrong in [json!(-274), json!(32_768), json!(1e99), json!("34"), json!(true)] {
        assert_eq!(one(&with(ata(), "/temperature/current", wrong.clone())).temperature, None, "{wrong}");
    }
    for wrong in [json!("true"), json!(1), json!(null)] {
        let disk = one(&with(ata(), "/smart_status/passed", wrong));
        assert_eq!((disk.health, disk.faults.len()), (DiskHealth::Unknown, 0));
    }
    for (serial, expected) in [
        (json!(""), "sda"),
        (json!(7), "sda"),
        (json!("a\u{7f}\"'`$(x)é"), "a------x--"),
        (json!("S".repeat(9_000)), &*"S".repeat(64)),
    ] {
        let disk = one(&with(ata(), "/serial_number", serial));
        assert_eq!(disk.serial.unwrap().as_str(), expected);
    }
}

#[test]
fn an_unusable_answer_is_no_healthy_disk() {
    let deep = format!("{}{}", "[".repeat(60_000), "]".repeat(60_000));
    let huge = with(ata(), "/model_name", json!("x".repeat(200_000))).to_string();
    for answer in
        ["", "{", "NaN", "null", "[]", "{\"smartctl\":{\"exit_status\":NaN}}", &deep, &huge, "{}\nanswer {}"]
    {
        let disk = raw_one(answer);
        assert_eq!((disk.reading, disk.health), (DiskReading::Unreadable, DiskHealth::Unknown));
        assert_eq!((disk.read_at, &disk.serial, &disk.model), (None, &None, &None));
    }
    let status = |status: Value| one(&with(ata(), "/smartctl/exit_status", status)).reading;
    for (number, reading) in [
        (json!(0), DiskReading::Read),
        // What the disk itself says is in these bits, and in the fields that are read.
        (json!(8 + 64), DiskReading::Read),
        (json!(1), DiskReading::Unreadable),
        (json!(2), DiskReading::Unreadable),
        (json!(3), DiskReading::Asleep),
        (json!(-1), DiskReading::Unreadable),
        (json!("0"), DiskReading::Unreadable),
    ] {
        assert_eq!(status(number.clone()), reading, "{number}");
    }
}

#[test]
fn a_file_of_another_form_is_not_used() {
    for (text, error) in [
        ("", disks_file::DisksFileError::Header),
        ("holdfast-disks 2 1800000000\n", disks_file::DisksFileError::Header),
        ("holdfast-disks 1 \n", disks_file::DisksFileError::Header),
        ("holdfast-disks 1 99999999999999999999\n", disks_file::DisksFileError::Header),
        ("\u{fffd}\n", disks_file::DisksFileError::Header),
        ("holdfast-disks 1 1800000000\nanswer {}\n", disks_file::DisksFileError::Order),
    ] {
        assert_eq!(disks_file::read(text.as_bytes()), Err(error), "{text}");
    }
    let many: Vec<(&str, String)> = vec![("/dev/sdx", ata().to_string()); 70];
    let read = disks_file::read(&file(0, &many)).unwrap();
    assert_eq!((read.disks.len(), read.left_out), (DISKS_MAX, 6));
    assert_eq!(disks_file::read(&file(0, &[])).unwrap().disks, []);
}

fn read(hours: i64, answers: &[(&str, String)]) -> RawHardware {
    RawHardware { disks: disks_file::read(&file(hours, answers)).ok(), ..RawHardware::default() }
}

fn hot(celsius: i64) -> RawHardware {
    let (chip, label) = ("coretemp".to_owned(), "Core 0".to_owned());
    let input = (celsius * 1_000).to_string();
    let sensor = RawSensor { chip, label, input, critical: Some("100000".to_owned()) };
    RawHardware { sensors: vec![sensor], ..RawHardware::default() }
}

#[test]
fn a_disk_that_sleeps_keeps_its_values_with_their_time() {
    let asleep = json!({ "smartctl": { "exit_status": 3 } }).to_string();
    let view = HardwareView::default().next(read(0, &[("/dev/sda", ata().to_string())]), at(0));
    let view = view.next(read(1, &[("/dev/sda", asleep.clone()), ("/dev/sdb", asleep)]), at(1));
    let section = view.section.unwrap();
    assert_eq!(section.disks_read_at, Some(at(1)));
    let first = &section.disks[0];
    assert_eq!(
        (first.reading, first.read_at, first.power_on_hours),
        (DiskReading::Asleep, Some(at(0)), Some(20_123))
    );
    assert_eq!((section.disks[1].reading, section.disks[1].read_at), (DiskReading::Asleep, None));
}

#[test]
fn without_a_file_the_last_reading_stays_with_its_age() {
    let view = HardwareView::default().next(RawHardware::default(), at(0));
    assert_eq!(
        view.section.as_ref().map(|section| (section.disks_read_at, section.disks.len())),
        Some((None, 0))
    );
    let view = view.next(read(1, &[("/dev/sda", ata().to_string())]), at(1));
    let view = view.next(RawHardware::default(), at(9));
    let section = view.section.unwrap();
    assert_eq!((section.read_at, section.disks_read_at, section.disks.len()), (at(9), Some(at(1)), 1));
    // A reading from the future is one of now.
    let view = HardwareView::default().next(read(5, &[]), at(4));
    assert_eq!(view.section.unwrap().disks_read_at, Some(at(4)));
}

#[test]
fn heat_ends_only_once_it_has_cooled_down() {
    let mut view = HardwareView::default();
    for (celsius, heat) in [
        (80, Heat::Normal),
        (96, Heat::Normal),
        (97, Heat::High),
        (96, Heat::High),
        (91, Heat::High),
        (90, Heat::Normal),
        (96, Heat::Normal),
    ] {
        view = view.next(hot(celsius), at(0));
        let section = view.section.as_ref().unwrap();
        assert_eq!(section.sensors[0].temperature.heat, heat, "{celsius}");
    }
}

#[test]
fn temperatures_alone_make_a_new_section_once_an_hour() {
    let first = HardwareView::default().next(hot(40), at(0));
    let minutes = |minutes: i64| at(0).checked_add(SignedDuration::from_mins(minutes)).unwrap();
    assert_eq!(first.next(hot(60), minutes(59)).section, first.section);
    let later = first.next(hot(60), minutes(60)).section.unwrap();
    assert_eq!((later.read_at, later.sensors[0].temperature.celsius), (minutes(60), 60));
    let hotter = first.next(hot(99), minutes(1)).section.unwrap();
    assert_eq!(hotter.read_at, minutes(1), "the verdict is news");
}

/// The counts of a reading that is not new are no second observation.
#[test]
fn an_old_reading_proves_no_quiet_day() {
    let disks = read(0, &[("/dev/sda", ata().to_string())]);
    let mut view = HardwareView::default().next(disks.clone(), at(0));
    let key = "disk EX-0001";
    view = view.next(disks, at(30));
    assert_eq!(view.history.rise(key), 0);
    let more = with(ata(), "/ata_smart_attributes/table/0/raw/value", json!(11));
    view = view.next(read(31, &[("/dev/sda", more.to_string())]), at(31));
    assert_eq!(view.history.rise(key), 3);
    view = view.next(read(32, &[]), at(32));
    assert_eq!(view.history.rise(key), 0, "it was taken out");
}

/// Whatever is changed in an answer, its row is one that the hub accepts, and only a read disk has a verdict.
#[test]
fn changed_answers_are_rows_that_travel() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    };
    let parts =
        ["-1", "1e400", "null", "\"\\u0000\"", "{", "]", "99999999999999999999", "true", "\n", "\"", "\\"];
    for round in 0..4_000 {
        let mut text = if round % 2 == 0 { ata() } else { nvme() }.to_string();
        for _ in 0..=random(3) {
            let at = random(text.len());
            if text.is_char_boundary(at) {
                let end = (at + random(6)).min(text.len());
                text.replace_range(at..end, parts[random(parts.len())]);
            }
        }
        let bytes = file(0, &[("/dev/sda", text.clone())]);
        for disk in disks_file::read(&bytes).unwrap().disks {
            let json = serde_json::to_string(&disk).unwrap();
            assert_eq!(serde_json::from_str::<DiskReport>(&json).unwrap(), disk, "{text}");
            if disk.reading != DiskReading::Read {
                assert_eq!((disk.health, disk.read_at), (DiskHealth::Unknown, None), "{text}");
            }
        }
    }
}
