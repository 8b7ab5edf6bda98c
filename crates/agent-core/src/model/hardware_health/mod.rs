//! The state of a host's hardware, from what was read of it.
//!
//! In: the raw texts that a port reads, and the time. Out: the section of the report, with counts over the last days. What
//! was not read is absent; values of an earlier reading stay with its time. Deliberately absent: what is wrong, which
//! `plan::conditions` derives.
//!
//! | module | contents |
//! | --- | --- |
//! | [`count_history`] | error counts over the last days |
//! | [`disks_file`] | the file that root's service writes |
//! | [`sensors`] | temperatures and memory errors, as the kernel shows them |
//! | `smartctl` | one answer of smartctl |

pub mod count_history;
pub mod disks_file;
pub mod sensors;
mod smartctl;

use std::collections::BTreeMap;

use holdfast_protocol::report::{
    DISKS_MAX, DiskReading, DiskReport, HardwareName, HardwareSection, Heat, SensorReport, Temperature,
    UpdatesSection,
};
use jiff::{SignedDuration, Timestamp};

use self::count_history::CountHistory;
use self::disks_file::DiskReadings;
use self::sensors::{RawController, RawSensor};

/// How long temperatures alone make no new section.
const SECTION_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// This near to its critical value a part is too hot, in degrees.
const HOT_WITHIN: i16 = 3;

/// This far below its critical value it has cooled down, in degrees.
const COOL_BELOW: i16 = 10;

/// The key of corrected memory errors in the history.
pub const CORRECTED: &str = "memory";

/// The hardware, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawHardware {
    /// The disks; none where there is no usable file.
    pub disks: Option<DiskReadings>,
    pub sensors: Vec<RawSensor>,
    /// One for each memory controller that counts errors.
    pub memory: Vec<RawController>,
    /// The packages of the host, which another service of root reads; none where there is no usable file.
    pub updates: Option<UpdatesSection>,
}

/// What is known of the hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HardwareView {
    /// None until it was read once.
    pub section: Option<HardwareSection>,
    pub history: CountHistory,
    /// The last reading of pending upgrades.
    pub updates: Option<UpdatesSection>,
}

impl HardwareView {
    /// What is known after another reading.
    #[must_use]
    pub fn next(&self, raw: RawHardware, now: Timestamp) -> Self {
        let before = self.section.as_ref();
        let mut section = HardwareSection {
            read_at: now,
            disks_read_at: before.and_then(|before| before.disks_read_at),
            disks: before.map(|before| before.disks.clone()).unwrap_or_default(),
            disks_left_out: before.map_or(0, |before| before.disks_left_out),
            sensors: sensors::sensors(&raw.sensors),
            memory_errors: sensors::memory_errors(&raw.memory),
        };
        let mut disks_are = DisksAre::AsBefore;
        if let Some(DiskReadings { read_at, mut disks, left_out }) = raw.disks {
            let is_new = before.and_then(|before| before.disks_read_at) != Some(read_at.min(now));
            disks_are = if is_new { DisksAre::ReadAnew } else { DisksAre::AsBefore };
            disks.iter_mut().for_each(|disk| carry_over(disk, &section.disks));
            section.disks_read_at = Some(read_at.min(now));
            section.disks_left_out = left_out;
            section.disks = disks;
            section.disks.truncate(DISKS_MAX);
        }
        let hot: BTreeMap<&HardwareName, Temperature> = before
            .iter()
            .flat_map(|before| &before.sensors)
            .map(|one| (&one.name, one.temperature))
            .collect();
        for SensorReport { name, temperature } in &mut section.sensors {
            *temperature = cooled(hot.get(name).copied(), *temperature);
        }
        let mut history = self.history.clone();
        note(&mut history, (&section, disks_are), now);
        let section = match before {
            Some(before) if !is_news(before, &section) => before.clone(),
            Some(_) | None => section,
        };
        Self { section: Some(section), history, updates: raw.updates.or_else(|| self.updates.clone()) }
    }
}

/// The key of a disk in the history.
#[must_use]
pub fn history_key(disk: &DiskReport) -> Option<String> {
    disk.serial.as_ref().map(|serial| format!("disk {}", serial.as_str()))
}

/// Errors that a healthy disk does not get more of.
#[must_use]
pub fn error_count(disk: &DiskReport) -> Option<u64> {
    let counts = [disk.reallocated_sectors, disk.uncorrectable_errors];
    counts.into_iter().flatten().reduce(u64::saturating_add)
}

/// Whether the disks of a section are those of the section before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DisksAre {
    ReadAnew,
    AsBefore,
}

fn note(history: &mut CountHistory, (section, disks): (&HardwareSection, DisksAre), now: Timestamp) {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for disk in &section.disks {
        let key = history_key(disk).into_iter();
        match (disk.reading, disks) {
            (DiskReading::Read, DisksAre::ReadAnew) => counts.extend(key.zip(error_count(disk))),
            // What was counted earlier stays.
            (DiskReading::Read, DisksAre::AsBefore) | (DiskReading::Asleep | DiskReading::Unreadable, _) => {
                history.touch(key);
            }
        }
    }
    counts.extend(section.memory_errors.map(|errors| (CORRECTED.to_owned(), errors.corrected)));
    history.note(counts, now);
}

/// A disk that sleeps, or cannot be read this time, keeps the values of an earlier reading under the same device.
fn carry_over(disk: &mut DiskReport, before: &[DiskReport]) {
    let earlier = before.iter().find(|earlier| earlier.device == disk.device);
    let Some(earlier) = earlier else { return };
    match disk.reading {
        DiskReading::Read => {
            let same = disk.serial == earlier.serial;
            let earlier = earlier.temperature.filter(|_| same);
            disk.temperature = disk.temperature.map(|now| cooled(earlier, now));
        }
        DiskReading::Asleep | DiskReading::Unreadable => {
            *disk = DiskReport { reading: disk.reading, ..earlier.clone() };
        }
    }
}

/// The temperature with its verdict, before it is known what it was.
#[must_use]
pub(crate) fn rated(celsius: i16, critical_celsius: Option<i16>) -> Temperature {
    let heat = match critical_celsius {
        None => Heat::Unrated,
        Some(critical) if celsius >= critical.saturating_sub(HOT_WITHIN) => Heat::High,
        Some(_) => Heat::Normal,
    };
    Temperature { celsius, critical_celsius, heat }
}

/// What was hot is hot until it has cooled down for sure.
fn cooled(before: Option<Temperature>, now: Temperature) -> Temperature {
    let was_hot = before.is_some_and(|before| before.heat == Heat::High);
    let is_near = now.critical_celsius.is_some_and(|most| now.celsius > most.saturating_sub(COOL_BELOW));
    if was_hot && is_near { Temperature { heat: Heat::High, ..now } } else { now }
}

/// Whether there is more to say than other temperatures, or the last section is old.
fn is_news(before: &HardwareSection, now: &HardwareSection) -> bool {
    let is_due = now.read_at.duration_since(before.read_at).abs() >= SECTION_EVERY;
    let bare = |section: &HardwareSection| {
        let mut bare = HardwareSection { read_at: Timestamp::UNIX_EPOCH, ..section.clone() };
        for sensor in &mut bare.sensors {
            sensor.temperature.celsius = 0;
        }
        bare
    };
    is_due || bare(before) != bare(now)
}

#[cfg(test)]
mod tests;
