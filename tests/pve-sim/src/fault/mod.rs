//! Armed faults: what goes wrong on purpose.
//!
//! In: faults that a script arms through the control socket. Out: whether a fault happens at this moment. Each fault is used up when it
//! happens, so a script decides exactly how often. Deliberately absent: chance; a harness brings its own seed.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fail::{Fallible, Refusal};
use crate::wire::{JSON, Response, Spoil};

pub mod admin;
pub mod control;
pub mod mishap;
mod node;
mod quiet;
pub mod usage;

pub use quiet::End;

/// What can be armed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// The call takes effect, its answer is lost.
    LostReply {
        #[serde(flatten)]
        on: Aim,
    },
    /// The connection drops before the call takes effect.
    LostRequest {
        #[serde(flatten)]
        on: Aim,
    },
    /// Half of the answer's body arrives.
    CutBody {
        #[serde(flatten)]
        on: Aim,
    },
    /// A proxy's HTML page instead of JSON; no effect.
    HtmlBody {
        #[serde(flatten)]
        on: Aim,
    },
    /// `595 Connection refused`; no effect.
    DaemonDown {
        #[serde(flatten)]
        on: Aim,
    },
    /// `596 Connection timed out`, and yet the call takes effect.
    DaemonSlow {
        #[serde(flatten)]
        on: Aim,
    },
    /// `401 Authentication failed!`, as for a token that was deleted; no effect.
    Unauthorised {
        #[serde(flatten)]
        on: Aim,
    },
    /// `503 Service Unavailable`, from a proxy in front; no effect.
    Unavailable {
        #[serde(flatten)]
        on: Aim,
    },
    /// The cluster's file system is down: 500 in a sentence without JSON; no effect.
    NoClusterFiles {
        #[serde(flatten)]
        on: Aim,
    },
    /// The daemon restarts: the next `calls` calls, whichever they are, get no answer. Workers live on.
    Outage { calls: u32 },
    /// A worker does all its work and dies before its end is written: `unexpected status`.
    UnknownEnd {
        /// `vzdump`, `vzrestore`, …
        task: String,
    },
    /// A worker does all its work, and its task is gone from the index when it ends.
    VanishTask {
        /// `vzdump`, `vzrestore`, …
        task: String,
    },
    /// A worker does all its work and ends `WARNINGS: 1`.
    WarnWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
    },
    /// A worker fails in a phase, and cleans up as it does.
    FailWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
        /// The phase, or empty for the first.
        phase: String,
        /// What it says.
        text: String,
    },
    /// A destroy ends OK and leaves a volume.
    KeepVolume { vmid: u32 },
    /// A resize ends OK and nothing grew.
    NoGrow { vmid: u32 },
    /// A backup ends OK and there is no archive.
    NoArchive { vmid: u32 },
    /// A backup's worker is killed while it copies. Its client continues alone, and the archive of the failed backup still appears,
    /// as on a Proxmox Backup Server.
    OrphanBackup {
        vmid: u32,
        /// How much later.
        after_ms: u64,
    },
    /// The connection to the backup server breaks in the middle of a backup.
    CutUpload { vmid: u32 },
    /// Another process holds the node's one lock for backups until the job gives up.
    HeldBackups,
    /// A worker is killed when it reaches a phase.
    KillWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
        /// The phase, or empty for the first.
        phase: String,
    },
    /// Another process holds the lock file of a guest's configuration, so that a change gives up. (The real one waits 10 s first.)
    HeldConfig { vmid: u32 },
    /// A worker stays in a phase for a while.
    HoldWorker {
        /// `vzdump`, `vzrestore`, …
        task: String,
        /// The phase, or empty for the first.
        phase: String,
        hold_ms: u64,
    },
}

/// Which call a fault is meant for: the next one that fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aim {
    /// `PUT`, or empty for any.
    #[serde(default)]
    pub method: String,
    /// A part of the path, or empty for any.
    #[serde(default)]
    pub path: String,
}

impl Aim {
    fn hits(&self, method: &str, path: &str) -> bool {
        (self.method.is_empty() || self.method == method) && path.contains(&self.path)
    }
}

/// The armed faults.
#[derive(Debug, Default)]
pub struct Faults {
    armed: Mutex<Vec<Fault>>,
    round: AtomicU64,
}

/// What a fault does to a call.
#[derive(Debug)]
pub enum Strike {
    /// Answer with this and do nothing.
    Instead(Box<Response>),
    /// Do it, then answer with this.
    Afterwards(Box<Response>),
    /// Do it, then spoil the answer.
    Spoil(Spoil),
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms a fault.
    pub fn arm(&self, fault: Fault) {
        self.lock().push(fault);
    }

    /// Disarms everything and returns how many were left.
    pub fn clear(&self) -> usize {
        std::mem::take(&mut *self.lock()).len()
    }

    /// Disarms what would hold a worker.
    pub fn drop_holds(&self) {
        self.lock().retain(|fault| !matches!(fault, Fault::HoldWorker { .. }));
    }

    /// Lets the workers that are held now continue.
    pub fn release(&self) {
        self.round.fetch_add(1, Ordering::SeqCst);
    }

    /// Changes with every release.
    pub fn round(&self) -> u64 {
        self.round.load(Ordering::SeqCst)
    }

