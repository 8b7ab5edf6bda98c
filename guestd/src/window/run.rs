//! Runs one window: asks, looks, decides, does, and has the last word.
//!
//! It holds the turn from beginning to end. When it is dropped in between, marker and timer are there, and whoever dropped it
//! resumes.

use std::time::{Duration, Instant};

use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::window::{
    Canary, DownStack, Label, Quiesced, Released, WindowPhase, WindowRequest,
};
use holdfast_protocol::strict::chain;
use tracing::{info, warn};

use super::calls::{Answer, PAUSE, Windows, fresh_key};
use super::decide::{Next, Seen, Standing, Why, Wish, Word, deadline, decide};
use crate::agent::AgentError;
use crate::board::{self, Last};
use crate::clock;
use crate::failpoint::{Point, reached};
use crate::place::Place;
use crate::quiesce::canary;
use crate::quiesce::marker::Marker;
use crate::quiesce::mounts::{self, Mounts, class};
use crate::quiesce::resume::{self, Cleared, Tries};
use crate::quiesce::stop::{self, StopError};
use crate::quiesce::turn::{self, Asked, Turn};
use crate::quiesce::untold;
use crate::stacks::{Class, Stacks};
use crate::work::WorkError;

/// Tries of one call that was not answered.
const TRIES: u32 = 3;

/// How often own bound and wishes are looked at, while the agent is waited for.
const TICK: Duration = Duration::from_millis(500);

/// Between two questions, when the first was answered at once.
const PAUSE_BETWEEN: Duration = Duration::from_secs(1);

