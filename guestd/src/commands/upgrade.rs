//! `guestd upgrade`: unattended security upgrades.
//!
//! ```text
//! timer ─ window open? ─ switched on? ─ quiet? ─ lists ─ anything? ─ older snapshots go ─ apt-get ─ hook: snapshot, what is well
//!                                                                            └─ judge: health ─┬─ well: reported
//!                                                                                              └─ back to the snapshot
//! ```
//! In: the timer `holdfast-upgrade.timer`, every half hour, and the maintenance window as the agent reports it. Out:
//! packages from Debian's security archive and their dependencies, and one report. Apt's hook and its judge are those
//! of every run of apt. Here they take a snapshot and roll back, unless `stacks.toml` says otherwise. In a window that
//! the document names, the guest is restarted when programs wait for that. Deliberately absent: any other upgrade, and
//! a second try of an upgrade that was rolled back, for a week.

mod apt_get;
pub mod record;
mod window;

use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::hello::UpgradeOutcome;
use holdfast_protocol::local::work::{Accepted, SnapshotsView};
use jiff::{SignedDuration, Timestamp};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{EXIT_DONE, EXIT_FAILED, Output, PathArgs, UpgradeArgs};
use crate::bootstrap_env;
use crate::clock;
use crate::commands::{apt, try_command, try_lock};
use crate::file::{self, Eyes};
use crate::paths::Paths;
use crate::program::{Call, run_well};
use crate::quiesce::lock::{self, LockResult};
use crate::quiesce::marker::Marker;
use crate::restart::needed;
use crate::stacks::{self, Security};
use crate::work::{Session, key};

pub use apt_get::VARIABLE;
use record::PREFIX;
use record::{Record, UNDER_WAY, write_status};
pub use record::{checked, load};
use window::{DueWork, Restart};

/// How long to wait for a process that stops stacks or runs `guestd try`.
const WAIT_MAX: Duration = Duration::from_secs(3_600);
const PAUSE: Duration = Duration::from_secs(15);

/// systemd accepts the request and does the rest.
const REBOOT: Duration = Duration::from_secs(60);

/// What was rolled back is not tried again before.
const HELD_BACK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Why no upgrade was made.
enum NotMade {
    /// It was not begun.
    NotRun(String),
    Failed(String),
    /// We were signalled to end.
    Ended,
}

pub async fn upgrade(args: &UpgradeArgs) -> u8 {
    let paths = Paths::new(&args.paths.root);
    let Ok(mut ends) = signal(SignalKind::terminate()) else {
        note_line!("guestd: cannot install signal handlers");
        return EXIT_FAILED;
    };
    if !bootstrap_env::is_own_guest(&paths) {
        note_line!("guestd: this guest is tried, or not handed over yet: nothing is upgraded");
        return EXIT_DONE;
    }
    match if args.in_window { due(&paths, &args.paths).await } else { DueWork::Upgrade } {
        DueWork::Upgrade => {}
        DueWork::Restart => return restart(&paths).await,
        DueWork::Nothing(why) => {
            note_line!("guestd: {why}");
            return EXIT_DONE;
        }
    }
    if args.in_window {
        record::attempted(&paths, clock::now());
    }
    let begun = async {
        tokio::select! {
            begun = prepare(&paths) => begun,
            _ = ends.recv() => Err(NotMade::Ended),
        }
    };
    let packages = match begun.await {
        Ok(Some(packages)) => packages,
        Ok(None) => return EXIT_DONE,
        Err(not_made) => return say(&paths, not_made),
    };
    // From here on a SIGTERM has no effect: packages in the middle of their change are completed, as far as systemd
    // waits for that.
    match change(&paths, &args.paths, &packages).await {
        Ok(()) => EXIT_DONE,
        Err(not_made) => say(&paths, not_made),
    }
}

fn say(paths: &Paths, not_made: NotMade) -> u8 {
    match not_made {
        NotMade::NotRun(why) => write_status(paths, UpgradeOutcome::NotRun, &why, None),
        NotMade::Failed(why) => {
            let snapshot = load(paths).last.and_then(|last| last.snapshot);
            write_status(paths, UpgradeOutcome::Failed, &why, snapshot.as_ref());
        }
        NotMade::Ended => note_line!("guestd: told to end; nothing was changed"),
    }
    EXIT_FAILED
}