    /// The armed faults.
    #[must_use]
    pub fn armed(&self) -> Vec<Fault> {
        self.lock().clone()
    }

    fn take<T>(&self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        let mut armed = self.lock();
        let (index, found) =
            armed.iter().enumerate().find_map(|(index, fault)| pick(fault).map(|found| (index, found)))?;
        armed.remove(index);
        Some(found)
    }

    /// The fault for a call, used up.
    pub fn strike(&self, method: &str, path: &str) -> Option<Strike> {
        if let Some(down) = self.outage() {
            return Some(down);
        }
        self.take(|fault| match fault {
            Fault::LostReply { on } if on.hits(method, path) => Some(Strike::Spoil(Spoil::Drop)),
            Fault::CutBody { on } if on.hits(method, path) => Some(Strike::Spoil(Spoil::Cut)),
            Fault::LostRequest { on } if on.hits(method, path) => Some(Strike::Instead(Box::new(Response {
                spoil: Spoil::Drop,
                ..Response::empty(500, "lost")
            }))),
            Fault::HtmlBody { on } if on.hits(method, path) => {
                let page = "<html><head><title>502 Bad Gateway</title></head><body>bad gateway</body></html>";
                Some(Strike::Instead(Box::new(Response::text(502, "Bad Gateway", Some("text/html"), page))))
            }
            Fault::DaemonDown { on } if on.hits(method, path) => {
                Some(Strike::Instead(Box::new(Response::empty(595, "Connection refused"))))
            }
            Fault::DaemonSlow { on } if on.hits(method, path) => {
                Some(Strike::Afterwards(Box::new(Response::empty(596, "Connection timed out"))))
            }
            Fault::Unauthorised { on } if on.hits(method, path) => {
                Some(Strike::Instead(Box::new(Response::empty(401, "Authentication failed!"))))
            }
            Fault::Unavailable { on } if on.hits(method, path) => {
                Some(Strike::Instead(Box::new(Response::empty(503, "Service Unavailable"))))
            }
            Fault::NoClusterFiles { on } if on.hits(method, path) => {
                let text = "RPCEnvironment init request failed: Unable to load access control list: Connection refused";
                Some(Strike::Instead(Box::new(Response::text(500, text, None, text))))
            }
            _ => None,
        })
    }

    /// One call less of an outage.
    fn outage(&self) -> Option<Strike> {
        let mut armed = self.lock();
        let index = armed.iter().position(|fault| matches!(fault, Fault::Outage { .. }))?;
        match armed.get_mut(index) {
            Some(Fault::Outage { calls }) if *calls > 1 => *calls -= 1,
            _ => drop(armed.remove(index)),
        }
        Some(Strike::Instead(Box::new(Response { spoil: Spoil::Drop, ..Response::empty(500, "lost") })))
    }

    /// Takes the lock file of a guest's configuration.
    ///
    /// # Errors
    /// When another process holds it.
    pub fn lock_config(&self, vmid: u32) -> Fallible<()> {
        let held = self.take(|fault| match fault {
            Fault::HeldConfig { vmid: of } if *of == vmid => Some(()),
            _ => None,
        });
        let sentence = || format!("can't lock file '/run/lock/lxc/pve-config-{vmid}.lock' - got timeout");
        held.map_or(Ok(()), |()| Err(Refusal::die(sentence())))
    }

    /// Whether a worker dies in this phase.
    pub fn kills(&self, kind: &str, reached: &str) -> bool {
        self.take(|fault| match fault {
            Fault::KillWorker { task, phase } if task == kind && (phase.is_empty() || phase == reached) => {
                Some(())
            }
            _ => None,
        })
        .is_some()
    }

    /// How long a worker stays in this phase beyond its pace.
    pub fn hold(&self, kind: &str, reached: &str) -> Duration {
        self.take(|fault| match fault {
            Fault::HoldWorker { task, phase, hold_ms }
                if task == kind && (phase.is_empty() || phase == reached) =>
            {
                Some(Duration::from_millis(*hold_ms))
            }
            _ => None,
        })
        .unwrap_or_default()
    }
}

/// Whether an answer carries JSON.
#[must_use]
pub fn is_json(response: &Response) -> bool {
    response.content_type == Some(JSON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_once_and_only_where_aimed() {
        let faults = Faults::default();
        faults.arm(Fault::LostReply { on: Aim { method: "POST".into(), path: "/lxc".into() } });
        assert!(faults.strike("GET", "/nodes/pve1/lxc").is_none());
        assert!(matches!(faults.strike("POST", "/nodes/pve1/lxc"), Some(Strike::Spoil(Spoil::Drop))));
        assert!(faults.strike("POST", "/nodes/pve1/lxc").is_none());
        faults.arm(Fault::KillWorker { task: "vzdump".into(), phase: "copy".into() });
        assert!(
            !faults.kills("vzdump", "start")
                && faults.kills("vzdump", "copy")
                && !faults.kills("vzdump", "copy")
        );
    }

    #[test]
    fn faults_are_reported_as_json() {
        let text = r#"{"fault":"lost-reply","method":"POST","path":"/lxc"}"#;
        let fault: Fault = serde_json::from_str(text).expect("fault");
        assert_eq!(serde_json::to_string(&fault).expect("text"), text);
    }
}
