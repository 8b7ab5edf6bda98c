//! One answer of smartctl.
//!
//! In: its JSON (`smartctl --json=c --info --health --attributes --log=selftest`), by the names of fields that its manual
//! and public samples have. Out: a row of the report. The form is smartctl's and grows, so unknown fields are ignored; a
//! field of another type, a negative count or one that no disk can have is as if it were absent.

use holdfast_protocol::condition::DiskSerial;
use holdfast_protocol::report::{
    DiskFault, DiskHealth, DiskReading, DiskReport, HardwareName, Heat, Temperature,
};
use jiff::Timestamp;
use serde_json::Value;

use super::rated;
use super::sensors::CRITICAL;

/// The exit status that root's service asks for where a disk sleeps.
const ASLEEP: u64 = 3;

/// More sectors or hours than any disk has; makers pack other values into the same fields.
const COUNT_MAX: u64 = 1 << 32;

/// Attributes of ATA disks, by number.
const REALLOCATED: u64 = 5;
const PENDING: u64 = 197;
const UNCORRECTABLE: u64 = 198;

/// Names of attributes with a normalised value that is the part of life that is left, in percent.
const LIFE_LEFT: &[&str] = &[
    "Media_Wearout_Indicator",
    "Percent_Life_Remaining",
    "Percent_Lifetime_Remain",
    "Remaining_Lifetime_Perc",
    "SSD_Life_Left",
    "Wear_Leveling_Count",
];

/// The bits of an NVMe disk's warning. The second is its temperature.
const WARNINGS: [(u64, DiskFault); 5] = [
    (1, DiskFault::SpareLow),
    (4, DiskFault::Unreliable),
    (8, DiskFault::ReadOnly),
    (16, DiskFault::BackupPower),
    (32, DiskFault::Unreliable),
];
const TOO_HOT: u64 = 2;

/// An answer, with fields found by their path.
struct Answer(Value);

impl Answer {
    fn number(&self, path: &str) -> Option<u64> {
        self.0.pointer(path).and_then(Value::as_u64)
    }

    fn count(&self, path: &str) -> Option<u64> {
        self.number(path).filter(|count| *count < COUNT_MAX)
    }

    fn flag(&self, path: &str) -> Option<bool> {
        self.0.pointer(path).and_then(Value::as_bool)
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.0.pointer(path).and_then(Value::as_str)
    }

    fn degrees(&self, path: &str) -> Option<i16> {
        let value = self.0.pointer(path).and_then(Value::as_i64)?;
        i16::try_from(value).ok().filter(|value| (-40..=150).contains(value))
    }

    fn attributes(&self) -> &[Value] {
        let table = self.0.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
        table.map(Vec::as_slice).unwrap_or_default()
    }

    fn attribute(&self, number: u64) -> Option<u64> {
        let row = self.attributes().iter().find(|row| field(row, "/id") == Some(number))?;
        field(row, "/raw/value").filter(|count| *count < COUNT_MAX)
    }
}

fn field(row: &Value, path: &str) -> Option<u64> {
    row.pointer(path).and_then(Value::as_u64)
}

/// The row of a disk. An empty answer is none.
pub(super) fn disk(device: HardwareName, answer: &[u8], at: Timestamp) -> DiskReport {
    let unread = |reading| DiskReport {
        device: device.clone(),
        reading,
        read_at: None,
        model: None,
        serial: None,
        size_bytes: None,
        health: DiskHealth::Unknown,
        faults: Vec::new(),
        wear_percent: None,
        temperature: None,
        power_on_hours: None,
        reallocated_sectors: None,
        pending_sectors: None,
        uncorrectable_errors: None,
    };
    let Ok(answer) = serde_json::from_slice(answer).map(Answer) else {
        return unread(DiskReading::Unreadable);
    };
    match answer.number("/smartctl/exit_status") {
        Some(ASLEEP) => return unread(DiskReading::Asleep),
        // The first two bits: the call was wrong, or the disk could not be opened.
        Some(status) if status & 3 == 0 => {}
        Some(_) | None => return unread(DiskReading::Unreadable),
    }
    let health = match answer.flag("/smart_status/passed") {
        Some(true) => DiskHealth::Passed,
        Some(false) => DiskHealth::Failing,
        None => DiskHealth::Unknown,
    };
    let model =
        ["/model_name", "/scsi_model_name", "/scsi_product"].into_iter().find_map(|at| answer.text(at));
    DiskReport {
        read_at: Some(at),
        model: model.and_then(HardwareName::clipped),
        serial: serial(&answer, &device),
        size_bytes: answer.number("/user_capacity/bytes").filter(|bytes| *bytes > 0),
        health,
        faults: faults(&answer),
        wear_percent: wear(&answer),
        temperature: temperature(&answer),
        power_on_hours: answer.count("/power_on_time/hours"),
        reallocated_sectors: answer
            .attribute(REALLOCATED)
            .or_else(|| answer.count("/scsi_grown_defect_list")),
        pending_sectors: answer.attribute(PENDING),
        uncorrectable_errors: answer
            .attribute(UNCORRECTABLE)
            .or_else(|| answer.count("/nvme_smart_health_information_log/media_errors")),
        ..unread(DiskReading::Read)
    }
}

