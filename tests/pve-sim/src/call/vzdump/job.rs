//! The task of a backup, guest by guest.
//!
//! ```text
//! storage activated --> node's lock --> rights on every guest --> each guest: OK or a line why not --> "job errors" if any
//! ```
//! A guest that fails does not keep the next from being backed up. In: a [`Job`]. Out: archives, and the real log.
use std::sync::TryLockError;
use std::time::Duration;

use super::guest;
use super::notice::Ended;
use super::options::{DumpDir, Options, dump_dir};
use crate::access::credential::Caller;
use crate::clock::stamp;
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::storage::server_names;
use crate::task::worker::Outcome;
use crate::task::{Halt, Task};

/// How often a waiting job checks whether the lock is free.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The job to run.
#[derive(Debug)]
pub(super) struct Job {
    pub options: Options,
    pub command_line: String,
    pub who: Caller,
    pub vmids: Vec<u32>,
}

/// Runs the task.
///
/// # Errors
/// `job errors` when a guest failed; its reason is in the log.
pub(super) fn run(task: &Task, job: &Job) -> Outcome {
    if without_password(task, &job.options.storage) {
        task.log(UNSET_PASSWORD);
    }
    // The lock on the world is released before a notification is sent.
    let found = dump_dir(&task.node.world(), &job.options.storage);
    let dump = match found {
        Ok(dump) => dump,
        Err(refusal) => {
            job.options.notice.send(task, Ended::Badly);
            return Err(refusal.into());
        }
    };
    let _lock = node_lock(task, job)?;
    task.log(format!("INFO: starting new backup job: {}", job.command_line));
    rights(task, job)?;
    let mut failed = 0_usize;
    for vmid in &job.vmids {
        if let Err(refusal) = back_up(task, job, &dump, *vmid)? {
            failed += 1;
            task.log(format!("ERROR: Backup of VM {vmid} failed - {}", refusal.in_task()));
            task.log(format!("INFO: Failed at {}", stamp(task.node.clock.now_s())));
            if task.is_ending() {
                break;
            }
        }
    }
    let (how, ended) =
        if failed == 0 { ("successfully", Ended::Well) } else { ("with errors", Ended::Badly) };
    task.log(format!("INFO: Backup job finished {how}"));
    job.options.notice.send(task, ended);
    if failed == 0 { Ok(()) } else { Err(Refusal::die("job errors").into()) }
}

/// The warning of the node's own code when the password file is missing. Any other error comes after it.
const UNSET_PASSWORD: &str = "Use of uninitialized value $password in concatenation (.) or string at /usr/share/perl5/PVE/Storage/PBSPlugin.pm";

/// Whether a storage is an entry of a backup server whose password is not there.
fn without_password(task: &Task, storage: &str) -> bool {
    let world = task.node.world();
    let is_server = world.storage.find(storage).is_some_and(server_names::is_one);
    is_server && !world.store().secrets().join(format!("{storage}.pw")).is_file()
}

/// The node's lock: one backup job at a time. A job that does not get it logs that and ends, without an end status.
fn node_lock<'a>(task: &'a Task, job: &Job) -> Result<std::sync::MutexGuard<'a, ()>, Halt> {
    task.node.faults.lock_backups()?;
    let mut waited = Duration::ZERO;
    let patience = Duration::from_secs(job.options.lockwait_min.saturating_mul(60));
    loop {
        match task.node.backup_lock.try_lock() {
            Ok(_) if task.is_killed() => return Err(Halt::Killed),
            Ok(lock) => {
                if !waited.is_zero() {
                    task.log("INFO: got global lock");
                }
                return Ok(lock);
            }
            // A job that panicked does not make the lock unusable.
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if patience.is_zero() => {
                return Err(without_lock(task, job, "(wait = 0)"));
            }
            Err(TryLockError::WouldBlock) if waited >= patience => {
                return Err(without_lock(task, job, "- got timeout"));
            }
            Err(TryLockError::WouldBlock) => {
                if waited.is_zero() {
                    task.log("INFO: trying to get global lock - waiting...");
                }
                if let Err(halt) = task.pace("waiting") {
                    let asked = matches!(halt, Halt::Failed(_)) && task.is_stopping();
                    return Err(if asked {
                        without_lock(task, job, "- interrupted by signal")
                    } else {
                        halt
                    });
                }
                task.node.clock.pause(LOOK_AGAIN);
                waited += LOOK_AGAIN.max(task.node.settings.pace);
            }
        }
    }
}

fn without_lock(task: &Task, job: &Job, why: &str) -> Halt {
    task.log(format!("ERROR: can't acquire lock '/var/run/vzdump.lock' {why}"));
    job.options.notice.send(task, Ended::Badly);
    Halt::Killed
}

/// Missing rights on one guest end the whole job.
fn rights(task: &Task, job: &Job) -> Fallible<()> {
    let world = task.node.world();
    let judge = world.judge(&job.who);
    job.vmids.iter().try_for_each(|vmid| judge.need(&format!("/vms/{vmid}"), &["VM.Backup"]))
}

/// Backs up one guest: an inner error is reported and the job goes on; an outer error ends the task.
fn back_up(task: &Task, job: &Job, dump: &DumpDir, vmid: u32) -> Result<Fallible<()>, Halt> {
    if !task.node.world().guests.has(vmid) {
        return Ok(not_there(vmid));
    }
    match guest::back_up(task, &job.options, dump, vmid) {
        Ok(()) => Ok(Ok(())),
        Err(Halt::Failed(refusal)) => Ok(Err(refusal)),
        Err(Halt::Killed) => Err(Halt::Killed),
    }
}

fn not_there(vmid: u32) -> Fallible<()> {
    die!("unable to find VM '{vmid}'")
}
