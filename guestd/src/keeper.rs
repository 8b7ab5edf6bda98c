//! The loop that keeps stacks: brings back what was left stopped, then runs windows for backups that are due, or the restore
//! test that this scratch guest was made for.
//!
//! It runs beside the hello and hears from it, with each answer, with which agent this guest stands and what for.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_protocol::bootstrap::{Bootstrap, Mode};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::due::DueBackup;
use holdfast_protocol::local::window::{Released, WindowPhase, WindowRequest};
use holdfast_protocol::protection::Consistency;
use holdfast_protocol::strict::chain;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::agent::Agent;
use crate::args::PlaceArgs;
use crate::backoff::Backoff;
use crate::beat;
use crate::board;
use crate::clock;
use crate::people::{trial, upgrade};
use crate::place::Place;
use crate::quiesce::marker::{Marker, MarkerError};
use crate::quiesce::resume::{Asker, Cleared, Recovered, Tries, recover};
use crate::quiesce::turn::{self, Asked};
use crate::quiesce::{untold, wanted};
use crate::restore_test;
use crate::stacks::{self, Stacks};
use crate::window::calls::{Answer, Windows};
use crate::window::decide::Standing;
use crate::window::run::{Runner, Stop};

/// How soon to look whether somebody left a marker, when the agent says nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// After a window nothing is asked for so soon again, whatever is due.
const PAUSE_AFTER: Duration = Duration::from_secs(60);

/// After one that came to nothing: stopping and starting stacks over and over helps nobody.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(300);
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// After so many failures the pause is as long as it gets.
const FAILURES_LONG: u32 = 8;

/// Of one go at starting what is down; the next go follows soon, and other work goes on in between.
const TRIES: Tries = Tries(3);

/// Whoever has the turn past its bound is waited for so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// With whom this guest stands, and what for. Told anew with each hello that is answered.
#[derive(Clone)]
pub struct Serving {
    pub bootstrap: Bootstrap,
    pub mode: Mode,
}

/// The loop.
pub struct Keeper {
    place: Place,
    source_address: Option<IpAddr>,
    boot_id: String,
    serving: watch::Receiver<Option<Serving>>,
    /// No window before this.
    not_before: Duration,
    failures: u32,
    reported: Reported,
    upgrades: Upgrades,
    /// A window that an earlier process of ours had open: the agent is told that it is over.
    orphan: Option<OperationId>,
    /// The last window that the agent knows to be over. Where nothing can be written, the board shows it open for ever.
    over: Option<OperationId>,
    /// A window of ours whose backup goes on.
    unlabelled: Option<OperationId>,
}

/// Whether the restore test's report was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    No,
    Yes,
}

/// Whether it was seen what became of the last upgrade, since this process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upgrades {
    NotSeen,
    Seen,
}

/// Whether the agent heard the end of all windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    All,
    NotAll,
}

impl Keeper {
    pub fn new(
        place: Place,
        source_address: Option<IpAddr>,
        boot_id: String,
        serving: watch::Receiver<Option<Serving>>,
    ) -> Self {
        Self {
            place,
            source_address,
            boot_id,
            serving,
            not_before: Duration::ZERO,
            failures: 0,
            reported: Reported::No,
            upgrades: Upgrades::NotSeen,
            orphan: None,
            over: None,
            unlabelled: None,
        }
    }