/// The serial number, with other characters replaced. A disk without one goes by its device.
fn serial(answer: &Answer, device: &HardwareName) -> Option<DiskSerial> {
    let own = answer.text("/serial_number").map(str::trim).filter(|text| !text.is_empty());
    let text = own.unwrap_or_else(|| device.as_str().trim_start_matches("/dev/"));
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._:-".contains(letter);
    let plain = text.chars().take(64).map(|letter| if fits(letter) { letter } else { '-' });
    DiskSerial::try_from(plain.collect::<String>()).ok()
}

fn faults(answer: &Answer) -> Vec<DiskFault> {
    let mut faults = Vec::new();
    if answer.flag("/smart_status/passed") == Some(false) {
        faults.push(DiskFault::HealthFailing);
    }
    let is_at_threshold = |row: &&Value| {
        let announces = row.pointer("/flags/prefailure").and_then(Value::as_bool) == Some(true);
        announces && row.pointer("/when_failed").and_then(Value::as_str) == Some("now")
    };
    if answer.attributes().iter().any(|row| is_at_threshold(&row)) {
        faults.push(DiskFault::AttributeFailing);
    }
    let warning = answer.number("/nvme_smart_health_information_log/critical_warning").unwrap_or_default();
    faults.extend(WARNINGS.iter().filter(|(bit, _)| warning & bit != 0).map(|(_, fault)| *fault));
    let spare = answer.number("/nvme_smart_health_information_log/available_spare");
    let least = answer.number("/nvme_smart_health_information_log/available_spare_threshold");
    if spare.zip(least).is_some_and(|(spare, least)| spare < least) {
        faults.push(DiskFault::SpareLow);
    }
    if last_self_test_failed(answer) {
        faults.push(DiskFault::SelfTestFailed);
    }
    faults.sort_unstable();
    faults.dedup();
    faults
}

/// The newest one is the first. One that was stopped says neither.
fn last_self_test_failed(answer: &Answer) -> bool {
    // Of NVMe: 5 to 7 are failures.
    let nvme = answer.number("/nvme_self_test_log/table/0/self_test_result/value");
    answer.flag("/ata_smart_self_test_log/standard/table/0/status/passed") == Some(false)
        || nvme.is_some_and(|result| (5..=7).contains(&result))
}

fn wear(answer: &Answer) -> Option<u8> {
    let used = [
        "/nvme_smart_health_information_log/percentage_used",
        "/endurance_used/current_percent",
        "/scsi_percentage_used_endurance_indicator",
    ];
    if let Some(used) = used.into_iter().find_map(|path| answer.number(path)) {
        return u8::try_from(used).ok();
    }
    let left = answer.attributes().iter().find_map(|row| {
        let name = row.pointer("/name").and_then(Value::as_str)?;
        let left = field(row, "/value").filter(|left| (1..=100).contains(left))?;
        LIFE_LEFT.contains(&name).then_some(left)
    })?;
    u8::try_from(100 - left).ok()
}

fn temperature(answer: &Answer) -> Option<Temperature> {
    let celsius = answer.degrees("/temperature/current")?;
    let limits = [
        "/nvme_composite_temperature_threshold/critical",
        "/temperature/drive_trip",
        "/temperature/limit_max",
    ];
    let critical = limits.into_iter().find_map(|path| answer.degrees(path));
    let rated = rated(celsius, critical.filter(|critical| CRITICAL.contains(&i64::from(*critical))));
    let warning = answer.number("/nvme_smart_health_information_log/critical_warning").unwrap_or_default();
    Some(if warning & TOO_HOT != 0 { Temperature { heat: Heat::High, ..rated } } else { rated })
}
