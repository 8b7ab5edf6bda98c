//! Silent faults: a task's reported result differs from the real state.
//!
//! In: armed faults. Out: at the right moment, a yes, and the fault is used up.
use std::time::Duration;

use super::{Fault, Faults};
use crate::fail::{Fallible, Refusal};

/// How a task's end is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As it was.
    AsItIs,
    /// Not at all: the worker died before it could write.
    Unknown,
    /// It is gone from the index, with its log.
    Vanished,
}

impl Faults {
    fn used(&self, hits: impl Fn(&Fault) -> bool) -> bool {
        self.take(|fault| hits(fault).then_some(())).is_some()
    }

    /// How the end of a task is reported.
    pub fn end(&self, kind: &str) -> End {
        if self.used(|fault| matches!(fault, Fault::UnknownEnd { task } if task == kind)) {
            End::Unknown
        } else if self.used(|fault| matches!(fault, Fault::VanishTask { task } if task == kind)) {
            End::Vanished
        } else {
            End::AsItIs
        }
    }

    /// Whether a task that went well has a warning.
    pub fn warns(&self, kind: &str) -> bool {
        self.used(|fault| matches!(fault, Fault::WarnWorker { task } if task == kind))
    }

    /// The error that a worker fails with in this phase.
    ///
    /// # Errors
    /// The text of the armed fault.
    pub fn fails(&self, kind: &str, reached: &str) -> Fallible<()> {
        let found = self.take(|fault| match fault {
            Fault::FailWorker { task, phase, text }
                if task == kind && (phase.is_empty() || phase == reached) =>
            {
                Some(text.clone())
            }
            _ => None,
        });
        found.map_or(Ok(()), |text| Err(Refusal::die(text)))
    }

    /// Whether a destroy leaves a volume and does not say so.
    pub fn keeps_volume(&self, of: u32) -> bool {
        self.used(|fault| matches!(fault, Fault::KeepVolume { vmid } if *vmid == of))
    }

    /// Whether a resize grows nothing and does not say so.
    pub fn grows_nothing(&self, of: u32) -> bool {
        self.used(|fault| matches!(fault, Fault::NoGrow { vmid } if *vmid == of))
    }

    /// Whether a backup leaves no archive and does not say so.
    pub fn loses_archive(&self, of: u32) -> bool {
        self.used(|fault| matches!(fault, Fault::NoArchive { vmid } if *vmid == of))
    }

    /// Whether the line to the backup server is cut in a backup of this guest.
    pub fn cuts_upload(&self, of: u32) -> bool {
        self.used(|fault| matches!(fault, Fault::CutUpload { vmid } if *vmid == of))
    }

    /// After how long the archive of a backup whose worker is killed appears all the same.
    pub fn orphans(&self, of: u32) -> Option<Duration> {
        self.take(|fault| match fault {
            Fault::OrphanBackup { vmid, after_ms } if *vmid == of => Some(Duration::from_millis(*after_ms)),
            _ => None,
        })
    }

    /// Takes the node's lock for backups.
    ///
    /// # Errors
    /// When another process holds it.
    pub fn lock_backups(&self) -> Fallible<()> {
        if self.used(|fault| matches!(fault, Fault::HeldBackups)) {
            return Err(Refusal::die("can't acquire lock '/var/run/vzdump.lock' - got timeout"));
        }
        Ok(())
    }
}
