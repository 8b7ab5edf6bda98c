//! Levels of use that are too high, by document.
//!
//! In: the sections of a document. Out: the levels in force. How long one must last before an operator hears of it is the grace of
//! its condition, which is a rule of the hub. Deliberately absent: the lower value at which each ends, which the agent derives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::size::LevelPercent;

/// From how much use on there is a condition. What is left out is taken from the next wider section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseLevels {
    /// Of the CPU time that it may use: `CPU_HIGH`; 95 where no section has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<LevelPercent>,
    /// Of its memory: `MEMORY_HIGH`; 95 where no section has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_percent: Option<LevelPercent>,
    /// Of its root disk: `ROOT_DISK_FULL`; 90 where no section has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk_percent: Option<LevelPercent>,
}

impl UseLevels {
    /// Those that hold where no document says otherwise.
    pub const USUAL: Self = Self {
        cpu_percent: Some(LevelPercent::CPU),
        memory_percent: Some(LevelPercent::MEMORY),
        root_disk_percent: Some(LevelPercent::ROOT_DISK),
    };

    /// These, and those of a wider section for what they leave out.
    #[must_use]
    pub fn over(self, wider: Self) -> Self {
        Self {
            cpu_percent: self.cpu_percent.or(wider.cpu_percent),
            memory_percent: self.memory_percent.or(wider.memory_percent),
            root_disk_percent: self.root_disk_percent.or(wider.root_disk_percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guest_takes_what_it_leaves_out_from_its_document() {
        let read = |value| serde_json::from_value::<UseLevels>(value).unwrap();
        let (own, document) =
            (read(json!({ "memory_percent": 80 })), read(json!({ "memory_percent": 90, "cpu_percent": 70 })));
        let in_force = serde_json::to_value(own.over(document).over(UseLevels::USUAL)).unwrap();
        assert_eq!(in_force, json!({ "cpu_percent": 70, "memory_percent": 80, "root_disk_percent": 90 }));
        assert_eq!(json!(UseLevels::default()), json!({}));
    }
}
