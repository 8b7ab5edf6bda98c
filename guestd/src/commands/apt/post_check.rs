//! `guestd apt-judge`: waits for apt, checks health, reports or rolls back.
//!
//! It is a transient systemd unit, one for each time that apt calls the hook; only the last call's unit reports a
//! result. It ends by itself: the wait for apt is bounded, each stack has its own time to become well, and systemd ends
//! the whole unit. While it checks health, it holds the lock for stacks, so no window is open and no controller is
//! replaced. While it decides, it holds dpkg's lock, so that no process changes packages during a rollback, and nothing
//! it read is out of date.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::hello::UpgradeOutcome;
use holdfast_protocol::local::work::SnapshotsView;

use super::decide::{CheckResult, SnapshotState, Verdict, decide, snapshot_state};
use super::dpkg_lock;
use super::interrupted_packages;
use super::state::{self, AptState, Moment, Run};
use crate::args::{
    AptJudgeArgs, EXIT_DONE, EXIT_FAILED, EXIT_NOT_ROLLED_BACK, EXIT_ROLLED_BACK, Output, PathArgs,
};
use crate::clock;
use crate::commands::health::{self, Back, HealthyStack, When};
use crate::commands::upgrade;
use crate::paths::Paths;
use crate::program::{Call, ProgramError, run_well};
use crate::quiesce::lock::{self, Lock};
use crate::quiesce::marker::Marker;
use crate::stacks::{self, AptAfter, Stacks};
use crate::status_file::{self, PackageCheck};
use crate::work::Session;

/// The time limit of a call to systemd.
const LIMIT: Duration = Duration::from_secs(20);

/// Between two checks whether apt is done.
const PAUSE: Duration = Duration::from_secs(1);

/// Apt may wait for a person to answer its questions. The judge waits no longer than this.
const WAIT_MAX: Duration = Duration::from_secs(6 * 3_600);

/// Whatever hangs: 32 stacks with a quarter of an hour for each, after the longest wait.
const WHOLE: &str = "--property=RuntimeMaxSec=14h";

/// Why no judge runs.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("/proc/self/exe cannot be read")]
    Own(#[source] std::io::Error),
    #[error("systemd did not start the unit")]
    Run(#[source] ProgramError),
}

/// Has systemd start the judge of this note: apt's own processes end with apt, or with the terminal.
pub async fn start(paths: &Paths, args: &PathArgs, note: &AptState) -> Result<(), StartError> {
    let program = std::env::current_exe().map_err(StartError::Own)?;
    run_well(&call(paths, args, &program, &note.unit())).await.map_err(StartError::Run).map(drop)
}

fn call(paths: &Paths, args: &PathArgs, program: &std::path::Path, unit: &str) -> Call {
    let root: PathBuf = std::path::absolute(paths.root()).unwrap_or_else(|_| paths.root().to_owned());
    let mut argv = vec![
        "systemd-run".to_owned(),
        "--quiet".to_owned(),
        "--no-block".to_owned(),
        "--collect".to_owned(),
        format!("--unit={unit}"),
        "--description=Holdfast checks stacks after packages changed".to_owned(),
        WHOLE.to_owned(),
        "--".to_owned(),
        program.to_string_lossy().into_owned(),
        "apt-judge".to_owned(),
        "--root".to_owned(),
        root.to_string_lossy().into_owned(),
    ];
    if let Some(address) = args.source_address {
        argv.extend(["--source-address".to_owned(), address.to_string()]);
    }
    Call { argv, env: Vec::new(), folder: None, limit: LIMIT }
}

pub async fn check(args: &AptJudgeArgs) -> u8 {
    let paths = Paths::new(&args.paths.root);
    let mine = state::load(&paths);
    let Some(mine) = mine.filter(|mine| mine.is_still(Some(mine), Moment::now(&paths).as_ref())) else {
        note_line!("guestd: no packages changed since this was asked last");
        return EXIT_DONE;
    };
    PostCheck { paths: &paths, args: &args.paths, mine }.check().await
}

struct PostCheck<'a> {
    paths: &'a Paths,
    args: &'a PathArgs,
    /// As it was when we began.
    mine: AptState,
}