/// What the timer calls this for: the agent says when the guest's maintenance window is.
async fn due(paths: &Paths, args: &PathArgs) -> DueWork {
    // What a rollback took back is known before it is judged what was done in this window.
    recover_state(paths, args).await;
    let view = match Session::open(args) {
        Ok(session) => session.agent.desired(&session.token, None).await.map_err(|error| chain(&error)),
        Err(error) => Err(chain(&error)),
    };
    let waits = match needed(paths) {
        Some(_) => Restart::Needed,
        None => Restart::NotNeeded,
    };
    match view {
        Ok(view) => window::due(&view.maintenance, &load(paths), waits, clock::now()),
        Err(why) => DueWork::Nothing(format!("when the maintenance window is, is not known: {why}")),
    }
}

/// Restarts the guest. What it ran it starts again by itself.
async fn restart(paths: &Paths) -> u8 {
    if !is_free(paths) || apt::dpkg_lock::goes_on(paths) || apt::is_checked_later(paths) {
        note_line!(
            "guestd: programs of this guest wait for a restart; something else goes on, so it is tried later"
        );
        return EXIT_DONE;
    }
    note_line!("guestd: the guest is restarted in its maintenance window, since programs wait for that");
    record::restarted(paths, clock::now());
    match run_well(&Call::new(["systemctl", "reboot"], REBOOT)).await {
        Ok(_) => EXIT_DONE,
        Err(error) => {
            note_line!("guestd: the guest is not restarted: {}", chain(&error));
            EXIT_FAILED
        }
    }
}

/// Whether no other process stops, starts or tries stacks.
fn is_free(paths: &Paths) -> bool {
    !Marker::is_there(paths)
        && !try_lock::goes_on(paths)
        && !try_command::is_open(paths)
        && matches!(lock::take(paths), LockResult::Acquired(_))
}

/// Waits for a quiet moment, renews the lists and returns what to upgrade. None where there is nothing to do.
async fn prepare(paths: &Paths) -> Result<Option<Vec<String>>, NotMade> {
    let stacks = stacks::load(paths).map_err(|error| NotMade::NotRun(chain(&error)))?;
    if stacks.upgrades.security == Security::Off {
        let why = "security upgrades are switched off in /etc/holdfast/stacks.toml";
        write_status(paths, UpgradeOutcome::NotRun, why, None);
        return Ok(None);
    }
    if let Some(until) = held_back(&load(paths), clock::now()) {
        note_line!("guestd: the last upgrade was rolled back; the next one is tried after {until}");
        return Ok(None);
    }
    wait(paths).await?;
    if let Some(interrupted) = apt::interrupted_packages(paths).await {
        let why =
            format!("dpkg left these half done: {interrupted}; `dpkg --configure -a` goes on with them");
        return Err(NotMade::NotRun(why));
    }
    let updated = run_well(&apt_get::update()).await.map_err(|error| error.brief());
    if let Err(why) = &updated {
        note_line!("guestd: {why}");
    }
    let priorities = priorities(paths)?;
    let plan = run_well(&apt_get::look(&priorities))
        .await
        .map_err(|error| NotMade::NotRun(format!("apt has no plan: {}", error.brief())))?;
    let packages: Vec<String> = apt_get::upgraded(&plan.out).into_iter().map(str::to_owned).collect();
    match (packages.is_empty(), updated) {
        (true, Ok(_)) => {
            write_status(paths, UpgradeOutcome::Current, "there is nothing to upgrade", None);
            Ok(None)
        }
        (true, Err(why)) => Err(NotMade::NotRun(format!("the lists of packages cannot be renewed: {why}"))),
        (false, _) => Ok(Some(packages)),
    }
}

/// Until when nothing is tried. Pure.
fn held_back(record: &Record, now: Timestamp) -> Option<Timestamp> {
    let last = record.last.as_ref().filter(|last| last.outcome == UpgradeOutcome::RolledBack)?;
    let until = last.at.checked_add(HELD_BACK).ok()?;
    (now < until).then_some(until)
}

