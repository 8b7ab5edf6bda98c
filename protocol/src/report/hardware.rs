//! Disks, temperatures and memory errors of a host.
//!
//! What was not read is absent, never well. Disks are read by a service of root once an hour; temperatures and memory
//! errors by the agent. The section changes at most once an hour, or when something other than a temperature differs.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::DiskSerial;
use crate::text::texts;

/// As many disks as one report holds.
pub const DISKS_MAX: usize = 64;

/// As many temperature sensors as one report holds.
pub const SENSORS_MAX: usize = 64;

texts! {
    /// A name that hardware gives itself: of a model, a device or a sensor.
    HardwareName, 1..=64, "a name of hardware is 1 to 64 characters without control characters",
        |text| !text.chars().any(char::is_control);
}

impl HardwareName {
    /// Makes any text fit: control characters become spaces, and the rest is cut off. Text of spaces alone is none.
    #[must_use]
    pub fn clipped(text: &str) -> Option<Self> {
        let plain: String =
            text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        Self::try_from(plain.trim().chars().take(64).collect::<String>()).ok()
    }
}

/// The hardware, as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HardwareSection {
    /// When temperatures and memory errors were read.
    pub read_at: Timestamp,
    /// When root's service read the disks; none where it did not, or not as the agent can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks_read_at: Option<Timestamp>,
    /// The disks, at most [`DISKS_MAX`], in the order of their devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskReport>,
    /// How many more disks there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disks_left_out: u32,
    /// The sensors of the machine, at most [`SENSORS_MAX`], by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensors: Vec<SensorReport>,
    /// Errors of the memory since the start of the machine; none where its memory controllers do not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_errors: Option<MemoryErrors>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One disk, by its own report. A value that it does not report is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskReport {
    /// Its device at the time of reading, such as `/dev/sda`.
    pub device: HardwareName,
    /// What became of the attempt to read it.
    pub reading: DiskReading,
    /// When its values were read; none where they never were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<HardwareName>,
    /// Its serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<DiskSerial>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Its own verdict.
    pub health: DiskHealth,
    /// What it finds wrong with itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<DiskFault>,
    /// How much of its life in writes is used up, in percent. It can exceed 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear_percent: Option<u8>,
    /// Its temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// How long it was powered on, in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
    /// Sectors that it replaced by spare ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reallocated_sectors: Option<u64>,
    /// Sectors that it could not read, and will replace when they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_sectors: Option<u64>,
    /// Sectors that a test of its own could not read, or errors of its flash that it could not correct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncorrectable_errors: Option<u64>,
}

/// What became of the attempt to read a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskReading {
    /// It was read.
    Read,
    /// It does not spin, and was not woken for this. Its values are those of an earlier reading.
    Asleep,
    /// It could not be read, or its answer was unusable.
    Unreadable,
}

/// A disk's own verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskHealth {
    /// It says that it is healthy.
    Passed,
    /// It says that it fails.
    Failing,
    /// It says nothing of it.
    Unknown,
}

/// What a disk finds wrong with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskFault {
    /// Its own verdict is that it fails.
    HealthFailing,
    /// A value that announces a failure is at its threshold.
    AttributeFailing,
    /// Its spare blocks are nearly used up.
    SpareLow,
    /// It calls itself unreliable.
    Unreliable,
    /// It takes no writes any more.
    ReadOnly,
    /// Its cache would not survive a power cut.
    BackupPower,
    /// The last test of its own failed.
    SelfTestFailed,
}

impl DiskFault {
    /// In words, after "it".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::HealthFailing => "says that it fails",
            Self::AttributeFailing => "has a value at the threshold that announces a failure",
            Self::SpareLow => "has nearly no spare blocks left",
            Self::Unreliable => "calls itself unreliable",
            Self::ReadOnly => "takes no writes any more",
            Self::BackupPower => "cannot save its cache in a power cut",
            Self::SelfTestFailed => "failed its last self-test",
        }
    }
}

/// One sensor of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SensorReport {
    /// Its chip and label, such as `coretemp Package id 0`.
    pub name: HardwareName,
    /// Its temperature.
    pub temperature: Temperature,
}

/// A temperature in degrees Celsius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Temperature {
    /// As it was read.
    pub celsius: i16,
    /// What its maker calls critical, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_celsius: Option<i16>,
    /// Whether that is too hot.
    pub heat: Heat,
}

/// Whether a temperature is too high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Heat {
    /// It is not.
    Normal,
    /// It is near its critical value, or was, and has not cooled down far enough since.
    High,
    /// There is no critical value to compare it with.
    Unrated,
}

/// Errors of the memory since the start of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryErrors {
    /// Those that were corrected: no data was harmed.
    pub corrected: u64,
    /// Those that could not be corrected: data was lost.
    pub uncorrected: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_hardware_is_made_to_fit() {
        for (text, name) in [
            ("  WDC WD40EFRX  ", Some("WDC WD40EFRX")),
            ("a\u{7}b\nc", Some("a b c")),
            ("", None),
            ("\n\t ", None),
        ] {
            assert_eq!(HardwareName::clipped(text).as_ref().map(HardwareName::as_str), name, "{text:?}");
        }
        let long = HardwareName::clipped(&"ü".repeat(9_000)).unwrap();
        assert_eq!(long.as_str().chars().count(), 64);
    }

    #[test]
    fn a_section_is_closed_and_says_nothing_of_what_was_not_read() {
        let bare = r#"{"read_at":"2026-11-21T02:00:00Z"}"#;
        let section: HardwareSection = serde_json::from_str(bare).unwrap();
        assert_eq!((section.disks_read_at, section.memory_errors), (None, None));
        assert_eq!(serde_json::to_string(&section).unwrap(), bare);
        let more = r#"{"read_at":"2026-11-21T02:00:00Z","fans":[]}"#;
        serde_json::from_str::<HardwareSection>(more).unwrap_err();
    }
}
