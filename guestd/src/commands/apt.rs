//! `guestd apt-hook` and `apt-judge`: snapshot before, health check after apt.
//!
//! `[apt]` of `stacks.toml` configures both; without it both are off.
//!
//! ```text
//! apt locks ─ hook: what is well ─ snapshot ─ note ─┬─ dpkg … dpkg ─ apt lets go
//!                                                   └─ judge, a unit of its own: waits for that ─ health ─┬─ well: said
//!                                                                                                          ├─ report: said
//!                                                                                                          └─ roll back
//! ```
//! The hook is apt's DPkg::Pre-Invoke. Apt runs it once for each of its steps, while it holds dpkg's frontend lock. One
//! snapshot and one judgement cover all steps. The judge is started here and not after dpkg, because apt runs no hook
//! when it is killed. The lock is released however apt ends. With `try`, nothing here delays apt for longer than a
//! minute and a half, or makes it fail. With `must`, no package changes without a snapshot.

mod decide;
pub mod dpkg_lock;
mod interrupted_packages;
mod post_check;
mod state;

use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::work::SnapshotRequest;
use holdfast_protocol::operation::OperationStatus;

use self::state::{AptState, Moment, Run};
use crate::args::{AptHookArgs, EXIT_DONE, EXIT_FAILED, Output, PathArgs};
use crate::clock;
use crate::commands::health::{self, HealthyStackRecord};
use crate::commands::try_lock;
use crate::commands::upgrade::record;
use crate::paths::Paths;
use crate::quiesce::marker::Marker;
use crate::stacks::{self, Apt, AptAfter, AptSnapshot, Stacks};
use crate::status_file::{self, PackageCheck};
use crate::work::{Session, end_text};

pub use decide::{SnapshotState, snapshot_state};
pub use interrupted_packages::done as interrupted_packages;
pub use post_check::check;

/// Whether a health check after a change of packages is still due.
pub fn is_checked_later(paths: &Paths) -> bool {
    state::load(paths).is_some_and(|note| note.is_open(Moment::now(paths).as_ref()))
}

/// How long apt waits for a snapshot: with `try`, and with `must`.
const TRY_LIMIT: Duration = Duration::from_secs(60);
const MUST_LIMIT: Duration = Duration::from_secs(600);

/// How long apt waits for the check of what is well.
const LOOK_LIMIT: Duration = Duration::from_secs(30);

pub async fn hook(args: &AptHookArgs) -> u8 {
    let paths = Paths::new(&args.paths.root);
    let stacks = match stacks::load(&paths) {
        Ok(stacks) => stacks,
        Err(error) => {
            // It is unknown whether a snapshot is required. Updates that are blocked by a typing error are worse than
            // one missing snapshot.
            note_line!("guestd: {}; no snapshot is taken, packages change without one", chain(&error));
            return EXIT_DONE;
        }
    };
    let run = Run::now();
    let apt = run.of(&stacks);
    if (apt.snapshot, apt.after) == (AptSnapshot::Off, AptAfter::Off) {
        return EXIT_DONE;
    }
    if try_lock::goes_on(&paths) {
        // Its rollback would be to a snapshot that is not the last one any more, or be judged twice.
        note_line!("guestd: something is tried: its snapshot and its judgement are for these packages, too");
        state::forget(&paths);
        return EXIT_DONE;
    }
    let now = Moment::now(&paths);
    let earlier = now.as_ref().and_then(|now| state::load(&paths).filter(|note| note.is_for(now, run, apt)));
    if let Some(note) = earlier {
        begin(&paths, &args.paths, apt, note.again()).await;
        return EXIT_DONE;
    }
    let well = match apt.after {
        AptAfter::Off => Vec::new(),
        AptAfter::Report | AptAfter::RollBack => what_is_well(&paths, &args.paths, &stacks).await,
    };
    let snapshot = match snapshot_as_configured(&paths, &args.paths, run, apt).await {
        Ok(snapshot) => snapshot,
        Err(why) if apt.snapshot == AptSnapshot::Must => {
            note_line!(
                "guestd: no snapshot was taken, and stacks.toml says that packages must not change without: {why}"
            );
            return EXIT_FAILED;
        }
        Err(why) => {
            note_line!("guestd: no snapshot was taken, packages change without one: {why}");
            None
        }
    };
    match now {
        Some(now) => begin(&paths, &args.paths, apt, AptState::new(now, run, snapshot, well)).await,
        None => {
            note_line!("guestd: the boot id is not known: nobody judges how the stacks are afterwards")
        }
    }
    EXIT_DONE
}