/// Waits until no other process stops, starts or tries stacks.
async fn wait(paths: &Paths) -> Result<(), NotMade> {
    let waiting = async {
        while !is_free(paths) {
            tokio::time::sleep(PAUSE).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_MAX, waiting).await;
    waited.map_err(|_| {
        NotMade::NotRun("stacks stood still for a backup, or something was tried, for an hour".to_owned())
    })
}

/// Ours first, then a person's own.
fn priorities(paths: &Paths) -> Result<std::path::PathBuf, NotMade> {
    const BYTES_MAX: usize = 256 * 1024;
    let own = paths.inside(std::path::Path::new("/etc/apt/preferences"));
    let not_run = |error: file::FileError| NotMade::NotRun(chain(&error));
    let own = file::read(&own, BYTES_MAX, Eyes::All).map_err(not_run)?;
    let own = own.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let path = paths.run_dir().join("upgrade.pref");
    file::make_folder(&paths.run_dir(), Eyes::All).map_err(not_run)?;
    file::replace(&path, format!("{}\n{own}", apt_get::PRIORITIES).as_bytes(), Eyes::All).map_err(not_run)?;
    Ok(path)
}

/// Changes packages. The judge that the hook has started then checks the stacks; without a judge it ends here.
async fn change(paths: &Paths, args: &PathArgs, packages: &[String]) -> Result<(), NotMade> {
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let named = apt_get::named(&packages);
    write_status(paths, UpgradeOutcome::UnderWay, &format!("{UNDER_WAY}{named}"), None);
    forget_snapshots(args).await;
    let priorities = priorities(paths)?;
    let changed = run_well(&apt_get::upgrade(&priorities)).await;
    if let Err(error) = run_well(&apt_get::clean()).await {
        note_line!("guestd: {}", chain(&error));
    }
    changed.map_err(|error| NotMade::Failed(format!("upgrading {named} failed: {}", error.brief())))?;
    if !apt::is_checked_later(paths) {
        write_status(
            paths,
            UpgradeOutcome::Upgraded,
            &format!("upgraded {named}; stacks are not checked"),
            None,
        );
    }
    Ok(())
}

/// Those of earlier upgrades go: the guest's own ones are few. They stay until here, for who finds a week later what broke.
async fn forget_snapshots(args: &PathArgs) {
    let Ok(session) = Session::open(args) else { return };
    for name in listed(&session).await {
        let Ok(key) = key() else { return };
        let path = format!("/v1/snapshots/{name}");
        match session.agent.delete::<Accepted>(&session.token, &path, &key).await {
            Ok(accepted) => {
                let ended = session.follow(accepted.operation, Output::Json).await;
                if let Err(error) = ended {
                    note_line!("guestd: {}", chain(&error));
                }
            }
            Err(error) => note_line!("guestd: snapshot {name} stays for now: {}", chain(&error)),
        }
    }
}

/// Snapshots that were taken for upgrades, by the agent's list.
async fn listed(session: &Session) -> Vec<SnapshotName> {
    let view = session.agent.look::<SnapshotsView>(&session.token, "/v1/snapshots").await;
    let names = view.map(|view| view.snapshots).unwrap_or_default().into_iter().map(|one| one.name);
    names.filter(|name| name.as_str().starts_with(PREFIX)).collect()
}

/// Sees whether an upgrade was cut off, or the guest went back behind one. Once for each start of the controller.
pub async fn recover_state(paths: &Paths, args: &PathArgs) {
    let under_way = load(paths).last.is_some_and(|last| last.outcome == UpgradeOutcome::UnderWay);
    if under_way && !apt::dpkg_lock::goes_on(paths) && !apt::is_checked_later(paths) {
        write_status(
            paths,
            UpgradeOutcome::Failed,
            "it was cut off before it ended; `dpkg --audit` tells what is half done",
            None,
        );
    }
    let Ok(session) = Session::open(args) else { return };
    let known = load(paths).snapshots;
    let gone_back = listed(&session).await.into_iter().filter(|name| !known.contains(name));
    for name in gone_back {
        let why = format!("the guest went back to snapshot {name}; the upgrade is tried again in a week");
        write_status(paths, UpgradeOutcome::RolledBack, &why, Some(&name));
        record::reconcile(paths, &name);
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::local::hello::UpgradeReport;

    use super::*;

    #[test]
    fn what_was_rolled_back_is_held_back_for_a_week() {
        let at = |hour: i64| Timestamp::from_second(hour * 3_600).unwrap();
        let record = |outcome| {
            let (why, snapshot) = ("says the test".to_owned(), None);
            let mut record = Record::default();
            record.last = Some(UpgradeReport { at: at(0), outcome, why, snapshot });
            record
        };
        let back = record(UpgradeOutcome::RolledBack);
        assert_eq!(held_back(&back, at(1)), Some(at(7 * 24)));
        assert_eq!(held_back(&back, at(7 * 24)), None);
        assert_eq!(held_back(&record(UpgradeOutcome::Failed), at(1)), None);
        assert_eq!(held_back(&Record::default(), at(1)), None);
    }
}