/// The result of waiting.
enum Waited {
    /// No process changes packages, and no stack is stopped for a backup.
    Quiet(Lock),
    /// Another judge reports the result, or none does.
    NotOurs,
    /// That state was never reached, with the reason.
    Never(String),
}

impl PostCheck<'_> {
    async fn check(&self) -> u8 {
        loop {
            let code = match self.wait().await {
                Waited::Quiet(lock) => self.ask(&lock).await,
                Waited::NotOurs => return EXIT_DONE,
                Waited::Never(why) => {
                    Some(self.report(&format!("stack health after the package change is unknown: {why}")))
                }
            };
            if let Some(code) = code {
                return code;
            }
        }
    }

    /// Checks health, decides and acts. None when another process changes packages by now: the whole check is repeated
    /// after that.
    async fn ask(&self, _turn: &Lock) -> Option<u8> {
        let stacks = match stacks::load(self.paths) {
            Ok(stacks) => stacks,
            Err(error) => {
                let why = chain(&error);
                return Some(self.report(&format!("packages changed, but the stacks are unknown: {why}")));
            }
        };
        let run = self.mine.run;
        let after = run.of(&stacks).after;
        if after == AptAfter::Off {
            // The file was changed to `off` since.
            status_file::update(self.paths, |status| status.packages = None);
            self.report_upgrade(UpgradeOutcome::Upgraded, "packages were upgraded; stacks were not checked");
            return Some(EXIT_DONE);
        }
        let well = self.well(&stacks);
        let volumes = health::volumes(self.paths, self.args, &stacks).await;
        let unwell = health::unwell(self.paths, &well, &volumes).await;
        let interrupted = interrupted_packages::done(self.paths).await;
        // Kept until all is done.
        let _lock = match dpkg_lock::take(self.paths) {
            dpkg_lock::LockResult::Acquired(lock) => lock,
            dpkg_lock::LockResult::Taken => return None,
            dpkg_lock::LockResult::Unknown(why) => return Some(self.report(&why)),
        };
        if !self.is_ours() {
            return Some(EXIT_DONE);
        }
        let snapshot_state = match after {
            AptAfter::RollBack if unwell.is_some() || interrupted.is_some() => self.snapshot_state().await,
            AptAfter::RollBack | AptAfter::Report | AptAfter::Off => SnapshotState::None,
        };
        let names = health::names(&well);
        let (unwell, interrupted, asked) = (unwell.as_deref(), interrupted.as_deref(), names.as_str());
        let snapshot = self.mine.snapshot.as_ref();
        Some(
            match decide(&CheckResult { run, after, unwell, interrupted, asked, snapshot, snapshot_state }) {
                Verdict::Well(said) => {
                    self.say(&said);
                    self.report_upgrade(UpgradeOutcome::Upgraded, &said);
                    EXIT_DONE
                }
                Verdict::Report(said) => self.report(&said),
                Verdict::RollBack(snapshot, why) => self.roll_back(&snapshot, &why).await,
            },
        )
    }

    async fn roll_back(&self, snapshot: &SnapshotName, why: &str) -> u8 {
        self.say(&format!("{why}: rolling back to snapshot {snapshot}; the guest restarts"));
        let back = match Session::open(self.args) {
            Ok(session) => health::go_back(&session, snapshot, When::AtOnce, Output::Json).await,
            Err(error) => Back::Not(format!("it was not rolled back: {}", chain(&error))),
        };
        match back {
            Back::UnderWay => EXIT_ROLLED_BACK,
            Back::Not(held) => {
                let said = format!("{why}; {held}; by hand: guestd rollback {snapshot}");
                self.say(&said);
                self.report_upgrade(UpgradeOutcome::Failed, &said);
                EXIT_NOT_ROLLED_BACK
            }
        }
    }

    /// Waits until apt is done and we hold the lock.
    async fn wait(&self) -> Waited {
        loop {
            if !self.is_ours() {
                return Waited::NotOurs;
            }
            let waits_for = match dpkg_lock::take(self.paths) {
                dpkg_lock::LockResult::Unknown(why) => return Waited::Never(why),
                dpkg_lock::LockResult::Taken => "packages are still being changed",
                // The lock is released at once: a process that wants to change packages need not wait for a health
                // check.
                dpkg_lock::LockResult::Acquired(_) => match lock::take(self.paths) {
                    lock::LockResult::Acquired(lock) if !Marker::is_there(self.paths) => {
                        return Waited::Quiet(lock);
                    }
                    lock::LockResult::Acquired(_) | lock::LockResult::Taken => {
                        "stacks stand still for a backup"
                    }
                    lock::LockResult::Unknown(why) => return Waited::Never(why),
                },
            };
            if self.mine.age(clock::since_boot(self.paths)).is_none_or(|age| age >= WAIT_MAX) {
                return Waited::Never(format!("{waits_for}, after {} hours", WAIT_MAX.as_secs() / 3_600));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn is_ours(&self) -> bool {
        self.mine.is_still(state::load(self.paths).as_ref(), Moment::now(self.paths).as_ref())
    }

    /// What was well, by the current file: a stack that was removed from it is not checked.
    fn well(&self, stacks: &Stacks) -> Vec<HealthyStack> {
        let groups = |stack: &stacks::Stack| {
            self.mine.well.iter().find(|was| was.stack == stack.name).map(|was| was.groups.clone())
        };
        let well =
            |stack: &stacks::Stack| Some(HealthyStack { groups: groups(stack)?, stack: stack.clone() });
        stacks.stacks.iter().filter_map(well).collect()
    }

    async fn snapshot_state(&self) -> SnapshotState {
        let Some(snapshot) = &self.mine.snapshot else { return SnapshotState::None };
        let session = match Session::open(self.args) {
            Ok(session) => session,
            Err(error) => return SnapshotState::Unknown(chain(&error)),
        };
        match session.agent.look::<SnapshotsView>(&session.token, "/v1/snapshots").await {
            Ok(view) => snapshot_state(snapshot, &view),
            Err(error) => SnapshotState::Unknown(chain(&error)),
        }
    }

    fn report(&self, said: &str) -> u8 {
        self.say(said);
        self.report_upgrade(UpgradeOutcome::Failed, said);
        EXIT_FAILED
    }

    /// Reports the outcome of an unattended upgrade.
    fn report_upgrade(&self, outcome: UpgradeOutcome, said: &str) {
        if self.mine.run == Run::Upgrade {
            upgrade::checked(self.paths, outcome, said, self.mine.snapshot.as_ref());
        }
    }

    /// To the journal, and for `guestd status`. It is judged from now on.
    fn say(&self, said: &str) {
        note_line!("guestd: {said}");
        let snapshot = self.mine.snapshot.clone();
        status_file::update(self.paths, |status| {
            status.packages = Some(PackageCheck { at: clock::now(), snapshot, message: said.to_owned() });
        });
        if !self.is_ours() {
            return;
        }
        if let Err(error) = self.mine.clone().checked().store(self.paths) {
            note_line!("guestd: {}", chain(&error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_unit_is_transient_and_not_waited_for() {
        let paths = Paths::new(Path::new("/"));
        let args = PathArgs { root: "/".into(), source_address: None };
        let line = call(&paths, &args, Path::new("/usr/bin/guestd"), "u").line();
        assert!(line.starts_with("systemd-run --quiet --no-block --collect --unit=u "), "{line}");
        assert!(line.contains("--property=RuntimeMaxSec=14h -- /usr/bin/guestd"), "{line}");
        assert!(line.ends_with("/usr/bin/guestd apt-judge --root /"), "{line}");
    }
}
