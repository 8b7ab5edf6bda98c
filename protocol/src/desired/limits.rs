//! Limits of a guest's CPU time in the document.
//!
//! In: the section `limits` of a guest. Out: what Proxmox lets the agent's token set (`29-limits-options`,
//! `30-limits-privileges`). What is left out stays as it is on the host. Limits of memory, swap and disks are sizes, and the
//! limit of the network is `network.rate`. Deliberately absent: what no token can set. Those names are refused with the reason,
//! so that no document has a field that steers nothing.

use schemars::JsonSchema;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

use crate::size::{CorePercent, CpuWeight};

/// What a guest may use of the CPUs. A running guest has both at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestLimits {
    /// CPU time that it may use at most. Left out, it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuLimit>,
    /// Its weight against other guests where CPU time is short. Left out, it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<CpuWeight>,
    /// Refused: no token can set it.
    #[serde(default, skip_serializing, deserialize_with = "disk_rate")]
    #[schemars(skip)]
    pub disk_rate: Option<NotSettable>,
    /// Refused: no token can set it.
    #[serde(default, skip_serializing, deserialize_with = "io_weight")]
    #[schemars(skip)]
    pub io_weight: Option<NotSettable>,
    /// Refused: no token can set it.
    #[serde(default, skip_serializing, deserialize_with = "pids")]
    #[schemars(skip)]
    pub pids: Option<NotSettable>,
}

impl GuestLimits {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.cpu_weight.is_none()
    }
}

/// CPU time that a guest may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuLimit {
    /// All of its cores.
    Unlimited,
    /// So much of one core; 150 is one core and a half.
    CorePercent(CorePercent),
}

/// A limit that no token can set. There is no value of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum NotSettable {}

/// The first words of the refusal of such a limit.
pub const NOT_SETTABLE: &str = "no token can set";

fn refuse<'de, D: Deserializer<'de>>(
    deserializer: D,
    name: &str,
    instead: &str,
) -> Result<Option<NotSettable>, D::Error> {
    // The value is read to its end first, so that the path of the mistake is this field.
    let IgnoredAny = IgnoredAny::deserialize(deserializer)?;
    Err(D::Error::custom(format_args!(
        "{NOT_SETTABLE} {name}: Proxmox's API has no option for it, and the agent writes no file of the host; leave it out, {instead}"
    )))
}

fn disk_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NotSettable>, D::Error> {
    refuse(
        deserializer,
        "disk_rate",
        "and see who uses a disk with NOISY_NEIGHBOUR and `holdfast guest show`",
    )
}

fn io_weight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NotSettable>, D::Error> {
    refuse(
        deserializer,
        "io_weight",
        "and see who uses a disk with NOISY_NEIGHBOUR and `holdfast guest show`",
    )
}

fn pids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NotSettable>, D::Error> {
    refuse(deserializer, "pids", "and bound it in the guest, by TasksMax= of systemd")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_the_rest_left_out() {
        for written in [
            json!({}),
            json!({ "cpu": "unlimited" }),
            json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 50 }),
        ] {
            let read: GuestLimits = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), written);
            assert_eq!(read.is_empty(), written == json!({}));
        }
        for out_of_range in [
            json!({ "cpu": { "core_percent": 4 } }),
            json!({ "cpu": { "core_percent": 51_201 } }),
            json!({ "cpu": 2 }),
            json!({ "cpu_weight": 0 }),
            json!({ "cpu_weight": 10_001 }),
            json!({ "cpus": 1 }),
        ] {
            assert!(serde_json::from_value::<GuestLimits>(out_of_range.clone()).is_err(), "{out_of_range}");
        }
    }

    #[test]
    fn what_no_token_can_set_is_refused_with_the_reason() {
        for name in ["disk_rate", "io_weight", "pids"] {
            for value in [json!(100), json!({ "mib_per_s": 10 }), json!(null)] {
                let written = json!({ name: value });
                let refused = serde_json::from_value::<GuestLimits>(written.clone()).unwrap_err().to_string();
                assert!(refused.starts_with(&format!("{NOT_SETTABLE} {name}: ")), "{written}: {refused}");
            }
            let schema = serde_json::to_value(schemars::schema_for!(GuestLimits)).unwrap();
            assert!(schema["properties"].get(name).is_none(), "{schema}");
        }
    }
}
