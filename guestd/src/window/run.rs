//! Execution of one window.
//!
//! It holds the lock from beginning to end. When it is dropped in between, marker and timer exist, and the caller that
//! dropped it resumes.

use std::time::{Duration, Instant};

use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::window::{
    Canary, DownStack, Label, Quiesced, Released, WindowPhase, WindowRequest,
};
use tracing::{info, warn};

use super::calls::{Answer, PAUSE, Windows, fresh_key};
use super::decide::{AgentState, EndReason, Next, ResumeRequest, Situation, StackPhase, deadline, decide};
use crate::agent::AgentError;
use crate::clock;
use crate::failpoint::{Point, reached};
use crate::paths::Paths;
use crate::quiesce::canary;
use crate::quiesce::lock::{self, Lock, LockResult};
use crate::quiesce::marker::Marker;
use crate::quiesce::mounts::{self, Mounts, class};
use crate::quiesce::release_outbox;
use crate::quiesce::resume::{self, Cleared, Tries};
use crate::quiesce::stop::{self, StopError};
use crate::stacks::{Class, Stacks};
use crate::status_file::{self, LastWindow};
use crate::work::WorkError;

/// Tries of one call that was not answered.
const TRIES: u32 = 3;

/// How often its own bound and requests are checked, while it waits for the agent.
const TICK: Duration = Duration::from_millis(500);

/// Between two questions, when the first was answered at once.
const PAUSE_BETWEEN: Duration = Duration::from_secs(1);

/// Why there was no window.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// Another guestd process has one open, or resumes.
    #[error("another window is open on this guest: see `guestd status`")]
    Taken,
    /// The state of the lock is unknown.
    #[error("{why}: nothing is stopped")]
    Lock { why: String },
    /// What was stopped before does not run yet.
    #[error("stacks of an earlier window are not running yet: run `guestd resume`")]
    Earlier,
    #[error("/proc/uptime cannot be read: nothing is stopped without that clock")]
    Clock,
    /// The agent would not have it.
    #[error("the agent refused the window")]
    Agent(#[from] AgentError),
    /// No key for the request.
    #[error(transparent)]
    Key(#[from] WorkError),
}

/// Whether an answer said something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    None,
    Some,
}

/// Where a window is run.
pub struct Runner<'a> {
    pub paths: &'a Paths,
    pub windows: Windows<'a>,
    pub stacks: &'a Stacks,
    pub boot_id: &'a str,
    /// How often restarting is tried here; the timer and the next start go on after that.
    pub tries: Tries,
}

/// How it ended.
#[derive(Debug)]
pub struct WindowEnd {
    pub id: OperationId,
    pub why: String,
    /// Whether the report that everything was stopped reached the agent.
    pub status: StackPhase,
    pub label: Option<Label>,
    pub down: Vec<DownStack>,
    pub notes: Vec<String>,
    pub stop: Stop,
}

/// How what was stopped took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ended by itself, or was not stopped.
    Clean,
    /// Some of it was killed.
    Killed,
}

/// What is known of a window while it runs.
struct WindowState {
    id: OperationId,
    agent: AgentState,
    phase: StackPhase,
    begun: Duration,
    heard: Duration,
    deadline: Option<Duration>,
    still_since: Option<Duration>,
    label: Option<Label>,
    marker: Option<Marker>,
    quiesced: Quiesced,
    notes: Vec<String>,
    stop: Stop,
    /// When what was stopped began to be started.
    restarted: Option<Duration>,
    /// When all of it was first seen to run.
    up: Option<Duration>,
}

/// Whether a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    Yes,
    No,
}

