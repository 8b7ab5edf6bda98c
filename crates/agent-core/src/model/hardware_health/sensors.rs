//! Temperatures and memory errors, as the kernel shows them.
//!
//! In: texts of `/sys/class/hwmon` and `/sys/devices/system/edac`. Out: values within what can be true. A sensor that is not
//! connected often shows a value that no machine has; such a sensor is left out.

use std::collections::BTreeMap;

use holdfast_protocol::report::{HardwareName, MemoryErrors, SENSORS_MAX, SensorReport};

use super::rated;

/// What a working machine can have, in degrees.
const CELSIUS: std::ops::RangeInclusive<i64> = -40..=150;

/// What a maker can call critical, in degrees.
pub(super) const CRITICAL: std::ops::RangeInclusive<i64> = 30..=150;

/// A sensor, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawSensor {
    /// The name of its chip.
    pub chip: String,
    /// Its label, or the name of its file.
    pub label: String,
    /// In thousandths of a degree.
    pub input: String,
    /// Its critical value, in the same.
    pub critical: Option<String>,
}

/// The counters of a memory controller, as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawController {
    pub corrected: String,
    pub uncorrected: String,
}

/// The sensors by name, at most [`SENSORS_MAX`]. Those with one name are numbered.
#[must_use]
pub fn sensors(raw: &[RawSensor]) -> Vec<SensorReport> {
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut sensors: Vec<SensorReport> = Vec::new();
    for sensor in raw {
        let Some(celsius) = degrees(&sensor.input, CELSIUS) else { continue };
        let critical = sensor.critical.as_deref().and_then(|text| degrees(text, CRITICAL));
        let plain = format!("{} {}", sensor.chip.trim(), sensor.label.trim());
        let count = names.entry(plain.clone()).and_modify(|count| *count += 1).or_insert(1);
        let numbered = if *count == 1 { plain } else { format!("{} #{count}", clip(&plain)) };
        let Some(name) = HardwareName::clipped(&numbered) else { continue };
        sensors.push(SensorReport { name, temperature: rated(celsius, critical) });
    }
    sensors.sort_by(|one, other| one.name.cmp(&other.name));
    sensors.dedup_by(|next, kept| next.name == kept.name);
    sensors.truncate(SENSORS_MAX);
    sensors
}

/// Leaves room for a number.
fn clip(name: &str) -> String {
    name.chars().take(56).collect()
}

fn degrees(thousandths: &str, range: std::ops::RangeInclusive<i64>) -> Option<i16> {
    let celsius = thousandths.trim().parse::<i64>().ok()?.div_euclid(1_000);
    range.contains(&celsius).then_some(celsius).and_then(|celsius| i16::try_from(celsius).ok())
}

/// The sum over all controllers; none where one of them cannot be read, or there is none.
#[must_use]
pub fn memory_errors(raw: &[RawController]) -> Option<MemoryErrors> {
    let mut sum = None;
    for controller in raw {
        let (corrected, uncorrected) = (count(&controller.corrected)?, count(&controller.uncorrected)?);
        let before: MemoryErrors = sum.unwrap_or_default();
        sum = Some(MemoryErrors {
            corrected: before.corrected.saturating_add(corrected),
            uncorrected: before.uncorrected.saturating_add(uncorrected),
        });
    }
    sum
}

fn count(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::report::Heat;

    fn sensor(label: &str, input: &str, critical: Option<&str>) -> RawSensor {
        let critical = critical.map(str::to_owned);
        RawSensor {
            chip: "coretemp\n".to_owned(),
            label: label.to_owned(),
            input: input.to_owned(),
            critical,
        }
    }

    #[test]
    fn a_value_is_read_and_rated_where_it_can_be_true() {
        for (input, critical, expected) in [
            ("45000\n", Some("100000\n"), Some((45, Some(100), Heat::Normal))),
            ("97000", Some("100000"), Some((97, Some(100), Heat::High))),
            ("96999", Some("100000"), Some((96, Some(100), Heat::Normal))),
            ("45000", None, Some((45, None, Heat::Unrated))),
            // Chips report these for what is not connected.
            ("45000", Some("0"), Some((45, None, Heat::Unrated))),
            ("45000", Some("65261850"), Some((45, None, Heat::Unrated))),
            ("-128000", None, None),
            ("-500", None, Some((-1, None, Heat::Unrated))),
            ("255000", None, None),
            ("99999999999999999999", None, None),
            ("NaN", None, None),
            ("", None, None),
        ] {
            let read = sensors(&[sensor("Core 0", input, critical)]);
            let found = read
                .first()
                .map(|one| (one.temperature.celsius, one.temperature.critical_celsius, one.temperature.heat));
            assert_eq!(found, expected, "{input} of {critical:?}");
        }
    }

    #[test]
    fn sensors_with_one_name_are_numbered_and_bounded() {
        let three = vec![sensor("Core 0", "1000", None); 3];
        let names: Vec<_> = sensors(&three).iter().map(|one| one.name.as_str().to_owned()).collect();
        assert_eq!(names, ["coretemp Core 0", "coretemp Core 0 #2", "coretemp Core 0 #3"]);
        assert_eq!(sensors(&vec![sensor(&"x".repeat(9_000), "1000", None); 999]).len(), SENSORS_MAX);
    }

    #[test]
    fn errors_of_all_controllers_are_added_or_unknown() {
        let one = |corrected: &str, uncorrected: &str| RawController {
            corrected: corrected.to_owned(),
            uncorrected: uncorrected.to_owned(),
        };
        let sum = |corrected, uncorrected| Some(MemoryErrors { corrected, uncorrected });
        assert_eq!(memory_errors(&[]), None, "a machine without counters is not one without errors");
        assert_eq!(memory_errors(&[one("3\n", "0\n"), one("4", "1")]), sum(7, 1));
        assert_eq!(memory_errors(&[one("3", "0"), one("", "1")]), None);
        assert_eq!(memory_errors(&[one("-1", "0")]), None);
        let most = u64::MAX.to_string();
        assert_eq!(memory_errors(&[one(&most, "0"), one("9", "0")]), sum(u64::MAX, 0));
    }
}