/// Why there was no window.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// Another process of ours has one, or resumes.
    #[error("another window is under way on this guest: `guestd status` shows it")]
    Taken,
    /// Whose turn it is cannot be told.
    #[error("{why}: nothing is stopped")]
    Turn { why: String },
    /// What was stopped before does not run yet.
    #[error("stacks of an earlier window do not run yet: `guestd resume` starts them")]
    Earlier,
    /// The clock.
    #[error("/proc/uptime cannot be read: without that clock nothing is stopped")]
    Clock,
    /// The agent would not have it.
    #[error("the agent gives no window")]
    Agent(#[from] AgentError),
    /// No key for the wish.
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
    pub place: &'a Place,
    pub windows: Windows<'a>,
    pub stacks: &'a Stacks,
    pub boot_id: &'a str,
    /// How often restarting is tried here; the timer and the next start go on after that.
    pub tries: Tries,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    pub id: OperationId,
    /// In words.
    pub why: String,
    /// Whether the agent was told that everything stood still, and heard it.
    pub told: Standing,
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
struct Course {
    id: OperationId,
    word: Word,
    standing: Standing,
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

/// Whether something that was said was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Yes,
    No,
}

impl Runner<'_> {
    /// Runs one.
    pub async fn run(&self, wish: &WindowRequest) -> Result<Ended, WindowError> {
        let turn = match turn::take(self.place) {
            Asked::Ours(turn) => turn,
            Asked::Taken => return Err(WindowError::Taken),
            Asked::Unknown(why) => return Err(WindowError::Turn { why }),
        };
        if Marker::is_there(self.place) {
            return Err(WindowError::Earlier);
        }
        turn::forget_wish(self.place);
        let begun = clock::since_boot(self.place).ok_or(WindowError::Clock)?;
        let id = self.ask(wish).await?;
        reached(Point::Asked);
        info!(window = %id, "a window is asked for");
        board::open(self.place, id, "waits for the guest's turn");
        let mut course = Course {
            id,
            word: Word::Silent(Duration::ZERO),
            standing: Standing::Running,
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
        let (why, down) = self.through(&mut course, &turn).await;
        Ok(self.end(course, why, down))
    }

    async fn ask(&self, wish: &WindowRequest) -> Result<OperationId, WindowError> {
        let key = fresh_key()?;
        let mut tries = 1;
        loop {
            match self.windows.ask(wish, &key).await {
                Ok(accepted) => return Ok(accepted.operation),
                Err(AgentError::Away { .. }) if tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// From the wish to the last word: why it ended, and what is down.
    async fn through(&self, course: &mut Course, turn: &Turn) -> (String, Vec<DownStack>) {
        loop {
            self.listen(course).await;
            match decide(self.seen(course)) {
                Next::Wait => {}
                Next::Quiesce => {
                    reached(Point::Granted);
                    if let Err(error) = self.quiesce(course).await {
                        if matches!(error, StopError::Killed { .. }) {
                            course.stop = Stop::Killed;
                        }
                        let why = chain(&error);
                        warn!(window = %course.id, why, "the window is called off");
                        let down = self.back(course, turn, self.settle_after(&error, course)).await;
                        return (why, down);
                    }
                    self.say_quiesced(course).await;
                }
                Next::SayQuiesced => self.say_quiesced(course).await,
                Next::Resume(why) => {
                    if why == Why::Captured {
                        reached(Point::Captured);
                    }
                    return (why.as_str().to_owned(), self.back(course, turn, resume::settle()).await);
                }
                Next::GiveUp(why) => {
                    self.give_up(course.id).await;
                    return (why.as_str().to_owned(), Vec::new());
                }
                Next::Over(why) => return (why.as_str().to_owned(), Vec::new()),
            }
        }
    }

    fn seen(&self, course: &Course) -> Seen {
        let now = clock::since_boot(self.place);
        let left = course.deadline.zip(now).map(|(deadline, now)| deadline.saturating_sub(now));
        // A marker that somebody else took away was resumed by somebody else.
        let taken = course.marker.is_some() && !Marker::is_there(self.place);
        let wish = if taken || turn::is_wished(self.place) { Wish::Resume } else { Wish::None };
        let waited = now.map_or(Duration::MAX, |now| now.saturating_sub(course.begun));
        let still_for =
            now.zip(course.still_since).map_or(Duration::ZERO, |(now, since)| now.saturating_sub(since));
        Seen { word: course.word, standing: course.standing, left, waited, still_for, wish }
    }

    /// Asks the agent how far it is, unless something here is more urgent.
    async fn listen(&self, course: &mut Course) {
        let asked_at = clock::since_boot(self.place);
        let urgent = async {
            loop {
                tokio::time::sleep(TICK).await;
                let seen = self.seen(course);
                if seen.wish == Wish::Resume
                    || (seen.left.is_none_or(|left| left.is_zero()) && course.deadline.is_some())
                {
                    return;
                }
            }
        };
        let begin = Instant::now();
        let answer = tokio::select! {
            answer = self.windows.look(course.id) => answer,
            () = urgent => return,
        };
        let news = self.hear(course, answer, asked_at);
        // An agent that answers at once, always the same, is not asked without a pause; one that held the call back was
        // the pause, and a change since would not be seen sooner by another.
        if news == News::None {
            tokio::time::sleep(PAUSE_BETWEEN.saturating_sub(begin.elapsed())).await;
        }
    }

    /// Takes an answer in.
    fn hear(&self, course: &mut Course, answer: Answer, asked_at: Option<Duration>) -> News {
        let (before, now) = (course.word, clock::since_boot(self.place));
        match answer {
            Answer::Says(view) if view.id == course.id => {
                course.heard = now.unwrap_or(course.heard);
                course.word = Word::Says(view.phase);
                course.label = view.label.or(course.label.take());
                if let (WindowPhase::Granted, None, Some(asked_at)) = (view.phase, course.deadline, asked_at)
                {
                    course.deadline = deadline(asked_at, view.bound_s, view.left_s, self.stacks.bound_max);
                }
            }
            Answer::Refuses(why) => {
                info!(why, "the agent refuses");
                course.word = Word::Refuses;
            }
            // Another window's answer is none.
            Answer::Says(_) => course.word = silent(course, now),
            Answer::Silent(why) => {
                info!(why, "the agent does not answer");
                course.word = silent(course, now);
            }
        }
        match course.word {
            Word::Silent(_) => News::None,
            word if word == before => News::None,
            _ => News::Some,
        }
    }

    async fn quiesce(&self, course: &mut Course) -> Result<(), StopError> {
        let volumes = match self.windows.storage().await {
            Ok(storage) => {
                let kept = mounts::remember(self.place, &storage.volumes);
                course.notes.extend(kept.err().map(|error| chain(&error)));
                storage.volumes
            }
            Err(error) => {
                course.notes.push(format!("this guest's volumes are not known: {}", chain(&error)));
                Vec::new()
            }
        };
        let running = stop::look(self.place, self.stacks, &volumes).await?;
        stop::could_start(self.place, &running)?;
        course.quiesced.canaries = self.canaries(&volumes, &mut course.notes);
        course.quiesced.stacks = running.iter().map(|running| running.stack.name.clone()).collect();
        let Some(deadline) = course.deadline else {
            return Err(StopError::NoTime { stack: "at all".to_owned() });
        };
        if !running.is_empty() {
            let marker = stop::marker(course.id, self.boot_id, deadline, &running);
            let marker = course.marker.insert(marker);
            board::open(self.place, course.id, "stacks are being stopped");
            stop::secure(self.place, marker).await?;
            course.still_since = clock::since_boot(self.place);
            stop::stop(self.place, marker, &running).await?;
        }
        course.standing = Standing::Still;
        board::open(self.place, course.id, "stacks stand still");
        Ok(())
    }

    fn canaries(&self, volumes: &[MountView], notes: &mut Vec<String>) -> Vec<Canary> {
        let mounts = match Mounts::read(self.place) {
            Ok(mounts) => mounts,
            Err(error) => {
                notes.push(chain(&error));
                return canary::write(self.place, &[]).0;
            }
        };
        let hot = volumes.iter().filter(|volume| class(volume) == Class::Hot && mounts.has(&volume.mount));
        let hot: Vec<_> = hot.map(|volume| volume.mount.clone()).collect();
        let (canaries, said) = canary::write(self.place, &hot);
        notes.extend(said);
        canaries
    }

    async fn say_quiesced(&self, course: &mut Course) {
        let asked_at = clock::since_boot(self.place);
        let answer = self.windows.quiesced(course.id, &course.quiesced).await;
        if matches!(answer, Answer::Says(_)) {
            course.standing = Standing::StillAndTold;
            reached(Point::QuiescedTold);
        }
        if self.hear(course, answer, asked_at) == News::None && course.standing == Standing::Still {
            tokio::time::sleep(PAUSE_BETWEEN).await;
        }
    }

    /// Starts what was stopped, then tells the agent. Should that not hear it, the controller tells it later.
    async fn back(&self, course: &mut Course, turn: &Turn, settle: Duration) -> Vec<DownStack> {
        let mut down = Vec::new();
        course.restarted = clock::since_boot(self.place);
        if let Some(marker) =
            course.marker.as_ref().filter(|_| course.still_since.is_some() || Marker::is_there(self.place))
        {
            board::open(self.place, course.id, "stacks are being started");
            // The agent hears at once what does not come up; it is tried on after that.
            let first = Tries(1);
            let resumed = resume::resume(self.place, marker, Some(turn), (settle, first), |down| {
                if down.is_empty() && course.up.is_none() {
                    course.up = clock::since_boot(self.place);
                }
                hear_down(self.place, down)
            })
            .await;
            down.clone_from(&resumed.down);
            course.notes.extend(resumed.notes);
            self.tell_released(course, &down).await;
            if resumed.cleared == Cleared::No && !down.is_empty() {
                let resumed = resume::resume(self.place, marker, Some(turn), (settle, self.tries), |down| {
                    hear_down(self.place, down);
                })
                .await;
                down = resumed.down;
                course.notes.extend(resumed.notes);
            }
        } else {
            self.tell_released(course, &down).await;
        }
        down
    }

    async fn tell_released(&self, course: &Course, down: &[DownStack]) {
        if course.standing == Standing::Running && down.is_empty() {
            return self.give_up(course.id).await;
        }
        let heard = self.persist(async || {
            let now = clock::since_boot(self.place);
            // Who came in our place, while we slept or hung, began before us.
            let begun_ms_ago = match untold::of(self.place, course.id) {
                Some(noted) => noted.begun_ms_ago(self.place),
                None => course.restarted.zip(now).and_then(|(then, now)| untold::ms_ago(then, now)),
            };
            let body = Released { guest: None, down: down.to_vec(), begun_ms_ago };
            self.windows.released(course.id, &body).await
        });
        match heard.await {
            Heard::Yes => untold::heard(self.place, course.id),
            Heard::No => untold::begins(self.place, course.id),
        }
    }

    async fn give_up(&self, id: OperationId) {
        match self.persist(async || self.windows.give_up(id).await).await {
            Heard::Yes => untold::heard(self.place, id),
            Heard::No => untold::is_over(self.place, id),
        }
    }

    /// Says something a few times, until it is heard.
    async fn persist(&self, say: impl AsyncFn() -> Answer) -> Heard {
        for tries in 1..=TRIES {
            match say().await {
                Answer::Silent(why) if tries < TRIES => {
                    info!(why, "the agent does not hear; once more");
                    tokio::time::sleep(PAUSE).await;
                }
                Answer::Silent(why) => warn!(why, "the agent was not told; it is told again and again"),
                Answer::Says(_) | Answer::Refuses(_) => return Heard::Yes,
            }
        }
        Heard::No
    }

    /// After a stop that failed, one may still be under way.
    fn settle_after(&self, error: &StopError, course: &Course) -> Duration {
        match (error, &course.marker) {
            (StopError::Stop { .. }, Some(marker)) => resume::settle_for_another(marker, Some(self.boot_id)),
            _ => resume::settle(),
        }
    }

    fn end(&self, course: Course, why: String, down: Vec<DownStack>) -> Ended {
        let up = course.up.or_else(|| clock::since_boot(self.place));
        let still = course.still_since.zip(up).map(|(from, to)| to.saturating_sub(from));
        let last = Last {
            id: course.id,
            ended_at: clock::now(),
            why: why.clone(),
            stacks: course.quiesced.stacks.clone(),
            still_ms: still.map_or(0, |still| u64::try_from(still.as_millis()).unwrap_or(u64::MAX)),
            label: course.label.clone(),
            notes: course.notes.clone(),
        };
        info!(window = %course.id, why, still_ms = last.still_ms, "the window is over");
        board::update(self.place, |told| {
            told.open = None;
            told.last = Some(last);
        });
        let Course { id, standing: told, label, notes, stop, .. } = course;
        Ended { id, why, told, label, down, notes, stop }
    }
}

fn hear_down(place: &Place, down: &[DownStack]) {
    board::update(place, |told| told.down = down.to_vec());
}

fn silent(course: &Course, now: Option<Duration>) -> Word {
    Word::Silent(now.map_or(Duration::MAX, |now| now.saturating_sub(course.heard)))
}
