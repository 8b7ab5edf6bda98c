//! Loop that resumes stopped stacks and runs windows for due backups.
//!
//! In a scratch guest it runs the restore test instead.
//!
//! It runs in parallel with the hello loop. That loop passes on, with each answer, the agent that this guest is
//! connected to and its mode.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_protocol::bootstrap::{Bootstrap, Mode};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::due_backups::DueBackup;
use holdfast_protocol::local::window::{Released, WindowPhase, WindowRequest};
use holdfast_protocol::protection::Consistency;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::agent::Agent;
use crate::args::PathArgs;
use crate::backoff::Backoff;
use crate::clock;
use crate::commands::{try_command, upgrade};
use crate::paths::Paths;
use crate::quiesce::lock::{self, LockResult};
use crate::quiesce::marker::{Marker, MarkerError};
use crate::quiesce::resume::{Cleared, Recovery, ResumeCaller, Tries, recover};
use crate::quiesce::{release_outbox, start_enabled};
use crate::restore_test;
use crate::stacks::{self, Stacks};
use crate::status_file;
use crate::watchdog;
use crate::window::calls::{Answer, Windows};
use crate::window::decide::StackPhase;
use crate::window::run::{Runner, Stop};

/// How soon to check for a marker that a process left, when the agent sends nothing.
const RECHECK: Duration = Duration::from_secs(15);

/// The pause after a window before the next request, whatever is due.
const PAUSE_AFTER: Duration = Duration::from_secs(60);

/// The pause after a failed window. Stopping and starting stacks again and again has no benefit.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(300);
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// After this many failures in a row the pause has its full length.
const FAILURES_LONG: u32 = 8;

/// The number of tries of one attempt at starting what is down. The next attempt follows soon, and other work continues
/// in between.
const TRIES: Tries = Tries(3);

/// How long to wait for a process that holds the lock past its bound.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The agent that this guest is connected to, and the mode. Sent anew with each hello that is answered.
#[derive(Clone)]
pub struct Serving {
    pub bootstrap: Bootstrap,
    pub mode: Mode,
}

pub struct BackupLoop {
    paths: Paths,
    source_address: Option<IpAddr>,
    boot_id: String,
    serving: watch::Receiver<Option<Serving>>,
    /// No window before this.
    not_before: Duration,
    failures: u32,
    reported: Reported,
    upgrades: Upgrades,
    /// A window that an earlier guestd process had open. The agent must be notified that it is over.
    orphan: Option<OperationId>,
    /// The last window that the agent knows to be over. If nothing can be written, the status file shows it as open for
    /// ever.
    over: Option<OperationId>,
    /// Our last window, whose backup is still running.
    unlabelled: Option<OperationId>,
}

/// Whether the restore test's report was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    No,
    Yes,
}

/// Whether the result of the last upgrade was checked, since this process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upgrades {
    Unchecked,
    Seen,
}

/// Whether the ends of all windows were delivered to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    All,
    Partial,
}

impl BackupLoop {
    pub fn new(
        paths: Paths,
        source_address: Option<IpAddr>,
        boot_id: String,
        serving: watch::Receiver<Option<Serving>>,
    ) -> Self {
        Self {
            paths,
            source_address,
            boot_id,
            serving,
            not_before: Duration::ZERO,
            failures: 0,
            reported: Reported::No,
            upgrades: Upgrades::Unchecked,
            orphan: None,
            over: None,
            unlabelled: None,
        }
    }

    pub async fn run(mut self) -> std::convert::Infallible {
        self.recover_state();
        let mut backoff = Backoff::default();
        loop {
            self.resume_stopped().await;
            self.find_orphan();
            let serving = self.serving.borrow_and_update().clone();
            if let Some(serving) = serving {
                self.serve(&serving).await;
            }
            // Each hello wakes the loop. Without one it only checks for markers, and soon when a marker exists.
            let wait = if Marker::is_there(&self.paths) {
                backoff.next(u64::from(std::process::id())).min(RECHECK)
            } else {
                backoff.reset();
                RECHECK
            };
            watchdog::within(wait);
            if let Ok(Err(_)) = tokio::time::timeout(wait, self.serving.changed()).await {
                tokio::time::sleep(RECHECK).await;
            }
        }
    }

