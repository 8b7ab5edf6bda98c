//! One step: name, weight, bound, check and undo.
//!
//! Everything that is known of a step but how it is done is one row of [`table`]. How it is done is the executor's
//! registry, `agentd`'s `execute::registry`. Whether it has happened is asked of the world, never of memory, and before
//! every try: after a crash and on the first run alike, so there is one road.
//!
//! | module | what |
//! | --- | --- |
//! | [`table`] | every step, one row each |
//! | [`undo`] | how it is taken back |
//! | [`bound`] | how long, and how often |
//! | [`list`] | the steps of one operation, by name |

pub mod bound;
pub mod list;
pub mod table;
pub mod undo;

use holdfast_protocol::id::Vmid;

pub use bound::{Bound, Follows};
pub use list::StepList;
pub use table::Step;
pub use undo::Undo;

/// How much of the host a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A few calls.
    Light,
    /// Reads or writes a whole archive.
    Heavy,
    /// The same by Proxmox's backup job, of which a node runs one at a time.
    Backup,
}

impl Weight {
    /// Whether it counts against the host's cap on heavy work.
    #[must_use]
    pub const fn is_heavy(self) -> bool {
        matches!(self, Self::Heavy | Self::Backup)
    }

    /// Whether it takes the place for backups, of which Proxmox runs one on a node.
    #[must_use]
    pub const fn is_backup(self) -> bool {
        matches!(self, Self::Backup)
    }
}

/// What follows when a step has no tries left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// The operation takes back what it made.
    Undo,
    /// The operation continues, and reports what is missing.
    Continue,
    /// The guest serves already: it is left as it is, for a person.
    Park,
}

/// What is known of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFacts {
    /// As the journal, the view and the audit name it.
    pub name: &'static str,
    /// How much of the host it takes.
    pub weight: Weight,
    /// How long and how often it may try.
    pub bound: Bound,
    /// What is checked on the host to find out whether it has happened, in words.
    pub check: &'static str,
    /// How it is taken back.
    pub undo: Undo,
    /// What follows when no try is left.
    pub exhausted: Exhausted,
}

impl Step {
    /// As the journal, the view and the audit name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// How long and how often it may try.
    #[must_use]
    pub const fn bound(self) -> Bound {
        self.facts().bound
    }

    /// How it is taken back.
    #[must_use]
    pub const fn undo(self) -> Undo {
        self.facts().undo
    }

    /// What a person should run or look at when it was left for one.
    #[must_use]
    pub fn remedy(self, vmid: Option<Vmid>) -> String {
        match (self, vmid) {
            (Self::ProtectAgain | Self::LiftProtection, Some(vmid)) => {
                format!("pct set {vmid} --protection 1")
            }
            (Self::StopScratch | Self::DestroyScratch | Self::ConfirmScratchGone, Some(vmid)) => {
                format!("pct stop {vmid}; pct destroy {vmid}")
            }
            _ => "look at the guest on the node, and correct what the message names".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_each_and_every_step_is_bounded() {
        let names: std::collections::BTreeSet<_> = Step::ALL.iter().map(|step| step.name()).collect();
        assert_eq!(names.len(), Step::ALL.len());
        for step in Step::ALL {
            let bound = step.bound();
            assert!(bound.tries >= 1 && bound.seconds >= 10, "{}", step.name());
        }
    }
}
