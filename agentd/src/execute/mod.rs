//! Performs operations, step by step, and makes no choices.
//!
//! ```text
//! intent on disk ─▶ probe ─▶ (not there) effect ─▶ task followed ─▶ probe ─▶ outcome on disk
//! ```
//! In: an operation, new or found in the journal after a crash. Both take one path, because each step checks the actual
//! state before it does anything. Out: the operation's end, through the journal. The actual state decides, not the
//! task's status: a step has happened when its probe says so. Deliberately absent: what to do (`plan`), whether it may
//! be done (`gate`), and any effect that `operation::step` does not name.
//!
//! | module | performs |
//! | --- | --- |
//! | [`run`] | one operation to its end |
//! | `attempt` | one try of one step |
//! | `lost_reply` | finding a task whose reply was lost |
//! | [`offsite`] | one question to a backup server |
//! | [`recover`] | what the recovery plan adopts or parks |
//! | `identity` | whether this is still our guest |
//! | `guest_identity` | what a guest is known by, read and compared |
//! | `step_*` | each step's probe and effect |
//! | `undo` | taking back what this operation made |
//! | [`slots`] | the slots for heavy steps |
//! | [`storage`] | the helper's actions on a target |
//! | [`escrow`] | the copies of wrapped keys on one disk |
//! | [`entry`] | one change of a target's entry in Proxmox, with sealed credentials |
//! | [`failpoint`] | where tests stop the world |

mod archive_check;
mod attempt;
mod backup_vmids;
mod context;
mod digest;
mod disks;
pub mod entry;
pub mod escrow;
mod failed_task;
pub mod failpoint;
mod guest_identity;
mod identity;
mod lost_reply;
pub mod offsite;
mod own_tasks;
mod recheck_missing;
pub mod recover;
mod registry;
pub mod run;
pub mod slots;
mod step_adopt;
mod step_archive;
mod step_backup;
mod step_claim;
mod step_config;
mod step_destroy;
mod step_disk;
mod step_filter;
mod step_hello;
mod step_move_volume;
mod step_power;
mod step_protection;
mod step_prune;
mod step_read_back;
mod step_read_only_entry;
mod step_reassign_volume;
mod step_rebase;
mod step_renew;
mod step_report;
mod step_restore;
mod step_restore_copy;
mod step_roll_back;
mod step_room;
mod step_snapshot;
mod step_swap;
mod step_swap_back;
mod step_test;
mod step_update;
mod step_vmid;
mod step_volume;
mod step_window;
pub mod storage;
mod trouble;
mod undo;
mod undo_making;
mod undo_proof;
mod volume_check;

use std::sync::Arc;

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::pin::Pin;
use tokio::sync::watch;

use crate::model::limits;
use crate::model::observed::MissingControllers;
use crate::model::offsite::Pruners;
use crate::model::view::ProgressLines;
use crate::operation::{Makes, Operation};
use crate::port::artifacts::Artifacts;
use crate::port::bridge::Bridges;
use crate::port::clock::Clock;
use crate::port::pve::Pve;
use crate::port::store::Store;
use crate::port::target_probe::TargetProbe;

pub use digest::DigestCache;
use failpoint::Failpoints;
use slots::HeavyLane;

/// Everything an operation works with.
#[derive(Clone)]
pub struct Ports {
    pub pve: Arc<dyn Pve>,
    /// Proxmox, for scratch guests, where there is a token for them.
    pub scratch: Option<Arc<dyn Pve>>,
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    /// Where guests find us.
    pub listener: GuestEndpoint,
    /// The host's bridges.
    pub bridges: Bridges,
    /// How much heavy work may run at once, and which operations wait for a slot.
    pub heavy: HeavyLane,
    /// The controllers' bytes that guests fetch.
    pub artifacts: Artifacts,
    /// Those that the hub did not give.
    pub missing_controllers: watch::Receiver<Arc<MissingControllers>>,
    /// Hashes of archives that were checked.
    pub digests: Arc<DigestCache>,
    /// The latest line of each operation under way, for people who watch.
    pub lines: watch::Sender<ProgressLines>,
    /// Where tests stop the world; nowhere in production.
    pub failpoints: Arc<dyn Failpoints>,
    /// Who removes backups from backup servers, as the servers last reported.
    pub pruners: watch::Receiver<Arc<Pruners>>,
    /// What keeps an approved image away that guests wait for.
    pub golden_trouble: watch::Receiver<Option<ErrorBody>>,
    /// What tries the disks of storage targets.
    pub targets: TargetProbe,
}

/// The address at which guests find us; it is written into their bootstrap token.
#[derive(Clone, Debug)]
pub struct GuestEndpoint {
    /// `https://address:8443`.
    pub endpoint: String,
    /// The pin of the local API's certificate.
    pub pin: Pin,
}

impl Ports {
    /// The same with the token that an operation of this kind works with.
    pub(crate) fn of(&self, operation: &Operation) -> Option<Self> {
        match operation.makes() {
            Makes::Scratch(_) => {
                self.scratch.as_ref().map(|scratch| Self { pve: Arc::clone(scratch), ..self.clone() })
            }
            Makes::Guest(_) | Makes::Adopted(_) | Makes::Copy(_) | Makes::Successor(_) | Makes::Nothing => {
                Some(self.clone())
            }
        }
    }

    /// Ports with the bounds of this host.
    #[must_use]
    pub fn new(pve: Arc<dyn Pve>, store: Store, clock: Arc<dyn Clock>, listener: GuestEndpoint) -> Self {
        let (lines, _) = watch::channel(ProgressLines::new());
        Self {
            pve,
            scratch: None,
            store,
            clock,
            listener,
            bridges: Bridges::of_the_kernel(),
            heavy: HeavyLane::new(limits::HEAVY_AT_ONCE),
            artifacts: Artifacts::none(),
            missing_controllers: watch::channel(Arc::default()).1,
            digests: Arc::new(DigestCache::default()),
            lines,
            failpoints: failpoint::from_environment(),
            pruners: watch::channel(Arc::default()).1,
            golden_trouble: watch::channel(None).1,
            targets: TargetProbe::real(),
        }
    }
}
