//! The plan as a person reads it.

use std::fmt;

use holdfast_protocol::report::GuestStatus;

use super::guest_requests::Answer;
use super::{GuestVerdict, Plan};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan for generation {}", self.generation)?;
        for action in &self.actions {
            let operation = &action.operation;
            let vmid = operation.vmid().map(|vmid| format!(" ({vmid})")).unwrap_or_default();
            writeln!(f, "  {:<11} {}{vmid}: {}", operation.kind().as_str(), operation.name(), action.reason)?;
        }
        for asked in &self.asked {
            match &asked.answer {
                Answer::Begin(action) => {
                    let operation = &action.operation;
                    let vmid = operation.vmid().map(|vmid| format!(" ({vmid})")).unwrap_or_default();
                    let kind = operation.kind().as_str();
                    writeln!(f, "  {kind:<11} {}{vmid}: {}", operation.name(), action.reason)?;
                }
                Answer::Refuse(problem) => writeln!(f, "  refuse      request {}: {problem}", asked.request)?,
            }
        }
        for held in &self.held {
            writeln!(f, "  hold        {}: {}", held.effect, held.reason)?;
        }
        if let Some(bulk) = &self.braked {
            for change in &bulk.changes {
                writeln!(f, "  brake       {} of {} waits", change.operation.as_str(), change.name)?;
            }
        }
        for verdict in self.verdicts.iter().filter(|verdict| verdict.is_news()) {
            writeln!(f, "  {verdict}")?;
            for condition in &verdict.conditions {
                writeln!(f, "    [{}] {}", condition.code, condition.message)?;
            }
        }
        for uid in &self.healthy {
            writeln!(f, "  healthy     {uid}: its starts no longer count")?;
        }
        for by in &self.gone_copies {
            writeln!(f, "  forget      the copy that {by} made: nobody has its number")?;
        }
        for raise in &self.raises {
            writeln!(f, "  protect     {}: {}", raise.guest, raise.what)?;
        }
        let quiet = self.verdicts.iter().filter(|verdict| !verdict.is_news()).count();
        writeln!(f, "  {quiet} guests without news")
    }
}

impl GuestVerdict {
    fn is_news(&self) -> bool {
        self.status != GuestStatus::Managed || !self.conditions.is_empty()
    }
}

impl fmt::Display for GuestVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.status {
            GuestStatus::Managed => "managed",
            GuestStatus::Unmanaged => "unmanaged",
            GuestStatus::Absent => "absent",
            GuestStatus::Missing => "missing",
            GuestStatus::Foreign => "foreign",
            GuestStatus::Broken => "broken",
            GuestStatus::Parked => "parked",
            GuestStatus::RestoredCopy => "restored copy",
        };
        let wanted = self.wanted.map(|place| format!(" document #{place}")).unwrap_or_default();
        let vmid = self.vmid.map(|vmid| format!(" VMID {vmid}")).unwrap_or_default();
        write!(f, "{word:<11}{wanted}{vmid}")
    }
}
