//! Tables of a host's disks and temperatures.

use holdfast_protocol::report::{
    DiskHealth, DiskReading, DiskReport, HardwareSection, Heat, MemoryErrors, SensorReport, Temperature,
};
use jiff::{SignedDuration, Timestamp};

use super::table::{Field, NOTHING, Tone, plain, table};
use super::time::{ago, bytes, span};
use crate::screen::Style;

const HEADER: [&str; 8] = ["DISK", "HEALTH", "WEAR", "TEMPERATURE", "POWERED", "SIZE", "SERIAL", "MODEL"];

/// Disks are read once an hour; this is twice missed.
const OLD: SignedDuration = SignedDuration::from_hours(3);

/// From here on wear is shown as worth a check; the condition begins later.
const WEAR_LOOK: u8 = 80;

/// Disks, memory errors and temperatures, each with its age.
pub fn hardware(section: &HardwareSection, now: Timestamp, style: Style) -> String {
    let mut text = match section.disks_read_at {
        None => "Disks: not read. On the host: `systemctl status holdfast-hardware.timer` (it needs smartmontools).\n"
            .to_owned(),
        Some(at) => disks(section, at, now, style),
    };
    if let Some(MemoryErrors { corrected, uncorrected }) = section.memory_errors {
        text.push_str(&format!(
            "Memory errors since the start of the machine: {corrected} corrected, {uncorrected} not corrected.\n"
        ));
    }
    text.push_str(&temperatures(&section.sensors, section.read_at, now));
    text
}

fn disks(section: &HardwareSection, at: Timestamp, now: Timestamp, style: Style) -> String {
    let mut text = match section.disks.as_slice() {
        [] => "No disk was found.\n".to_owned(),
        disks => table(&HEADER, disks.iter().map(disk), style),
    };
    if section.disks_left_out > 0 {
        text.push_str(&format!("{} more disks are not shown.\n", section.disks_left_out));
    }
    let old = if now.duration_since(at) > OLD {
        ": older than it should be, see `systemctl status holdfast-hardware.timer` on the host"
    } else {
        ""
    };
    text.push_str(&format!("Disks were read {}{old}.\n", ago(at, now)));
    text
}

fn disk(disk: &DiskReport) -> Vec<Field> {
    let text = |value: Option<&str>| plain(value.unwrap_or(NOTHING));
    vec![
        plain(disk.device.as_str()),
        health(disk),
        wear(disk.wear_percent),
        temperature(disk.temperature),
        plain(
            disk.power_on_hours.map_or_else(|| NOTHING.to_owned(), |hours| span(hours.saturating_mul(3_600))),
        ),
        plain(disk.size_bytes.map_or_else(|| NOTHING.to_owned(), bytes)),
        text(disk.serial.as_ref().map(|serial| serial.as_str())),
        text(disk.model.as_ref().map(|model| model.as_str())),
    ]
}

fn health(disk: &DiskReport) -> Field {
    let faults: Vec<&str> = disk.faults.iter().map(|fault| fault.words()).collect();
    let (verdict, tone) = match (disk.health, faults.is_empty()) {
        (DiskHealth::Failing, _) | (DiskHealth::Passed | DiskHealth::Unknown, false) => {
            (faults.join(", "), Tone::Bad)
        }
        (DiskHealth::Passed, true) => ("passed".to_owned(), Tone::Good),
        (DiskHealth::Unknown, true) => ("unknown".to_owned(), Tone::Look),
    };
    match (disk.reading, disk.read_at) {
        (DiskReading::Read, _) => (verdict, tone),
        (DiskReading::Asleep, Some(_)) => (format!("{verdict} (asleep)"), tone),
        (DiskReading::Asleep, None) => ("asleep".to_owned(), Tone::Plain),
        (DiskReading::Unreadable, Some(_)) => (format!("{verdict} (not readable now)"), Tone::Look),
        (DiskReading::Unreadable, None) => ("not readable".to_owned(), Tone::Look),
    }
}

fn wear(percent: Option<u8>) -> Field {
    let Some(percent) = percent else { return plain(NOTHING) };
    (format!("{percent} %"), if percent >= WEAR_LOOK { Tone::Look } else { Tone::Plain })
}

fn temperature(temperature: Option<Temperature>) -> Field {
    let Some(temperature) = temperature else { return plain(NOTHING) };
    let tone = match temperature.heat {
        Heat::High => Tone::Bad,
        Heat::Normal | Heat::Unrated => Tone::Plain,
    };
    (degrees(temperature), tone)
}

fn degrees(temperature: Temperature) -> String {
    let critical = temperature.critical_celsius.map(|most| format!(" of {most}")).unwrap_or_default();
    format!("{}{critical} °C", temperature.celsius)
}

/// Those that are too hot by name, else the hottest one.
fn temperatures(sensors: &[SensorReport], at: Timestamp, now: Timestamp) -> String {
    let named = |sensor: &SensorReport| {
        format!("{} {}", super::clean(sensor.name.as_str()), degrees(sensor.temperature))
    };
    let hot: Vec<String> =
        sensors.iter().filter(|sensor| sensor.temperature.heat == Heat::High).map(named).collect();
    let hottest = sensors.iter().max_by_key(|sensor| sensor.temperature.celsius);
    match (hot.is_empty(), hottest) {
        (_, None) => String::new(),
        (false, Some(_)) => format!("Too hot: {} ({}).\n", hot.join(", "), ago(at, now)),
        (true, Some(sensor)) => {
            format!("Hottest of {} sensors: {} ({}).\n", sensors.len(), named(sensor), ago(at, now))
        }
    }
}
