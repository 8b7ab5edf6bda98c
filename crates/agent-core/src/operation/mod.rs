//! Operations on guests: lists of typed steps.
//!
//! What comes in: a decision of the plan. What goes out: steps, events, and how far the operation has come. All of it
//! is pure and is written to the journal as JSON with a version. Deliberately absent: doing anything.
//!
//! | module | what |
//! | --- | --- |
//! | [`registry`] | every kind, one row each |
//! | [`spec`] | what every operation says of itself |
//! | [`adopt`] | a guest that our records do not know, by a signature |
//! | [`attach`] | a volume for a guest that was made |
//! | [`destroy`] | the end of a guest, by a signature |
//! | [`discard_copy`] | the end of a copy next to its guest, by a signature |
//! | [`reassign_volume`] | a volume for another guest, by a signature |
//! | [`rebase_guest`] | a guest on a newer image, by a signature |
//! | [`provision`] | making a guest |
//! | `power` | *start*, *stop*, *restart_guest* |
//! | [`sizes`] | *reconfigure*, *grow* |
//! | [`snapshot`] | *snapshot*, *expire_snapshot* |
//! | [`roll_back`] | *roll_back* |
//! | [`restore_copy`] | a copy of a guest, by a signature |
//! | [`restore_test`] | a backup, tried |
//! | [`swap_guest`] | a copy in the place of its guest, by a signature |
//! | [`backup`] | *backup* |
//! | [`quiesced_backup`] | *quiesced_backup* |
//! | [`update_controller`] | *update_controller* |
//! | [`window`] | its quiesce window: what may follow what, and the label of its backup |
//! | [`prune`] | *prune_backup* |
//! | [`lane`] | who may begin, who waits behind whom |
//! | [`step`] | what each step is: its undo, its probe, its bound |
//! | [`log`] | events, and `next(status, event)`, the only definition of what may follow what |
//! | [`progress`] | the fold of a log: facts found, and the view for people |

pub mod adopt;
mod applied;
pub mod attach;
pub mod backup;
pub mod destroy;
pub mod discard_copy;
pub mod lane;
pub mod log;
mod power;
pub mod progress;
pub mod provision;
pub mod prune;
pub mod quiesced_backup;
pub mod reassign_volume;
pub mod rebase_guest;
pub mod registry;
pub mod restore_copy;
pub mod restore_test;
pub mod roll_back;
pub mod sizes;
pub mod snapshot;
pub mod spec;
pub mod step;
pub mod swap_guest;
pub mod update_controller;
pub mod window;

pub use adopt::Adopt;
pub use applied::AppliedBy;
pub use attach::AttachVolume;
pub use backup::{Backup, Begun, DuePoint};
pub use destroy::Destroy;
pub use discard_copy::DiscardCopy;
pub use power::{RestartGuest, Start, Stop};
pub use provision::{Image, MissingGuest, Provision, Source, VmidRequest, Whence};
pub use prune::{Deletion, PruneBackup, PruneBy};
pub use quiesced_backup::QuiescedBackup;
pub use reassign_volume::HandOver;
pub use rebase_guest::RebaseGuest;
pub use registry::{Makes, Operation};
pub use restore_copy::RestoreCopy;
pub use restore_test::RestoreTest;
pub use roll_back::{BulkRule, RollBack};
pub use sizes::{DiskRef, Grow, KeepProtection, Reconfigure};
pub use snapshot::{ExpireSnapshot, ExpiryWhy, Snapshot};
pub use spec::{ChangeLimit, Counted, Target};
pub use swap_guest::SwapGuest;
pub use update_controller::UpdateController;

/// The version of specs and events in the journal.
pub const JOURNAL_VERSION: u32 = 1;