impl Runner<'_> {
    pub async fn run(&self, request: &WindowRequest) -> Result<WindowEnd, WindowError> {
        let lock = match lock::take(self.paths) {
            LockResult::Acquired(lock) => lock,
            LockResult::Taken => return Err(WindowError::Taken),
            LockResult::Unknown(why) => return Err(WindowError::Lock { why }),
        };
        if Marker::is_there(self.paths) {
            return Err(WindowError::Earlier);
        }
        lock::clear_resume_request(self.paths);
        let begun = clock::since_boot(self.paths).ok_or(WindowError::Clock)?;
        let id = self.ask(request).await?;
        reached(Point::Requested);
        info!(window = %id, "requesting a window");
        status_file::open(self.paths, id, "waiting for the grant");
        let mut state = WindowState {
            id,
            agent: AgentState::Silent(Duration::ZERO),
            phase: StackPhase::Running,
            begun,
            heard: begun,
            deadline: None,
            still_since: None,
            label: None,
            marker: None,
            quiesced: Quiesced::default(),
            notes: Vec::new(),
            stop: Stop::Clean,
            restarted: None,
            up: None,
        };
        let (why, down) = self.through(&mut state, &lock).await;
        Ok(self.end(state, why, down))
    }

    async fn ask(&self, request: &WindowRequest) -> Result<OperationId, WindowError> {
        let key = fresh_key()?;
        let mut tries = 1;
        loop {
            match self.windows.ask(request, &key).await {
                Ok(accepted) => return Ok(accepted.operation),
                Err(AgentError::Unreachable { .. }) if tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// From the request to the last message: why it ended, and what is down.
    async fn through(&self, state: &mut WindowState, lock: &Lock) -> (String, Vec<DownStack>) {
        loop {
            self.listen(state).await;
            match decide(self.seen(state)) {
                Next::Wait => {}
                Next::Quiesce => {
                    reached(Point::Granted);
                    if let Err(error) = self.quiesce(state).await {
                        if matches!(error, StopError::Killed { .. }) {
                            state.stop = Stop::Killed;
                        }
                        let why = chain(&error);
                        warn!(window = %state.id, why, "window cancelled");
                        let down = self.back(state, lock, self.settle_after(&error, state)).await;
                        return (why, down);
                    }
                    self.report_quiesced(state).await;
                }
                Next::ReportQuiesced => self.report_quiesced(state).await,
                Next::Resume(why) => {
                    if why == EndReason::Captured {
                        reached(Point::Captured);
                    }
                    return (why.as_str().to_owned(), self.back(state, lock, resume::settle()).await);
                }
                Next::GiveUp(why) => {
                    self.give_up(state.id).await;
                    return (why.as_str().to_owned(), Vec::new());
                }
                Next::Over(why) => return (why.as_str().to_owned(), Vec::new()),
            }
        }
    }

    fn seen(&self, state: &WindowState) -> Situation {
        let now = clock::since_boot(self.paths);
        let left = state.deadline.zip(now).map(|(deadline, now)| deadline.saturating_sub(now));
        // A marker that another process removed was also resumed by that process.
        let taken = state.marker.is_some() && !Marker::is_there(self.paths);
        let request = if taken || lock::resume_requested(self.paths) {
            ResumeRequest::Resume
        } else {
            ResumeRequest::None
        };
        let waited = now.map_or(Duration::MAX, |now| now.saturating_sub(state.begun));
        let stopped_for =
            now.zip(state.still_since).map_or(Duration::ZERO, |(now, since)| now.saturating_sub(since));
        Situation { agent: state.agent, phase: state.phase, left, waited, stopped_for, request }
    }

    /// Asks the agent for the phase, unless something here is more urgent.
    async fn listen(&self, state: &mut WindowState) {
        let asked_at = clock::since_boot(self.paths);
        let urgent = async {
            loop {
                tokio::time::sleep(TICK).await;
                let seen = self.seen(state);
                if seen.request == ResumeRequest::Resume
                    || (seen.left.is_none_or(|left| left.is_zero()) && state.deadline.is_some())
                {
                    return;
                }
            }
        };
        let begin = Instant::now();
        let answer = tokio::select! {
            answer = self.windows.look(state.id) => answer,
            () = urgent => return,
        };
        let news = self.read_answer(state, answer, asked_at);
        // An agent that answers at once with no change is queried again only after a pause. If the agent held the call
        // open, that was the pause, and another call would not show a change sooner.
        if news == News::None {
            tokio::time::sleep(PAUSE_BETWEEN.saturating_sub(begin.elapsed())).await;
        }
    }

    /// Takes an answer in.
    fn read_answer(&self, state: &mut WindowState, answer: Answer, asked_at: Option<Duration>) -> News {
        let (before, now) = (state.agent, clock::since_boot(self.paths));
        match answer {
            Answer::Says(view) if view.id == state.id => {
                state.heard = now.unwrap_or(state.heard);
                state.agent = AgentState::Phase(view.phase);
                state.label = view.label.or(state.label.take());
                if let (WindowPhase::Granted, None, Some(asked_at)) = (view.phase, state.deadline, asked_at) {
                    state.deadline = deadline(asked_at, view.bound_s, view.left_s, self.stacks.bound_max);
                }
            }
            Answer::Refuses(why) => {
                info!(why, "agent refused");
                state.agent = AgentState::Refuses;
            }
            // Another window's answer is none.
            Answer::Says(_) => state.agent = silent(state, now),
            Answer::Silent(why) => {
                info!(why, "agent does not answer");
                state.agent = silent(state, now);
            }
        }
        match state.agent {
            AgentState::Silent(_) => News::None,
            agent if agent == before => News::None,
            _ => News::Some,
        }
    }

    async fn quiesce(&self, state: &mut WindowState) -> Result<(), StopError> {
        let volumes = match self.windows.storage().await {
            Ok(storage) => {
                let kept = mounts::remember(self.paths, &storage.volumes);
                state.notes.extend(kept.err().map(|error| chain(&error)));
                storage.volumes
            }
            Err(error) => {
                state.notes.push(format!("the volumes of this guest are unknown: {}", chain(&error)));
                Vec::new()
            }
        };
        let running = stop::look(self.paths, self.stacks, &volumes).await?;
        stop::could_start(self.paths, &running)?;
        state.quiesced.canaries = self.canaries(&volumes, &mut state.notes);
        state.quiesced.stacks = running.iter().map(|running| running.stack.name.clone()).collect();
        let Some(deadline) = state.deadline else {
            return Err(StopError::NoTime { stack: "at all".to_owned() });
        };
        if !running.is_empty() {
            let marker = stop::marker(state.id, self.boot_id, deadline, &running);
            let marker = state.marker.insert(marker);
            status_file::open(self.paths, state.id, "stacks are being stopped");
            stop::secure(self.paths, marker).await?;
            state.still_since = clock::since_boot(self.paths);
            stop::stop(self.paths, marker, &running).await?;
        }
        state.phase = StackPhase::Stopped;
        status_file::open(self.paths, state.id, "stacks are stopped");
        Ok(())
    }

    fn canaries(&self, volumes: &[MountView], notes: &mut Vec<String>) -> Vec<Canary> {
        let mounts = match Mounts::read(self.paths) {
            Ok(mounts) => mounts,
            Err(error) => {
                notes.push(chain(&error));
                return canary::write(self.paths, &[]).0;
            }
        };
        let hot = volumes.iter().filter(|volume| class(volume) == Class::Hot && mounts.has(&volume.mount));
        let hot: Vec<_> = hot.map(|volume| volume.mount.clone()).collect();
        let (canaries, said) = canary::write(self.paths, &hot);
        notes.extend(said);
        canaries
    }

    async fn report_quiesced(&self, state: &mut WindowState) {
        let asked_at = clock::since_boot(self.paths);
        let answer = self.windows.quiesced(state.id, &state.quiesced).await;
        if matches!(answer, Answer::Says(_)) {
            state.phase = StackPhase::StoppedAndReported;
            reached(Point::QuiescedReported);
        }
        if self.read_answer(state, answer, asked_at) == News::None && state.phase == StackPhase::Stopped {
            tokio::time::sleep(PAUSE_BETWEEN).await;
        }
    }

    /// Starts what was stopped, then notifies the agent. If the agent does not receive it, the controller reports it
    /// later.
    async fn back(&self, state: &mut WindowState, lock: &Lock, settle: Duration) -> Vec<DownStack> {
        let mut down = Vec::new();
        state.restarted = clock::since_boot(self.paths);
        if let Some(marker) =
            state.marker.as_ref().filter(|_| state.still_since.is_some() || Marker::is_there(self.paths))
        {
            status_file::open(self.paths, state.id, "stacks are being started");
            // The agent is notified at once of what does not come up; the tries continue after that.
            let first = Tries(1);
            let resumed = resume::resume(self.paths, marker, Some(lock), (settle, first), |down| {
                if down.is_empty() && state.up.is_none() {
                    state.up = clock::since_boot(self.paths);
                }
                note_down(self.paths, down)
            })
            .await;
            down.clone_from(&resumed.down);
            state.notes.extend(resumed.notes);
            self.report_released(state, &down).await;
            if resumed.cleared == Cleared::No && !down.is_empty() {
                let resumed = resume::resume(self.paths, marker, Some(lock), (settle, self.tries), |down| {
                    note_down(self.paths, down);
                })
                .await;
                down = resumed.down;
                state.notes.extend(resumed.notes);
            }
        } else {
            self.report_released(state, &down).await;
        }
        down
    }

    async fn report_released(&self, state: &WindowState, down: &[DownStack]) {
        if state.phase == StackPhase::Running && down.is_empty() {
            return self.give_up(state.id).await;
        }
        let heard = self.persist(async || {
            let now = clock::since_boot(self.paths);
            // Who came in our place, while we slept or hung, began before us.
            let begun_ms_ago = match release_outbox::of(self.paths, state.id) {
                Some(noted) => noted.begun_ms_ago(self.paths),
                None => state.restarted.zip(now).and_then(|(then, now)| release_outbox::ms_ago(then, now)),
            };
            let body = Released { guest: None, down: down.to_vec(), begun_ms_ago };
            self.windows.released(state.id, &body).await
        });
        match heard.await {
            Delivery::Yes => release_outbox::delivered(self.paths, state.id),
            Delivery::No => release_outbox::note_start(self.paths, state.id),
        }
    }

    async fn give_up(&self, id: OperationId) {
        match self.persist(async || self.windows.give_up(id).await).await {
            Delivery::Yes => release_outbox::delivered(self.paths, id),
            Delivery::No => release_outbox::note_end(self.paths, id),
        }
    }

    /// Sends a message a few times, until it is delivered.
    async fn persist(&self, say: impl AsyncFn() -> Answer) -> Delivery {
        for tries in 1..=TRIES {
            match say().await {
                Answer::Silent(why) if tries < TRIES => {
                    info!(why, "release not acknowledged, retrying");
                    tokio::time::sleep(PAUSE).await;
                }
                Answer::Silent(why) => warn!(why, "release not acknowledged, queued for later"),
                Answer::Says(_) | Answer::Refuses(_) => return Delivery::Yes,
            }
        }
        Delivery::No
    }

    /// After a stop that failed, one may still be under way.
    fn settle_after(&self, error: &StopError, state: &WindowState) -> Duration {
        match (error, &state.marker) {
            (StopError::Stop { .. }, Some(marker)) => resume::settle_for_another(marker, Some(self.boot_id)),
            _ => resume::settle(),
        }
    }

    fn end(&self, state: WindowState, why: String, down: Vec<DownStack>) -> WindowEnd {
        let up = state.up.or_else(|| clock::since_boot(self.paths));
        let still = state.still_since.zip(up).map(|(from, to)| to.saturating_sub(from));
        let last = LastWindow {
            id: state.id,
            ended_at: clock::now(),
            why: why.clone(),
            stacks: state.quiesced.stacks.clone(),
            stopped_ms: still.map_or(0, |still| u64::try_from(still.as_millis()).unwrap_or(u64::MAX)),
            label: state.label.clone(),
            notes: state.notes.clone(),
        };
        info!(window = %state.id, why, stopped_ms = last.stopped_ms, "window ended");
        status_file::update(self.paths, |status| {
            status.open = None;
            status.last = Some(last);
        });
        let WindowState { id, phase: status, label, notes, stop, .. } = state;
        WindowEnd { id, why, status, label, down, notes, stop }
    }
}

fn note_down(paths: &Paths, down: &[DownStack]) {
    status_file::update(paths, |status| status.down = down.to_vec());
}

fn silent(state: &WindowState, now: Option<Duration>) -> AgentState {
    AgentState::Silent(now.map_or(Duration::MAX, |now| now.saturating_sub(state.heard)))
}