    /// What an earlier process said of itself says nothing of this one. A window that it left open is over: its marker, if
    /// there is one, is brought back next.
    fn recover_state(&mut self) {
        // The process that holds the lock has its own window.
        if matches!(lock::take(&self.paths), LockResult::Taken) {
            return;
        }
        let marker = Marker::load(&self.paths).ok().flatten();
        let open = status_file::load(&self.paths).open;
        self.orphan = open.map(|open| open.id).or(marker.map(|marker| marker.window));
        if let Some(id) = self.orphan.filter(|_| !Marker::is_there(&self.paths)) {
            release_outbox::note_end(&self.paths, id);
        }
        status_file::update(&self.paths, |status| (status.open, status.problem) = (None, None));
    }

    /// Another guestd process, such as a person's `guestd backup`, may die with a window open while this process lives.
    /// No other process then reports to the agent that the window is over.
    fn find_orphan(&mut self) {
        let is_open = |paths: &Paths| status_file::load(paths).open.map(|open| open.id);
        if Marker::is_there(&self.paths) || is_open(&self.paths).is_none() {
            return;
        }
        // The process that holds the lock has that window, and closes it before it releases the lock.
        let LockResult::Acquired(_turn) = lock::take(&self.paths) else { return };
        if let Some(id) = is_open(&self.paths) {
            self.orphan = Some(id).filter(|_| self.over != Some(id));
            if self.orphan.is_some() {
                release_outbox::note_end(&self.paths, id);
            }
            status_file::update(&self.paths, |status| status.open = None);
        }
    }

    /// Reports the end of each window, and since when its stopped stacks are being started. The agent holds this
    /// guest's lane until it receives the report, and until then may take running programs for stopped. Every answer
    /// counts as delivered.
    async fn deliver_releases(&mut self, windows: &Windows<'_>) -> Delivery {
        // The process that holds the lock may have a window, and will report more about it than is known here.
        if matches!(lock::take(&self.paths), LockResult::Taken) {
            return Delivery::Partial;
        }
        let noted = release_outbox::all(&self.paths);
        let orphan = self.orphan.filter(|_| !Marker::is_there(&self.paths));
        let unnoted = orphan.filter(|id| noted.iter().all(|one| one.window != *id)).map(|id| (id, None));
        let noted = noted.iter().map(|one| (one.window, one.begun_ms_ago(&self.paths)));
        for (id, begun_ms_ago) in noted.chain(unnoted) {
            let down = status_file::load(&self.paths).down;
            let body = Released { guest: None, down, begun_ms_ago };
            let mut answer = windows.released(id, &body).await;
            if matches!(answer, Answer::Refuses(_)) {
                answer = windows.give_up(id).await;
            }
            if let Answer::Silent(why) = answer {
                info!(window = %id, why, "release of window not acknowledged");
                return Delivery::Partial;
            }
            info!(window = %id, begun_ms_ago, "release of window acknowledged");
            self.over = Some(id);
            self.orphan = self.orphan.filter(|orphan| *orphan != id);
            release_outbox::delivered(&self.paths, id);
        }
        Delivery::All
    }

    /// What a backup holds is reported when its copy has ended, long after the stacks run again.
    async fn fetch_label(&mut self, windows: &Windows<'_>) {
        let Some(id) = self.unlabelled else { return };
        match windows.peek(id).await {
            Answer::Says(view) => match view.label {
                Some(label) => {
                    status_file::label(&self.paths, id, &label);
                    self.unlabelled = None;
                }
                None if view.phase == WindowPhase::Cancelled => self.unlabelled = None,
                None => {}
            },
            Answer::Refuses(_) => self.unlabelled = None,
            Answer::Silent(_) => {}
        }
    }

    /// Starts the stacks that another process left stopped.
    async fn resume_stopped(&self) {
        if !Marker::is_there(&self.paths) {
            let note_line = Marker::has_bad_copy(&self.paths);
            status_file::update(&self.paths, |status| {
                status.down.clear();
                status.problem = None;
                status.marker_problem = status.marker_problem.take().filter(|_| note_line);
            });
            return;
        }
        let heard = |down: &[_]| status_file::update(&self.paths, |status| status.down = down.to_vec());
        // First without waiting: a window that another process has open is its own.
        let how = match lock::take(&self.paths) {
            LockResult::Taken => (ResumeCaller::Timer, TIMEOUT, Tries(1)),
            _ => (ResumeCaller::Now, Duration::ZERO, TRIES),
        };
        match recover(&self.paths, how, heard).await {
            Ok(Recovery::Nothing) => {}
            Ok(Recovery::Others(left)) => {
                debug!(left_s = left.as_secs(), "window of another process is open")
            }
            Ok(Recovery::Done(resumed)) => {
                for note in &resumed.notes {
                    warn!(note, "note after resume");
                }
                let problem = (resumed.cleared == Cleared::No).then(|| resumed.notes.join("; "));
                status_file::update(&self.paths, |status| status.problem = problem);
            }
            Err(error) if error.loses_stopped_parts() => self.start_enabled(&error).await,
            Err(error) => {
                let problem = chain(&error);
                warn!(problem, "quiesce marker cannot be read");
                status_file::update(&self.paths, |status| status.problem = Some(problem));
            }
        }
    }