/// Writes it down, and has it judged.
async fn begin(paths: &Paths, args: &PathArgs, apt: Apt, note: AptState) {
    // Without it there are more snapshots than needed, and no judgement.
    if let Err(error) = note.store(paths) {
        note_line!("guestd: {}", chain(&error));
        return;
    }
    if apt.after == AptAfter::Off {
        return;
    }
    let said = match post_check::start(paths, args, &note).await {
        Ok(()) => "packages are being changed".to_owned(),
        Err(error) => {
            let said = format!("stacks are not checked after the package change: {}", chain(&error));
            note_line!("guestd: {said}");
            said
        }
    };
    let snapshot = note.snapshot.clone();
    status_file::update(paths, |status| {
        status.packages = Some(PackageCheck { at: clock::now(), snapshot, message: said })
    });
}

/// Which stacks are well before packages change. A health check that hangs does not delay apt.
async fn what_is_well(paths: &Paths, args: &PathArgs, stacks: &Stacks) -> Vec<HealthyStackRecord> {
    if Marker::is_there(paths) {
        note_line!("guestd: stacks are stopped for a backup, so none is checked afterwards");
        return Vec::new();
    }
    let look = async {
        let volumes = health::volumes(paths, args, stacks).await;
        health::well_now(paths, stacks, &volumes).await
    };
    let Ok(well) = tokio::time::timeout(LOOK_LIMIT, look).await else {
        let limit = LOOK_LIMIT.as_secs();
        note_line!(
            "guestd: what is well was not known within {limit} s, so no stack is asked for afterwards"
        );
        return Vec::new();
    };
    well.into_iter().map(HealthyStackRecord::from).collect()
}

async fn snapshot_as_configured(
    paths: &Paths,
    args: &PathArgs,
    run: Run,
    apt: Apt,
) -> Result<Option<SnapshotName>, String> {
    let limit = match apt.snapshot {
        AptSnapshot::Off => return Ok(None),
        AptSnapshot::Try => TRY_LIMIT,
        AptSnapshot::Must => MUST_LIMIT,
    };
    let name = match tokio::time::timeout(limit, snapshot(args, run, apt)).await {
        Ok(taken) => taken?,
        Err(_) => return Err(format!("it was not there after {} s", limit.as_secs())),
    };
    if run == Run::Upgrade {
        // The snapshot does not hold this: who lacks it went back.
        record::reconcile(paths, &name);
    }
    note_line!("guestd: snapshot {name} was taken; `guestd rollback {name}` goes back");
    Ok(Some(name))
}

async fn snapshot(args: &PathArgs, run: Run, apt: Apt) -> Result<SnapshotName, String> {
    let session = Session::open(args).map_err(|error| chain(&error))?;
    let prefix = match run {
        Run::ByHand => "apt-",
        Run::Upgrade => record::PREFIX,
    };
    let name = format!("{prefix}{}", clock::now().strftime("%Y%m%d-%H%M%S"));
    let name: Option<SnapshotName> = name.parse().ok();
    let body = SnapshotRequest {
        guest: None,
        name: name.clone(),
        keep_s: Some(apt.keep_hours.saturating_mul(3_600)),
    };
    let accepted = session.ask("/v1/snapshots", &body).await.map_err(|error| chain(&error))?;
    // The steps of the snapshot do not belong in apt's output.
    let view = session.follow(accepted.operation, Output::Json).await.map_err(|error| chain(&error))?;
    let name = accepted.snapshot.or(name);
    let status = end_text(&view, name.as_ref()).trim().to_owned();
    name.filter(|_| view.status == OperationStatus::Done).ok_or(status)
}
