//! Levels of use of the document in use, by user.
//!
//! In: a document. Out: for host and guests the values at which a level is reached and left. A guest's own section comes first,
//! then that of the document, then the usual values.

use std::collections::BTreeMap;

use holdfast_protocol::desired::{DesiredDocument, UseLevels};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::size::LevelPercent;

/// What is too high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HighLevel {
    Cpu,
    Memory,
    RootDisk,
}

/// Who uses too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    Host,
    Guest(GuestUid),
}

/// Of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelRules {
    all: UseLevels,
    guests: BTreeMap<GuestUid, UseLevels>,
}

/// When a level is reached and left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// From here on it is reached.
    pub reached: LevelPercent,
    /// Below it, it is left. In thousandths.
    pub left: u64,
}

impl Threshold {
    /// Thousandths from which on it is reached.
    #[must_use]
    pub fn reached_permille(self) -> u64 {
        u64::from(self.reached.get()).saturating_mul(10)
    }
}

impl LevelRules {
    /// Those of a document; without one, the usual values.
    #[must_use]
    pub fn of(document: Option<&DesiredDocument>) -> Self {
        let Some(document) = document else { return Self::default() };
        let own = |(uid, levels): (GuestUid, Option<UseLevels>)| Some((uid, levels?));
        Self {
            all: document.levels.unwrap_or_default(),
            guests: document.guests.iter().map(|guest| (guest.uid, guest.levels)).filter_map(own).collect(),
        }
    }

    /// When a level is reached and left by this user.
    #[must_use]
    pub fn threshold(&self, user: User, level: HighLevel) -> Threshold {
        let own = match user {
            User::Host => UseLevels::default(),
            User::Guest(uid) => self.guests.get(&uid).copied().unwrap_or_default(),
        };
        let levels = own.over(self.all);
        let reached = match level {
            HighLevel::Cpu => levels.cpu_percent.unwrap_or(LevelPercent::CPU),
            HighLevel::Memory => levels.memory_percent.unwrap_or(LevelPercent::MEMORY),
            HighLevel::RootDisk => levels.root_disk_percent.unwrap_or(LevelPercent::ROOT_DISK),
        };
        let left = u64::from(reached.get().saturating_sub(distance(level))).saturating_mul(10);
        Threshold { reached, left }
    }
}

/// How far below its level the use has to fall, in percent. CPU time moves more than the others.
const fn distance(level: HighLevel) -> u32 {
    match level {
        HighLevel::Cpu => 10,
        HighLevel::Memory | HighLevel::RootDisk => 5,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::desired::Desired;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_narrowest_section_counts() {
        let uid: GuestUid = "018f3c1e-6b1f-7c1d-9d0a-000000000001".parse().unwrap();
        let document = json!({
            "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30,
            "levels": { "cpu_percent": 80, "memory_percent": 70 },
            "guests": [{
                "uid": uid, "name": "web-1", "customer": "acme", "run": "running", "golden": "2026.11.1",
                "size": { "cores": 1, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
                "network": { "bridge": "vmbr0", "address": "10.66.0.1/24" },
                "levels": { "memory_percent": 60 },
            }],
        });
        let document = Desired::parse(document.to_string().as_bytes()).unwrap();
        let (rules, usual) = (LevelRules::of(Some(document.document())), LevelRules::of(None));
        let guest = User::Guest(uid);
        for (rules, user, level, reached, left) in [
            (&usual, User::Host, HighLevel::Cpu, 950, 850),
            (&usual, guest, HighLevel::Memory, 950, 900),
            (&usual, guest, HighLevel::RootDisk, 900, 850),
            (&rules, User::Host, HighLevel::Memory, 700, 650),
            (&rules, guest, HighLevel::Memory, 600, 550),
            (&rules, guest, HighLevel::Cpu, 800, 700),
            (&rules, guest, HighLevel::RootDisk, 900, 850),
        ] {
            let threshold = rules.threshold(user, level);
            assert_eq!((threshold.reached_permille(), threshold.left), (reached, left), "{user:?} {level:?}");
        }
    }
}
