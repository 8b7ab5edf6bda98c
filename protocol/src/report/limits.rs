//! Limits of a guest, as Proxmox has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits in force. One that is left out does not bound the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsReport {
    /// CPU time at most, in thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millicores: Option<u64>,
    /// Its weight where CPU time is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<u64>,
    /// What its first network lets through, in MiB a second, as Proxmox writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_mib_per_s: Option<String>,
}

impl LimitsReport {
    /// None where nothing bounds the guest.
    #[must_use]
    pub fn some(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// For people, the parts that are there.
    #[must_use]
    pub fn words(&self) -> String {
        let cpu = self.cpu_millicores.map(|milli| format!("at most {} of CPU time", cores(milli)));
        let weight = self.cpu_weight.map(|weight| format!("CPU weight {weight}"));
        let rate = self.network_mib_per_s.as_ref().map(|rate| format!("network {rate} MiB/s"));
        [cpu, weight, rate].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Thousandths of a core as a number of cores.
fn cores(milli: u64) -> String {
    let (whole, part) = (milli / 1000, milli % 1000);
    let text = format!("{whole}.{part:03}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "1" { "1 core".to_owned() } else { format!("{text} cores") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_in_words() {
        let all = LimitsReport {
            cpu_millicores: Some(1500),
            cpu_weight: Some(50),
            network_mib_per_s: Some("12.5".to_owned()),
        };
        assert_eq!(all.words(), "at most 1.5 cores of CPU time, CPU weight 50, network 12.5 MiB/s");
        assert_eq!(
            (cores(1000), cores(50), cores(2005)),
            ("1 core".to_owned(), "0.05 cores".to_owned(), "2.005 cores".to_owned())
        );
        assert_eq!(LimitsReport::default().some(), None);
    }
}
