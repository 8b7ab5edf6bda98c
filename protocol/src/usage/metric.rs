//! The table of usage metrics.
//!
//! One row holds everything that is known of a metric. A new metric is a new row, and a way to measure it. The numbers are
//! stored by the hub: none is ever used for another metric.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a metric counts. Values are whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Thousandths of a whole: 1000 is all of it.
    Permille,
    /// Hundredths of a number.
    Centi,
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
}

/// Who has a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricScope {
    /// Hosts alone.
    Host,
    /// Guests alone.
    Guest,
    /// Both.
    Both,
}

/// What is known of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpec {
    /// Its number in the hub's database.
    pub number: u8,
    /// What it counts.
    pub unit: Unit,
    /// Who has it.
    pub scope: MetricScope,
    /// The end of its name in Prometheus, after `holdfast_host_` or `holdfast_guest_`.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub meaning: &'static str,
}

macro_rules! metrics {
    ($($metric:ident = $number:literal $text:literal, $unit:ident, $scope:ident, $name:literal, $meaning:literal;)*) => {
        /// What is measured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum UsageMetric {
            $(#[doc = $meaning] #[serde(rename = $text)] $metric,)*
        }

        impl UsageMetric {
            /// Every metric.
            pub const ALL: &'static [Self] = &[$(Self::$metric,)*];

            /// The metric as written on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$metric => $text,)* }
            }

            /// Its row of the table.
            #[must_use]
            pub const fn spec(self) -> MetricSpec {
                match self {
                    $(Self::$metric => MetricSpec {
                        number: $number,
                        unit: Unit::$unit,
                        scope: MetricScope::$scope,
                        name: $name,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

metrics! {
    Cpu = 1 "cpu_permille", Permille, Both, "cpu_ratio",
        "CPU time in use, of all CPUs of the host or of those that the guest may use.";
    MemoryUsed = 2 "memory_used_bytes", Bytes, Both, "memory_used_bytes", "Memory in use.";
    MemoryTotal = 3 "memory_total_bytes", Bytes, Both, "memory_total_bytes", "Memory of the host, or that the guest may use.";
    DiskUsed = 4 "root_disk_used_bytes", Bytes, Both, "root_disk_used_bytes", "Bytes in use on the root disk.";
    DiskTotal = 5 "root_disk_total_bytes", Bytes, Both, "root_disk_total_bytes", "Size of the root disk.";
    NetIn = 6 "network_in_bytes_per_s", BytesPerSecond, Guest, "network_receive_bytes_per_second",
        "Bytes that the guest received in a second.";
    NetOut = 7 "network_out_bytes_per_s", BytesPerSecond, Guest, "network_transmit_bytes_per_second",
        "Bytes that the guest sent in a second.";
    DiskRead = 8 "disk_read_bytes_per_s", BytesPerSecond, Guest, "disk_read_bytes_per_second",
        "Bytes that the guest read from disks in a second.";
    DiskWrite = 9 "disk_write_bytes_per_s", BytesPerSecond, Guest, "disk_write_bytes_per_second",
        "Bytes that the guest wrote to disks in a second.";
    Load = 10 "load_1m_centi", Centi, Host, "load1", "Mean number of tasks that ran or waited in the last minute.";
    SwapUsed = 11 "swap_used_bytes", Bytes, Host, "swap_used_bytes", "Swap in use.";
    SwapTotal = 12 "swap_total_bytes", Bytes, Host, "swap_total_bytes", "Swap of the host.";
    CpuPressure = 13 "cpu_pressure_permille", Permille, Both, "cpu_pressure_ratio",
        "Part of the last minute in which some task waited for a CPU.";
    MemoryPressure = 14 "memory_pressure_permille", Permille, Both, "memory_pressure_ratio",
        "Part of the last minute in which some task waited for memory.";
    IoPressure = 15 "io_pressure_permille", Permille, Both, "io_pressure_ratio",
        "Part of the last minute in which some task waited for a disk.";
}

/// A text that names no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no metric; there are: {all}", all = all())]
pub struct UnknownMetric(String);

fn all() -> String {
    UsageMetric::ALL.iter().map(|metric| metric.as_str()).collect::<Vec<_>>().join(", ")
}

impl UsageMetric {
    /// That with a number of the hub's database; none for one of a later version.
    #[must_use]
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|metric| metric.spec().number == number)
    }

    /// Whether a guest can have it.
    #[must_use]
    pub const fn is_of_guests(self) -> bool {
        match self.spec().scope {
            MetricScope::Host => false,
            MetricScope::Guest | MetricScope::Both => true,
        }
    }

    /// Whether a host can have it.
    #[must_use]
    pub const fn is_of_hosts(self) -> bool {
        match self.spec().scope {
            MetricScope::Guest => false,
            MetricScope::Host | MetricScope::Both => true,
        }
    }
}

impl fmt::Display for UsageMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for UsageMetric {
    type Err = UnknownMetric;
    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        let found = Self::ALL.iter().copied().find(|metric| metric.as_str() == text);
        found.ok_or_else(|| UnknownMetric(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_a_number_and_a_name_of_its_own() {
        let numbers: BTreeSet<u8> = UsageMetric::ALL.iter().map(|metric| metric.spec().number).collect();
        let names: BTreeSet<&str> = UsageMetric::ALL.iter().map(|metric| metric.spec().name).collect();
        assert_eq!((numbers.len(), names.len()), (UsageMetric::ALL.len(), UsageMetric::ALL.len()));
        for metric in UsageMetric::ALL {
            assert_eq!(UsageMetric::numbered(metric.spec().number), Some(*metric));
            assert_eq!(metric.as_str().parse(), Ok(*metric));
            assert_eq!(serde_json::to_string(metric).unwrap(), format!("{:?}", metric.as_str()));
        }
        assert!("cpu".parse::<UsageMetric>().unwrap_err().to_string().contains("cpu_permille"));
    }
}
