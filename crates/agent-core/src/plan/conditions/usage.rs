//! Conditions of hosts and guests that use nearly all that they may.

use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::report::{GuestReport, Running};

use super::{Finding, HostKnowledge};
use crate::model::usage_levels::{HighLevel, UsageLevels, User};

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let guests = &known.view.guests;
    let found = known.levels.high().filter_map(|(user, level, threshold)| {
        let (subject, name) = match user {
            User::Host => (Subject::Host {}, "the host".to_owned()),
            User::Guest(uid) => {
                // One that is not ours any more has no condition.
                let guest = guests.iter().find(|guest| guest.uid == Some(uid))?;
                (Subject::Guest { uid }, guest.name.clone())
            }
        };
        let (reached, left) = (threshold.reached.get(), threshold.left / 10);
        let (code, what) = match level {
            HighLevel::Cpu => (ConditionCode::CpuHigh, format!("the CPU time that {name} uses")),
            HighLevel::Memory => (ConditionCode::MemoryHigh, format!("the memory that {name} uses")),
            HighLevel::RootDisk => (ConditionCode::RootDiskFull, format!("the root disk of {name}")),
        };
        let message = format!("{what} reached {reached} % of what there is, and is not below {left} % again");
        Some(Finding::new(code, subject, message))
    });
    found.collect()
}

/// Whether a level that is not found is known not to be reached. A guest that runs and was not measured since the agent started
/// keeps its condition; one that does not run uses nothing.
pub(super) fn covers(levels: &UsageLevels, guests: &[GuestReport], subject: &Subject) -> bool {
    match subject.guest() {
        None => levels.has_measured(User::Host),
        Some(uid) => {
            let runs = guests.iter().any(|guest| guest.uid == Some(uid) && guest.run != Running::Stopped);
            !runs || levels.has_measured(User::Guest(uid))
        }
    }
}
