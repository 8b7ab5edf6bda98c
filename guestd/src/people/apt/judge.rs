//! `guestd apt-judge`: waits until apt is done, asks how the stacks are that were well before, and says so or goes back.
//!
//! A transient unit of systemd, one for each time that apt calls; only the last call's says anything. It ends by itself: apt is
//! waited for with a bound, each stack has its own time to be well, and systemd ends the whole. While it asks, it has the turn
//! of stacks, so no window is open and no controller is exchanged; while it decides, it has dpkg's lock, so that nobody changes
//! packages under a rollback, and nothing it read is old.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::SnapshotName;
use holdfast_protocol::local::hello::UpgradeOutcome;
use holdfast_protocol::local::work::SnapshotsView;
use holdfast_protocol::strict::chain;

use super::decide::{Seen, Stands, Verdict, decide, stands};
use super::half;
use super::lock;
use super::note::{self, Moment, Note, Run};
use crate::args::{
    AptJudgeArgs, EXIT_DONE, EXIT_FAILED, EXIT_NOT_ROLLED_BACK, EXIT_ROLLED_BACK, Output, PlaceArgs,
};
use crate::board::{self, Packages};
use crate::clock;
use crate::people::upgrade;
use crate::people::well::{self, Back, Well, When};
use crate::place::Place;
use crate::program::{Call, ProgramError, run_well};
use crate::quiesce::marker::Marker;
use crate::quiesce::turn::{self, Turn};
use crate::stacks::{self, AptAfter, Stacks};
use crate::work::Session;

/// Systemd is asked within this time.
const LIMIT: Duration = Duration::from_secs(20);

/// Between two looks whether apt is done.
const PAUSE: Duration = Duration::from_secs(1);

/// Apt may ask a person questions, who is at lunch. Longer than this nobody waits.
const WAIT_MAX: Duration = Duration::from_secs(6 * 3_600);

/// Whatever hangs: 32 stacks with a quarter of an hour for each, after the longest wait.
const WHOLE: &str = "--property=RuntimeMaxSec=14h";

