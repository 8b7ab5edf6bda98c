//! Conditions of disks, memory and temperatures.
//!
//! In: the last reading, and counts of errors over the last days. Out: findings, and whether enough is known to end one. A
//! disk that sleeps keeps the conditions that it had, and so do all disks when the reading is old: root's service stopped.

use holdfast_protocol::condition::{ConditionCode, DiskSerial, Severity, Subject};
use holdfast_protocol::report::{DiskReading, DiskReport, HardwareSection, Heat, MemoryErrors, SensorReport};
use jiff::{SignedDuration, Timestamp};

use super::{Finding, HostKnowledge};
use crate::model::hardware_health::{CORRECTED, HardwareView, error_count, history_key};

/// Disks are read once an hour. After so long the reading says nothing of now.
const READING_OLD: SignedDuration = SignedDuration::from_hours(3);

/// A disk that has used up so much of its writes is worn.
const WORN_PERCENT: u8 = 90;

/// A machine with more corrected errors of memory than this in the days that are counted has a bad module.
const CORRECTED_MAX: u64 = 10;

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let Some(section) = &known.hardware.section else { return Vec::new() };
    let disks = disks_of(section, known.wall).iter();
    let disks = disks.filter(|disk| disk.reading == DiskReading::Read).filter_map(|disk| {
        let subject = Subject::Disk { serial: disk.serial.clone()? };
        Some([failing(disk, &subject, known.hardware), worn(disk, &subject), hot_disk(disk, &subject)])
    });
    let memory = section.memory_errors.and_then(|errors| memory(errors, known.hardware));
    disks.flatten().flatten().chain(memory).chain(hot_machine(&section.sensors)).collect()
}

/// The disks; none while their reading is old.
fn disks_of(section: &HardwareSection, now: Timestamp) -> &[DiskReport] {
    let is_fresh = section.disks_read_at.is_some_and(|at| now.duration_since(at) <= READING_OLD);
    if is_fresh { &section.disks } else { &[] }
}

fn name(disk: &DiskReport) -> String {
    let model = disk.model.as_ref().map(|model| format!(" ({})", model.as_str())).unwrap_or_default();
    format!("{}{model}", disk.device.as_str())
}

/// What the disk itself calls a failure is critical. Sectors that it could not read, and new errors, are a warning.
fn failing(disk: &DiskReport, subject: &Subject, known: &HardwareView) -> Option<Finding> {
    let mut facts: Vec<String> = disk.faults.iter().map(|fault| fault.words().to_owned()).collect();
    let severity = facts.is_empty().then_some(Severity::Warning);
    let pending = disk.pending_sectors.filter(|pending| *pending > 0);
    facts.extend(pending.map(|pending| format!("could not read {pending} sectors")));
    let more = history_key(disk).map_or(0, |key| known.history.rise(&key));
    if more > 0 {
        facts.push(format!("counts {more} more errors than in the days before"));
    }
    let message = format!("disk {} {}", name(disk), facts.join(", "));
    let finding = Finding::new(ConditionCode::DiskFailing, subject.clone(), message);
    (!facts.is_empty()).then_some(Finding { severity, ..finding })
}

fn worn(disk: &DiskReport, subject: &Subject) -> Option<Finding> {
    let percent = disk.wear_percent.filter(|percent| *percent >= WORN_PERCENT)?;
    let message = format!("disk {} has used up {percent} % of the writes that it is made for", name(disk));
    Some(Finding::new(ConditionCode::DiskWorn, subject.clone(), message))
}

fn hot_disk(disk: &DiskReport, subject: &Subject) -> Option<Finding> {
    let temperature = disk.temperature.filter(|temperature| temperature.heat == Heat::High)?;
    let message = format!("disk {} has {} °C", name(disk), temperature.celsius);
    Some(Finding::new(ConditionCode::TemperatureHigh, subject.clone(), message))
}

/// One condition for all sensors: they share a case and a room.
fn hot_machine(sensors: &[SensorReport]) -> Option<Finding> {
    let hot = sensors.iter().filter(|sensor| sensor.temperature.heat == Heat::High);
    let facts: Vec<String> = hot
        .map(|SensorReport { name, temperature }| {
            let critical = temperature.critical_celsius.map(|most| format!(" of {most}")).unwrap_or_default();
            format!("{} has {}{critical} °C", name.as_str(), temperature.celsius)
        })
        .collect();
    let finding = || Finding::new(ConditionCode::TemperatureHigh, Subject::Host {}, facts.join(", "));
    (!facts.is_empty()).then(finding)
}

/// What could not be corrected is critical.
fn memory(errors: MemoryErrors, known: &HardwareView) -> Option<Finding> {
    let MemoryErrors { uncorrected, corrected: _ } = errors;
    let rise = known.history.rise(CORRECTED);
    let (severity, message) = if uncorrected > 0 {
        let message =
            format!("{uncorrected} errors of memory could not be corrected since the machine started");
        (Some(Severity::Critical), message)
    } else if rise > CORRECTED_MAX {
        (None, format!("memory had {rise} errors in the last days, all corrected"))
    } else {
        return None;
    };
    Some(Finding { severity, ..Finding::new(ConditionCode::MemoryErrors, Subject::Host {}, message) })
}

/// What is known of the hardware at present.
#[derive(Clone, Copy, Debug)]
pub struct HardwareCoverage<'a> {
    pub view: &'a HardwareView,
    /// By the wall clock.
    pub now: Timestamp,
}

impl HardwareCoverage<'_> {
    /// Whether this disk was read, or is not there any more.
    pub(super) fn has_disk(&self, subject: &Subject) -> bool {
        self.disk(subject, |_| true)
    }

    /// Whether it was read for a day, so that no new error is known to be none.
    pub(super) fn has_disk_errors(&self, subject: &Subject) -> bool {
        self.disk(subject, |disk| {
            let key = history_key(disk);
            error_count(disk).is_none() || key.is_some_and(|key| self.view.history.is_watched(&key, self.now))
        })
    }

    pub(super) fn has_memory_errors(&self) -> bool {
        let section = self.view.section.as_ref();
        section.is_some_and(|section| {
            // Without counters there is nothing that they counted.
            section.memory_errors.is_none() || self.view.history.is_watched(CORRECTED, self.now)
        })
    }

    pub(super) fn has_temperature(&self, subject: &Subject) -> bool {
        // Of another subject than a disk, `has_disk` says yes.
        self.view.section.is_some() && self.has_disk(subject)
    }

    fn disk(&self, subject: &Subject, is_known: impl FnOnce(&DiskReport) -> bool) -> bool {
        let Subject::Disk { serial } = subject else { return true };
        let Some(section) = &self.view.section else { return false };
        let disks = disks_of(section, self.now);
        let has = |disk: &&DiskReport| disk.serial.as_ref().map(DiskSerial::as_str) == Some(serial.as_str());
        match disks.iter().find(has) {
            Some(disk) => disk.reading == DiskReading::Read && is_known(disk),
            // It is gone, where all disks that are there are known by their serial numbers.
            None => {
                let are_known = disks.iter().all(|disk| disk.serial.is_some());
                are_known && !disks.is_empty() && section.disks_left_out == 0
            }
        }
    }
}
