//! Sizes with their ranges.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A number outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} {unit} is out of range: {min} to {max} are possible")]
pub struct SizeError {
    unit: &'static str,
    value: u32,
    min: u32,
    max: u32,
}

macro_rules! sizes {
    ($($(#[$doc:meta])* $name:ident in $min:literal ..= $max:literal, $unit:literal)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "u32", into = "u32")]
        pub struct $name(u32);

        impl $name {
            /// The smallest value.
            pub const MIN: Self = Self($min);
            /// The largest value.
            pub const MAX: Self = Self($max);

            /// The number, in the unit of the type.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl TryFrom<u32> for $name {
            type Error = SizeError;
            fn try_from(value: u32) -> Result<Self, SizeError> {
                if ($min..=$max).contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(SizeError { unit: $unit, value, min: $min, max: $max })
                }
            }
        }

        impl From<$name> for u32 {
            fn from(size: $name) -> Self {
                size.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {}", self.0, $unit)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "integer", "minimum": $min, "maximum": $max, "description": $unit })
            }
        }
    )*};
}

sizes! {
    /// How long a work order may wait, or what it made is kept: a minute to a day, or to a month.
    OrderSeconds in 60..=2678400, "s"
    /// How long the earlier secrets of a machine token go on after a rotation.
    OverlapHours in 0..=720, "h"
    /// How long an operator's token lives.
    TokenDays in 1..=3650, "days"
    /// CPU cores of a guest. Proxmox accepts 1 to 8192; 512 is above any host we meet.
    Cores in 1..=512, "cores"
    /// CPU time that a guest may use at most, in percent of one core: 150 is one core and a half. With less than 5 nothing in
    /// it answers in time.
    CorePercent in 5..=51_200, "% of a core"
    /// Weight of a guest where CPU time is short. The kernel takes 1 to 10000; Proxmox more.
    CpuWeight in 1..=10_000, "(weight)"
    /// Cores that all guests of a customer on a host may have.
    CustomerCores in 1..=65_536, "cores"
    /// Disks that all guests of a customer on a host may have.
    CustomerDiskGib in 1..=16_777_216, "GiB"
    /// Memory that all guests of a customer on a host may have.
    CustomerMemoryMib in 64..=1_073_741_824, "MiB"
    /// Size of a disk in GiB.
    DiskGib in 1..=65536, "GiB"
    /// How old a backup may be that is asked for before something else begins. A month is four weekly ones.
    BackupAgeHours in 1..=744, "h"
    /// How long a backup is put off at most, in minutes, so that not all begin at once.
    JitterMinutes in 0..=720, "min"
    /// How many backups a rule of a retention keeps.
    KeepCount in 1..=9999, "backups"
    /// How much of CPU time, memory or root disk is called too much, in percent.
    LevelPercent in 20..=100, "%"
    /// Memory of a guest in MiB. A Debian with systemd does not start below 64.
    MemoryMib in 64..=4_194_304, "MiB"
    /// The largest packet of a guest's interface in bytes. IPv4 wants 576 of every network; Proxmox takes up to 65535.
    MtuBytes in 576..=65_535, "bytes"
    /// After how long a silence a host is called offline, in seconds.
    AlarmSeconds in 60..=86_400, "s"
    /// How often an agent observes its host when nothing is new, in seconds.
    ObserveSeconds in 5..=60, "s"
    /// How often an agent polls the hub when nothing is new, in seconds.
    PollSeconds in 1..=3600, "s"
    /// How much of what a host has may be promised to guests, in percent.
    PromisedPercent in 10..=10_000, "%"
    /// How much a guest's interface lets through. 100000 MiB/s is above any card we meet.
    RateMib in 1..=100_000, "MiB/s"
    /// Swap of a guest in MiB; 0 is none.
    SwapMib in 0..=4_194_304, "MiB"
    /// How many days may pass between two tests that restore a backup.
    TestDays in 1..=366, "days"
    /// A VLAN.
    VlanTag in 1..=4094, "(VLAN tag)"
    /// How long after its time a backup may begin, in minutes.
    WindowMinutes in 1..=1440, "min"
}

impl PromisedPercent {
    /// Of the CPUs, where no document says otherwise: guests seldom compute at the same time.
    pub const CORES: Self = Self(400);
    /// Of the memory, where no document says otherwise.
    pub const MEMORY: Self = Self(100);
    /// Of a storage, where no document says otherwise: as much as the operators' policy has without `disk_percent`.
    pub const DISK: Self = Self(200);
}

impl LevelPercent {
    /// Of CPU time, where no document says otherwise.
    pub const CPU: Self = Self(95);
    /// Of memory, where no document says otherwise.
    pub const MEMORY: Self = Self(95);
    /// Of the root disk, where no document says otherwise.
    pub const ROOT_DISK: Self = Self(90);
}