/// Why nobody judges.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("our own program is not shown by /proc")]
    Own(#[source] std::io::Error),
    #[error("systemd takes no unit")]
    Run(#[source] ProgramError),
}

/// Has systemd start the judge of this note: apt's own processes end with apt, or with the terminal.
pub async fn start(place: &Place, args: &PlaceArgs, note: &Note) -> Result<(), StartError> {
    let program = std::env::current_exe().map_err(StartError::Own)?;
    run_well(&call(place, args, &program, &note.unit())).await.map_err(StartError::Run).map(drop)
}

fn call(place: &Place, args: &PlaceArgs, program: &std::path::Path, unit: &str) -> Call {
    let root: PathBuf = std::path::absolute(place.root()).unwrap_or_else(|_| place.root().to_owned());
    let mut argv = vec![
        "systemd-run".to_owned(),
        "--quiet".to_owned(),
        "--no-block".to_owned(),
        "--collect".to_owned(),
        format!("--unit={unit}"),
        "--description=Holdfast looks how the stacks are after packages changed".to_owned(),
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

/// `guestd apt-judge`.
pub async fn judge(args: &AptJudgeArgs) -> u8 {
    let place = Place::new(&args.place.root);
    let mine = note::load(&place);
    let Some(mine) = mine.filter(|mine| mine.is_still(Some(mine), Moment::now(&place).as_ref())) else {
        aside!("guestd: no packages changed since this was asked last");
        return EXIT_DONE;
    };
    Judge { place: &place, args: &args.place, mine }.judge().await
}

struct Judge<'a> {
    place: &'a Place,
    args: &'a PlaceArgs,
    /// As it was when we began.
    mine: Note,
}

/// What became of waiting.
enum Waited {
    /// Nobody changes packages, and no stack stands still for a backup.
    Quiet(Turn),
    /// Another judge speaks, or nobody.
    NotOurs,
    /// It was never so, in words.
    Never(String),
}

impl Judge<'_> {
    async fn judge(&self) -> u8 {
        loop {
            let code = match self.wait().await {
                Waited::Quiet(turn) => self.ask(&turn).await,
                Waited::NotOurs => return EXIT_DONE,
                Waited::Never(why) => {
                    Some(self.tell(&format!("nobody knows how the stacks are after packages changed: {why}")))
                }
            };
            if let Some(code) = code {
                return code;
            }
        }
    }

    /// Asks, decides and does it. None when somebody changes packages by now: all of it is asked again after that.
    async fn ask(&self, _turn: &Turn) -> Option<u8> {
        let stacks = match stacks::load(self.place) {
            Ok(stacks) => stacks,
            Err(error) => {
                let why = chain(&error);
                return Some(
                    self.tell(&format!("packages changed, and which stacks there are is not known: {why}")),
                );
            }
        };
        let run = self.mine.run;
        let after = run.of(&stacks).after;
        if after == AptAfter::Off {
            // Somebody said so since.
            board::update(self.place, |told| told.packages = None);
            self.report(UpgradeOutcome::Upgraded, "packages were upgraded; nobody asked the stacks");
            return Some(EXIT_DONE);
        }
        let well = self.well(&stacks);
        let volumes = well::volumes(self.place, self.args, &stacks).await;
        let unwell = well::unwell(self.place, &well, &volumes).await;
        let half = half::done(self.place).await;
        // Kept until all is done.
        let _lock = match lock::take(self.place) {
            lock::Asked::Ours(lock) => lock,
            lock::Asked::Taken => return None,
            lock::Asked::Unknown(why) => return Some(self.tell(&why)),
        };
        if !self.is_ours() {
            return Some(EXIT_DONE);
        }
        let stands = match after {
            AptAfter::RollBack if unwell.is_some() || half.is_some() => self.stands().await,
            AptAfter::RollBack | AptAfter::Tell | AptAfter::Off => Stands::None,
        };
        let names = well::names(&well);
        let (unwell, half, asked) = (unwell.as_deref(), half.as_deref(), names.as_str());
        let snapshot = self.mine.snapshot.as_ref();
        Some(match decide(&Seen { run, after, unwell, half, asked, snapshot, stands }) {
            Verdict::Well(said) => {
                self.say(&said);
                self.report(UpgradeOutcome::Upgraded, &said);
                EXIT_DONE
            }
            Verdict::Tell(said) => self.tell(&said),
            Verdict::GoBack(snapshot, why) => self.go_back(&snapshot, &why).await,
        })
    }

    async fn go_back(&self, snapshot: &SnapshotName, why: &str) -> u8 {
        self.say(&format!("{why}: the guest goes back to snapshot {snapshot}, and restarts"));
        let back = match Session::open(self.args) {
            Ok(session) => well::go_back(&session, snapshot, When::AtOnce, Output::Json).await,
            Err(error) => Back::Not(format!("it was not rolled back: {}", chain(&error))),
        };
        match back {
            Back::UnderWay => EXIT_ROLLED_BACK,
            Back::Not(held) => {
                let said = format!("{why}; {held}; by hand: guestd rollback {snapshot}");
                self.say(&said);
                self.report(UpgradeOutcome::Failed, &said);
                EXIT_NOT_ROLLED_BACK
            }
        }
    }

    /// Until apt is done and the turn is ours.
    async fn wait(&self) -> Waited {
        loop {
            if !self.is_ours() {
                return Waited::NotOurs;
            }
            let waits_for = match lock::take(self.place) {
                lock::Asked::Unknown(why) => return Waited::Never(why),
                lock::Asked::Taken => "packages are still being changed",
                // Let go at once: whoever wants to change packages need not wait for a health check.
                lock::Asked::Ours(_) => match turn::take(self.place) {
                    turn::Asked::Ours(turn) if !Marker::is_there(self.place) => return Waited::Quiet(turn),
                    turn::Asked::Ours(_) | turn::Asked::Taken => "stacks stand still for a backup",
                    turn::Asked::Unknown(why) => return Waited::Never(why),
                },
            };
            if self.mine.age(clock::since_boot(self.place)).is_none_or(|age| age >= WAIT_MAX) {
                return Waited::Never(format!("{waits_for}, after {} hours", WAIT_MAX.as_secs() / 3_600));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn is_ours(&self) -> bool {
        self.mine.is_still(note::load(self.place).as_ref(), Moment::now(self.place).as_ref())
    }

    /// What was well, as the file has it now: a stack that somebody took out of it is not asked for.
    fn well(&self, stacks: &Stacks) -> Vec<Well> {
        let groups = |stack: &stacks::Stack| {
            self.mine.well.iter().find(|was| was.stack == stack.name).map(|was| was.groups.clone())
        };
        let well = |stack: &stacks::Stack| Some(Well { groups: groups(stack)?, stack: stack.clone() });
        stacks.stacks.iter().filter_map(well).collect()
    }

    async fn stands(&self) -> Stands {
        let Some(snapshot) = &self.mine.snapshot else { return Stands::None };
        let session = match Session::open(self.args) {
            Ok(session) => session,
            Err(error) => return Stands::Unknown(chain(&error)),
        };
        match session.agent.look::<SnapshotsView>(&session.token, "/v1/snapshots").await {
            Ok(view) => stands(snapshot, &view),
            Err(error) => Stands::Unknown(chain(&error)),
        }
    }

    fn tell(&self, said: &str) -> u8 {
        self.say(said);
        self.report(UpgradeOutcome::Failed, said);
        EXIT_FAILED
    }

    /// Of an upgrade that nobody waits for.
    fn report(&self, outcome: UpgradeOutcome, said: &str) {
        if self.mine.run == Run::Upgrade {
            upgrade::judged(self.place, outcome, said, self.mine.snapshot.as_ref());
        }
    }

    /// To the journal, and for `guestd status`. It is judged from now on.
    fn say(&self, said: &str) {
        aside!("guestd: {said}");
        let snapshot = self.mine.snapshot.clone();
        board::update(self.place, |told| {
            told.packages = Some(Packages { at: clock::now(), snapshot, said: said.to_owned() });
        });
        if !self.is_ours() {
            return;
        }
        if let Err(error) = self.mine.clone().judged().store(self.place) {
            aside!("guestd: {}", chain(&error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn it_is_a_unit_that_ends_and_is_not_waited_for() {
        let place = Place::new(Path::new("/"));
        let args = PlaceArgs { root: "/".into(), source_address: None };
        let line = call(&place, &args, Path::new("/usr/bin/guestd"), "u").line();
        assert!(line.starts_with("systemd-run --quiet --no-block --collect --unit=u "), "{line}");
        assert!(line.contains("--property=RuntimeMaxSec=14h -- /usr/bin/guestd"), "{line}");
        assert!(line.ends_with("/usr/bin/guestd apt-judge --root /"), "{line}");
    }
}