    /// For ever.
    pub async fn run(mut self) -> std::convert::Infallible {
        self.look_back();
        let mut backoff = Backoff::default();
        loop {
            self.bring_back().await;
            self.look_for_orphan();
            let serving = self.serving.borrow_and_update().clone();
            if let Some(serving) = serving {
                self.serve(&serving).await;
            }
            // A hello is the pace; without one it is only looked for markers, and soon where one lies.
            let wait = if Marker::is_there(&self.place) {
                backoff.next(u64::from(std::process::id())).min(LOOK_AGAIN)
            } else {
                backoff.reset();
                LOOK_AGAIN
            };
            beat::within(wait);
            if let Ok(Err(_)) = tokio::time::timeout(wait, self.serving.changed()).await {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// What an earlier process said of itself says nothing of this one. A window that it left open is over: its marker, if
    /// there is one, is brought back next.
    fn look_back(&mut self) {
        // Whoever has the turn has a window of its own.
        if matches!(turn::take(&self.place), Asked::Taken) {
            return;
        }
        let marker = Marker::load(&self.place).ok().flatten();
        let open = board::load(&self.place).open;
        self.orphan = open.map(|open| open.id).or(marker.map(|marker| marker.window));
        if let Some(id) = self.orphan.filter(|_| !Marker::is_there(&self.place)) {
            untold::is_over(&self.place, id);
        }
        board::update(&self.place, |told| (told.open, told.problem) = (None, None));
    }

    /// Another process of ours may die with a window open while this one lives, a person's `guestd backup` for one: nobody
    /// else tells the agent that it is over.
    fn look_for_orphan(&mut self) {
        let is_open = |place: &Place| board::load(place).open.map(|open| open.id);
        if Marker::is_there(&self.place) || is_open(&self.place).is_none() {
            return;
        }
        // Whoever has the turn has that window, and closes it before the turn is given back.
        let Asked::Ours(_turn) = turn::take(&self.place) else { return };
        if let Some(id) = is_open(&self.place) {
            self.orphan = Some(id).filter(|_| self.over != Some(id));
            if self.orphan.is_some() {
                untold::is_over(&self.place, id);
            }
            board::update(&self.place, |told| told.open = None);
        }
    }

    /// Says of each window that is over that it is, and since when what stood still for it is being started. The agent holds
    /// this guest's lane until it hears, and may take programs for standing that run. Whatever it answers is well.
    async fn tell_untold(&mut self, windows: &Windows<'_>) -> Told {
        // Whoever has the turn may have a window, of which it will say more than is known here.
        if matches!(turn::take(&self.place), Asked::Taken) {
            return Told::NotAll;
        }
        let noted = untold::all(&self.place);
        let orphan = self.orphan.filter(|_| !Marker::is_there(&self.place));
        let unnoted = orphan.filter(|id| noted.iter().all(|one| one.window != *id)).map(|id| (id, None));
        let noted = noted.iter().map(|one| (one.window, one.begun_ms_ago(&self.place)));
        for (id, begun_ms_ago) in noted.chain(unnoted) {
            let down = board::load(&self.place).down;
            let body = Released { guest: None, down, begun_ms_ago };
            let mut answer = windows.released(id, &body).await;
            if matches!(answer, Answer::Refuses(_)) {
                answer = windows.give_up(id).await;
            }
            if let Answer::Silent(why) = answer {
                info!(window = %id, why, "the agent does not hear that the window is over");
                return Told::NotAll;
            }
            info!(window = %id, begun_ms_ago, "the agent heard that the window is over");
            self.over = Some(id);
            self.orphan = self.orphan.filter(|orphan| *orphan != id);
            untold::heard(&self.place, id);
        }
        Told::All
    }

    /// What a backup holds is told when its copy has ended, long after the stacks run again.
    async fn ask_for_label(&mut self, windows: &Windows<'_>) {
        let Some(id) = self.unlabelled else { return };
        match windows.peek(id).await {
            Answer::Says(view) => match view.label {
                Some(label) => {
                    board::label(&self.place, id, &label);
                    self.unlabelled = None;
                }
                None if view.phase == WindowPhase::Cancelled => self.unlabelled = None,
                None => {}
            },
            Answer::Refuses(_) => self.unlabelled = None,
            Answer::Silent(_) => {}
        }
    }

    /// Starts what somebody left stopped.
    async fn bring_back(&self) {
        if !Marker::is_there(&self.place) {
            let aside = Marker::lies_aside(&self.place);
            board::update(&self.place, |told| {
                told.down.clear();
                told.problem = None;
                told.put_aside = told.put_aside.take().filter(|_| aside);
            });
            return;
        }
        let heard = |down: &[_]| board::update(&self.place, |told| told.down = down.to_vec());
        // First without waiting: a window that another process has open is its own.
        let how = match turn::take(&self.place) {
            Asked::Taken => (Asker::Timer, PATIENCE, Tries(1)),
            _ => (Asker::Now, Duration::ZERO, TRIES),
        };
        match recover(&self.place, how, heard).await {
            Ok(Recovered::Nothing) => {}
            Ok(Recovered::Others(left)) => debug!(left_s = left.as_secs(), "another process has a window"),
            Ok(Recovered::Done(resumed)) => {
                for note in &resumed.notes {
                    warn!(note, "after stacks were started");
                }
                let problem = (resumed.cleared == Cleared::No).then(|| resumed.notes.join("; "));
                board::update(&self.place, |told| told.problem = problem);
            }
            Err(error) if error.loses_what_stands_still() => self.bring_back_wanted(&error).await,
            Err(error) => {
                let problem = chain(&error);
                warn!(problem, "the marker cannot be read");
                board::update(&self.place, |told| told.problem = Some(problem));
            }
        }
    }

    /// What was stopped is not known any more: whatever should run is started.
    async fn bring_back_wanted(&self, error: &MarkerError) {
        warn!(error = chain(error), "everything that should run is started");
        let started = wanted::start_all(&self.place).await;
        let aside = Marker::put_aside(&self.place);
        let mut notes = vec![chain(error), started.unwrap_or_else(|error| chain(&error))];
        notes.extend(aside.err().map(|error| chain(&error)));
        let said = format!("{}; remove quiesce.json.bad once you have looked at it", notes.join("; "));
        board::update(&self.place, |told| told.put_aside = Some(said));
    }

    async fn serve(&mut self, serving: &Serving) {
        let (stacks, file_problem) = match stacks::load(&self.place) {
            Ok(stacks) => (stacks, None),
            // Without stacks there are no windows, and a scratch guest still tells its canaries.
            Err(error) => (Stacks::default(), Some(chain(&error))),
        };
        board::update(&self.place, |told| told.file_problem = file_problem.clone());
        let bootstrap = &serving.bootstrap;
        let agent = match Agent::new(&bootstrap.endpoint, bootstrap.pin, self.source_address) {
            Ok(agent) => agent,
            Err(error) => return warn!(error = chain(&error), "the agent cannot be asked"),
        };
        let windows = Windows { agent: &agent, token: &bootstrap.token };
        match (serving.mode, self.reported) {
            (Mode::RestoreTest, Reported::Yes) => {}
            (Mode::RestoreTest, Reported::No) => {
                let host = (bootstrap.endpoint.as_str(), self.source_address);
                let known = file_problem.as_deref().map_or(Ok(&stacks), Err);
                if restore_test::run(&self.place, &windows, host, known).await {
                    self.reported = Reported::Yes;
                }
            }
            (Mode::Serve, _) => {
                let args =
                    PlaceArgs { root: self.place.root().to_owned(), source_address: self.source_address };
                trial::go_on(&self.place, &args, &stacks).await;
                if self.upgrades == Upgrades::NotSeen {
                    upgrade::look_back(&self.place, &args).await;
                    self.upgrades = Upgrades::Seen;
                }
                let told = self.tell_untold(&windows).await;
                self.ask_for_label(&windows).await;
                if told == Told::All && !stacks.is_empty() {
                    self.look_what_is_due(windows, &stacks).await;
                }
            }
        }
    }

    async fn look_what_is_due(&mut self, windows: Windows<'_>, stacks: &Stacks) {
        let now = clock::since_boot(&self.place).unwrap_or_default();
        if now < self.not_before || Marker::is_there(&self.place) {
            return;
        }
        let due = match windows.due().await {
            Ok(view) => view.due.into_iter().find(|due| due.consistency == Consistency::Application),
            Err(error) => return debug!(error = chain(&error), "what is due is not told"),
        };
        let Some(DueBackup { tier, policy, .. }) = due else { return };
        info!(tier = ?tier, policy = ?policy, "a backup is due");
        let runner = Runner { place: &self.place, windows, stacks, boot_id: &self.boot_id, tries: TRIES };
        let ended = runner.run(&WindowRequest { guest: None, tier: Some(tier) }).await;
        let pause = match &ended {
            Ok(ended) => {
                (self.unlabelled, self.over) = (Some(ended.id), Some(ended.id));
                if ended.told == Standing::StillAndTold && ended.down.is_empty() {
                    self.failures = 0;
                    PAUSE_AFTER
                } else {
                    // What is killed each time it is told to stop is not told so again soon.
                    let step = if ended.stop == Stop::Killed { FAILURES_LONG } else { 1 };
                    self.failures = self.failures.saturating_add(step);
                    let doubled = 2_u32.saturating_pow(self.failures.min(FAILURES_LONG) - 1);
                    PAUSE_AFTER_FAILURE.saturating_mul(doubled).min(PAUSE_MAX)
                }
            }
            // Nothing was stopped.
            Err(error) => {
                info!(why = chain(error), "no window was had");
                PAUSE_AFTER
            }
        };
        self.not_before = clock::since_boot(&self.place).unwrap_or_default().saturating_add(pause);
    }
}
