//! `guestd apt-hook`: a snapshot before apt changes packages, as `[apt]` of `stacks.toml` has it. It is off without that.
//!
//! With `try` nothing here holds apt up for longer than a minute, or makes it fail; with `must` no package changes without a
//! snapshot. Apt calls it before each of its steps: one snapshot is for all of them.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::work::SnapshotRequest;
use holdfast_protocol::operation::OperationStatus;
use holdfast_protocol::strict::chain;

use crate::args::{AptHookArgs, EXIT_DONE, EXIT_FAILED, Output, PlaceArgs};
use crate::clock;
use crate::file::{self, Eyes};
use crate::place::Place;
use crate::stacks::{self, Apt, AptSnapshot};
use crate::work::{Session, told_end};

/// So long apt waits where it could go without, and where it could not.
const TRY_LIMIT: Duration = Duration::from_secs(60);
const MUST_LIMIT: Duration = Duration::from_secs(600);

/// Within this time since the last one, it is the same run of apt, or as good as that.
const SAME_RUN: Duration = Duration::from_secs(1_800);

const STAMP_BYTES_MAX: usize = 64;

/// `guestd apt-hook`.
pub async fn hook(args: &AptHookArgs) -> u8 {
    let place = Place::new(&args.place.root);
    let apt = match stacks::load(&place) {
        Ok(stacks) => stacks.apt,
        Err(error) => {
            // Whether one must be had cannot be told. Updates that stand still for a slip of the pen are worse than one
            // snapshot less.
            aside!("guestd: {}; no snapshot is taken, packages change without one", chain(&error));
            return EXIT_DONE;
        }
    };
    let limit = match apt.snapshot {
        AptSnapshot::Off => return EXIT_DONE,
        AptSnapshot::Try => TRY_LIMIT,
        AptSnapshot::Must => MUST_LIMIT,
    };
    if is_same_run(&place) {
        return EXIT_DONE;
    }
    let taken = match tokio::time::timeout(limit, snapshot(&args.place, apt)).await {
        Ok(taken) => taken,
        Err(_) => Err(format!("it was not there after {} s", limit.as_secs())),
    };
    match (taken, apt.snapshot) {
        (Ok(said), _) => {
            aside!("guestd: {said}");
            stamp(&place);
            EXIT_DONE
        }
        (Err(why), AptSnapshot::Must) => {
            aside!(
                "guestd: no snapshot was taken, and stacks.toml says that packages must not change without: {why}"
            );
            EXIT_FAILED
        }
        (Err(why), AptSnapshot::Try | AptSnapshot::Off) => {
            aside!("guestd: no snapshot was taken, packages change without one: {why}");
            EXIT_DONE
        }
    }
}

async fn snapshot(args: &PlaceArgs, apt: Apt) -> Result<String, String> {
    let session = Session::open(args).map_err(|error| chain(&error))?;
    let name: Option<SnapshotName> = clock::now().strftime("apt-%Y%m%d-%H%M%S").to_string().parse().ok();
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
    match (view.status, name) {
        (OperationStatus::Done, Some(name)) => {
            Ok(format!("snapshot {name} was taken; `guestd rollback {name}` goes back"))
        }
        _ => Err(told),
    }
}

fn stamp_path(place: &Place) -> PathBuf {
    place.run_dir().join("apt-snapshot")
}

/// Whether a snapshot was taken a moment ago, by the clock that nobody sets.
fn is_same_run(place: &Place) -> bool {
    let read = file::read(&stamp_path(place), STAMP_BYTES_MAX, Eyes::All).ok().flatten();
    let then =
        read.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.trim().parse().ok().map(Duration::from_secs));
    match (then, clock::since_boot(place)) {
        (Some(then), Some(now)) => then <= now && now.saturating_sub(then) < SAME_RUN,
        _ => false,
    }
}

/// Without it there are more snapshots than needed, and no less.
fn stamp(place: &Place) {
    let now = clock::since_boot(place).unwrap_or_default().as_secs();
    let kept = file::make_folder(&place.run_dir(), Eyes::All)
        .and_then(|()| file::replace(&stamp_path(place), now.to_string().as_bytes(), Eyes::All));
    if let Err(error) = kept {
        aside!("guestd: {}", chain(&error));
    }
}