    /// What was stopped is not known any more: whatever should run is started.
    async fn start_enabled(&self, error: &MarkerError) {
        warn!(error = chain(error), "starting all enabled stacks");
        let started = start_enabled::start_all(&self.paths).await;
        let note_line = Marker::move_to_bad(&self.paths);
        let mut notes = vec![chain(error), started.unwrap_or_else(|error| chain(&error))];
        notes.extend(note_line.err().map(|error| chain(&error)));
        let said = format!("{}; check quiesce.json.bad, then remove it", notes.join("; "));
        status_file::update(&self.paths, |status| status.marker_problem = Some(said));
    }

    async fn serve(&mut self, serving: &Serving) {
        let (stacks, file_problem) = match stacks::load(&self.paths) {
            Ok(stacks) => (stacks, None),
            // Without stacks there are no windows, but a scratch guest still reports its canaries.
            Err(error) => (Stacks::default(), Some(chain(&error))),
        };
        status_file::update(&self.paths, |status| status.file_problem = file_problem.clone());
        let bootstrap = &serving.bootstrap;
        let agent = match Agent::new(&bootstrap.endpoint, bootstrap.pin, self.source_address) {
            Ok(agent) => agent,
            Err(error) => return warn!(error = chain(&error), "agent client cannot be set up"),
        };
        let windows = Windows { agent: &agent, token: &bootstrap.token };
        match (serving.mode, self.reported) {
            (Mode::RestoreTest, Reported::Yes) => {}
            (Mode::RestoreTest, Reported::No) => {
                let host = (bootstrap.endpoint.as_str(), self.source_address);
                let known = file_problem.as_deref().map_or(Ok(&stacks), Err);
                if restore_test::run(&self.paths, &windows, host, known).await {
                    self.reported = Reported::Yes;
                }
            }
            (Mode::Serve, _) => {
                let args =
                    PathArgs { root: self.paths.root().to_owned(), source_address: self.source_address };
                try_command::continue_try(&self.paths, &args, &stacks).await;
                if self.upgrades == Upgrades::Unchecked {
                    upgrade::recover_state(&self.paths, &args).await;
                    self.upgrades = Upgrades::Seen;
                }
                let status = self.deliver_releases(&windows).await;
                self.fetch_label(&windows).await;
                if status == Delivery::All && !stacks.is_empty() {
                    self.check_due(windows, &stacks).await;
                }
            }
        }
    }

    async fn check_due(&mut self, windows: Windows<'_>, stacks: &Stacks) {
        let now = clock::since_boot(&self.paths).unwrap_or_default();
        if now < self.not_before || Marker::is_there(&self.paths) {
            return;
        }
        let due = match windows.due().await {
            Ok(view) => view.due.into_iter().find(|due| due.consistency == Consistency::Application),
            Err(error) => return debug!(error = chain(&error), "due backups are unknown"),
        };
        let Some(DueBackup { tier, policy, .. }) = due else { return };
        info!(tier = ?tier, policy = ?policy, "backup due");
        let runner = Runner { paths: &self.paths, windows, stacks, boot_id: &self.boot_id, tries: TRIES };
        let ended = runner.run(&WindowRequest { guest: None, tier: Some(tier) }).await;
        let pause = match &ended {
            Ok(ended) => {
                (self.unlabelled, self.over) = (Some(ended.id), Some(ended.id));
                if ended.status == StackPhase::StoppedAndReported && ended.down.is_empty() {
                    self.failures = 0;
                    PAUSE_AFTER
                } else {
                    // A part that is killed at each stop is not stopped again soon.
                    let step = if ended.stop == Stop::Killed { FAILURES_LONG } else { 1 };
                    self.failures = self.failures.saturating_add(step);
                    let doubled = 2_u32.saturating_pow(self.failures.min(FAILURES_LONG) - 1);
                    PAUSE_AFTER_FAILURE.saturating_mul(doubled).min(PAUSE_MAX)
                }
            }
            // Nothing was stopped.
            Err(error) => {
                info!(why = chain(error), "no window");
                PAUSE_AFTER
            }
        };
        self.not_before = clock::since_boot(&self.paths).unwrap_or_default().saturating_add(pause);
    }
}
