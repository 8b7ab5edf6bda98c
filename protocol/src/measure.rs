//! The size of a guest as it is signed for.
//!
//! Plain numbers, since a guest that was changed by hand may have any. Deliberately absent: ranges, which the document has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::VolumeName;

/// How large a guest is, or may become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestMeasure {
    /// Cores; nothing, where it has all of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// Memory.
    pub memory_mib: u64,
    /// Swap.
    pub swap_mib: u64,
    /// The root disk.
    pub rootfs_gib: u64,
    /// The volumes that the document names.
    pub volumes_gib: BTreeMap<VolumeName, u64>,
}

impl GuestMeasure {
    /// For people, one line for each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let cores = self.cores.map_or_else(|| "all cores".to_owned(), |cores| format!("{cores} cores"));
        let memory = format!("{} MiB memory, {} MiB swap", self.memory_mib, self.swap_mib);
        let root = format!("root disk {} GiB", self.rootfs_gib);
        let volumes = self.volumes_gib.iter().map(|(name, gib)| format!("volume {name} {gib} GiB"));
        [format!("{cores}, {memory}"), root].into_iter().chain(volumes).collect()
    }
}
