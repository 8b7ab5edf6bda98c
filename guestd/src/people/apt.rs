//! `guestd apt-hook` and `guestd apt-judge`: a snapshot before apt changes packages, and how the stacks are when it is done, as
//! `[apt]` of `stacks.toml` has it. Both are off without that.
//!
//! ```text
//! apt locks ─ hook: what is well ─ snapshot ─ note ─┬─ dpkg … dpkg ─ apt lets go
//!                                                   └─ judge, a unit of its own: waits for that ─ health ─┬─ well: said
//!                                                                                                          ├─ tell: said
//!                                                                                                          └─ roll back
//! ```
//! The hook is apt's DPkg::Pre-Invoke, which apt runs while it holds dpkg's frontend lock, once for each of its steps: one
//! snapshot and one judgement are for all of them. The judge is started here and not after dpkg, because apt calls nobody
//! when it is killed; that lock is let go whatever becomes of apt. With `try` nothing here holds apt up for longer than a
//! minute and a half, or makes it fail; with `must` no package changes without a snapshot.

mod decide;
mod half;
mod judge;
mod lock;
mod note;

use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::work::SnapshotRequest;
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::strict::chain;

use self::note::{Moment, Note, Run};
use crate::args::{AptHookArgs, EXIT_DONE, EXIT_FAILED, Output, PlaceArgs};
use crate::board::{self, Packages};
use crate::clock;
use crate::people::well::{self, WasWell};
use crate::people::{tried, upgrade};
use crate::place::Place;
use crate::quiesce::marker::Marker;
use crate::stacks::{self, Apt, AptAfter, AptSnapshot, Stacks};
use crate::work::{Session, told_end};

pub use decide::{Stands, stands};
pub use half::done as half_done;
pub use judge::judge;
pub use lock::goes_on;

/// Whether somebody will yet say how the stacks are after packages changed.
pub fn is_judged_later(place: &Place) -> bool {
    note::load(place).is_some_and(|note| note.is_open(Moment::now(place).as_ref()))
}

/// So long apt waits for a snapshot where it could go without, and where it could not.
const TRY_LIMIT: Duration = Duration::from_secs(60);
const MUST_LIMIT: Duration = Duration::from_secs(600);

/// So long it waits for what is well.
const LOOK_LIMIT: Duration = Duration::from_secs(30);

/// `guestd apt-hook`.
pub async fn hook(args: &AptHookArgs) -> u8 {
    let place = Place::new(&args.place.root);
    let stacks = match stacks::load(&place) {
        Ok(stacks) => stacks,
        Err(error) => {
            // Whether one must be had cannot be told. Updates that stand still for a slip of the pen are worse than one
            // snapshot less.
            aside!("guestd: {}; no snapshot is taken, packages change without one", chain(&error));
            return EXIT_DONE;
        }
    };
    let run = Run::now();
    let apt = run.of(&stacks);
    if (apt.snapshot, apt.after) == (AptSnapshot::Off, AptAfter::Off) {
        return EXIT_DONE;
    }
    if tried::goes_on(&place) {
        // Its rollback would be to a snapshot that is not the last one any more, or be judged twice.
        aside!("guestd: something is tried: its snapshot and its judgement are for these packages, too");
        note::forget(&place);
        return EXIT_DONE;
    }
    let now = Moment::now(&place);
    let earlier = now.as_ref().and_then(|now| note::load(&place).filter(|note| note.is_for(now, run, apt)));
    if let Some(note) = earlier {
        begin(&place, &args.place, apt, note.again()).await;
        return EXIT_DONE;
    }
    let well = match apt.after {
        AptAfter::Off => Vec::new(),
        AptAfter::Tell | AptAfter::RollBack => what_is_well(&place, &args.place, &stacks).await,
    };
    let snapshot = match snapshot_as_wished(&place, &args.place, run, apt).await {
        Ok(snapshot) => snapshot,
        Err(why) if apt.snapshot == AptSnapshot::Must => {
            aside!(
                "guestd: no snapshot was taken, and stacks.toml says that packages must not change without: {why}"
            );
            return EXIT_FAILED;
        }
        Err(why) => {
            aside!("guestd: no snapshot was taken, packages change without one: {why}");
            None
        }
    };
    match now {
        Some(now) => begin(&place, &args.place, apt, Note::new(now, run, snapshot, well)).await,
        None => {
            aside!("guestd: which boot this is cannot be told: nobody judges how the stacks are afterwards")
        }
    }
    EXIT_DONE
}

/// Writes it down, and has it judged.
async fn begin(place: &Place, args: &PlaceArgs, apt: Apt, note: Note) {
    // Without it there are more snapshots than needed, and no judgement.
    if let Err(error) = note.store(place) {
        aside!("guestd: {}", chain(&error));
        return;
    }
    if apt.after == AptAfter::Off {
        return;
    }
    let said = match judge::start(place, args, &note).await {
        Ok(()) => "packages are being changed".to_owned(),
        Err(error) => {
            let said = format!("nobody judges how the stacks are after packages change: {}", chain(&error));
            aside!("guestd: {said}");
            said
        }
    };
    let snapshot = note.snapshot.clone();
    board::update(place, |told| told.packages = Some(Packages { at: clock::now(), snapshot, said }));
}

/// What is well before packages change. Nobody is held up by a health check that hangs.
async fn what_is_well(place: &Place, args: &PlaceArgs, stacks: &Stacks) -> Vec<WasWell> {
    if Marker::is_there(place) {
        aside!("guestd: stacks stand still for a backup, so none of them is asked for afterwards");
        return Vec::new();
    }
    let look = async {
        let volumes = well::volumes(place, args, stacks).await;
        well::well_now(place, stacks, &volumes).await
    };
    let Ok(well) = tokio::time::timeout(LOOK_LIMIT, look).await else {
        let limit = LOOK_LIMIT.as_secs();
        aside!("guestd: what is well was not told within {limit} s, so no stack is asked for afterwards");
        return Vec::new();
    };
    well.into_iter().map(WasWell::from).collect()
}

async fn snapshot_as_wished(
    place: &Place,
    args: &PlaceArgs,
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
        upgrade::know(place, &name);
    }
    aside!("guestd: snapshot {name} was taken; `guestd rollback {name}` goes back");
    Ok(Some(name))
}

async fn snapshot(args: &PlaceArgs, run: Run, apt: Apt) -> Result<SnapshotName, String> {
    let session = Session::open(args).map_err(|error| chain(&error))?;
    let prefix = match run {
        Run::ByHand => "apt-",
        Run::Upgrade => upgrade::PREFIX,
    };
    let name = format!("{prefix}{}", clock::now().strftime("%Y%m%d-%H%M%S"));
    let name: Option<SnapshotName> = name.parse().ok();
    let wish = SnapshotRequest {
        guest: None,
        name: name.clone(),
        keep_s: Some(apt.keep_hours.saturating_mul(3_600)),
    };
    let accepted = session.ask("/v1/snapshots", &wish).await.map_err(|error| chain(&error))?;
    // Its steps are nobody's business in apt's output.
    let view = session.follow(accepted.operation, Output::Json).await.map_err(|error| chain(&error))?;
    let name = accepted.snapshot.or(name);
    let told = told_end(&view, name.as_ref()).trim().to_owned();
    name.filter(|_| view.status == OperationStatus::Done).ok_or(told)
}
