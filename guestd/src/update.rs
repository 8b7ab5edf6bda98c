//! Replacement of this program by another version.
//!
//! ```text
//! asked ─ decided ─ lock of stacks taken ─ fetched beside ours, hashed ─ tried ─ ours kept ─ timer armed ─ renamed over ours ─ started
//!                    (before the rename everything is as it was, whatever dies)                       │
//!                                                                                    confirmed ───────┤ disarmed
//!                                                        taken back by itself, or by the timer ───────┘ ours is there again
//! ```
//!
//! What comes in: what the agent says this guest should run, and what becomes of a build on trial. What goes out: nothing,
//! or this process is another program. The way back is the previous program, inside the guest: a timer runs it, and it
//! puts itself back unless the agent confirmed the new one. So a build that crashes, hangs or ends is taken back, also
//! after a restart of the guest, and nothing that was written meanwhile is lost. Deliberately absent: a replacement while
//! stacks are stopped for a backup, one by an older version, and the verdict, which is the agent's.

mod decide;
mod download;
pub mod exchange;
mod replace;
pub mod take_back;
mod timer;

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::desired::{TrialVerdict, trial_s};
use holdfast_protocol::secret::Secret;
use tracing::{debug, info};

use crate::agent::{Agent, AgentError};
use crate::file::FileError;
use crate::paths::Paths;
use crate::program::ProgramError;
use crate::quiesce::lock::{self, LockResult};
use crate::quiesce::marker::Marker;
use decide::Decision;
use exchange::{Exchange, ExchangeError, ExchangeState};
use timer::TimerError;

/// Why this program stays.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// It runs from elsewhere than its guest.
    #[error("this program is not inside its guest: it was not replaced")]
    Elsewhere,
    /// A backup is running, or stacks did not come back from one.
    #[error("stacks are stopped for a backup: the controller is replaced when they run again")]
    WindowOpen,
    /// The request is for an older one.
    #[error("controller {target} is not newer than {runs}, which runs: it was not replaced")]
    Older {
        /// The requested version.
        target: String,
        runs: &'static str,
    },
    /// No controller is that large.
    #[error("a controller of {bytes} bytes is too large: nothing was fetched")]
    TooLarge {
        /// How many are said.
        bytes: u64,
    },
    #[error("the controller cannot be fetched")]
    Agent(#[from] AgentError),
    /// What came is not what was named.
    #[error("the agent sent another controller than it announced: {what}; it was discarded")]
    OtherBytes {
        /// How it differs.
        what: &'static str,
    },
    #[error(transparent)]
    File(#[from] FileError),
    /// It does not run here.
    #[error("the fetched controller does not run here; it was discarded")]
    DoesNotRun(#[source] ProgramError),
    /// It says that it is another.
    #[error(
        "the controller that was fetched calls itself {said:?}, and not guestd {target}; it was discarded"
    )]
    OtherVersion {
        /// What it says.
        said: String,
        /// What was signed.
        target: String,
    },
    /// Nothing would put this one back.
    #[error("nothing was replaced, since nothing would put this controller back")]
    Timer(#[from] TimerError),
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the previous controller did not come back")]
    TakeBack(#[source] take_back::TakeBackError),
    /// It cannot take our place.
    #[error("the other controller could not be started; this one continues")]
    Start(#[source] std::io::Error),
}

/// This program: its path, its hash and its tries.
pub struct Own {
    /// Its path. It is looked up at the start, since the kernel shows another name for a running program whose file was
    /// replaced.
    program: Option<PathBuf>,
    /// Its hash.
    build: Option<Sha256Text>,
    /// The operation in which a replacement was tried, and how often.
    tried: Option<(OperationId, u32)>,
}

impl Own {
    /// The path of this program, when it is inside its guest.
    pub fn new(paths: &Paths, build: Option<Sha256Text>) -> Self {
        let program = std::env::current_exe().ok().filter(|path| path.starts_with(paths.root()));
        Self { program, build, tried: None }
    }

    /// Asks what should run, and runs it. Returns when this program stays.
    pub async fn look(
        &mut self,
        paths: &Paths,
        (agent, token): (&Agent, &Secret),
        again_in_s: u32,
    ) -> Result<(), UpdateError> {
        let last = self.last_exchange(paths).await?;
        let view = match agent.desired(token, last.as_ref()).await {
            Ok(view) => view,
            // An older agent, or one that is busy: the next hello asks again.
            Err(error) => {
                debug!(error = chain(&error), "desired controller is unknown");
                return Ok(());
            }
        };
        if let Some(exchange) = last.as_ref().filter(|last| last.state == ExchangeState::OnTrial) {
            return settle(paths, exchange, view.trial).await;
        }
        let (turn, wanted) = match decide::decide(view, self.build.as_ref(), self.tried, last.as_ref()) {
            Decision::Stay => return Ok(()),
            Decision::Refuse(error) => return Err(error),
            Decision::Exchange(turn, wanted) => (turn, wanted),
        };
        let program = self.program.as_deref().ok_or(UpdateError::Elsewhere)?;
        // Held until the new program runs: a process that would stop stacks waits, and then does it with the new
        // program.
        let LockResult::Acquired(_held) = lock::take(paths) else { return Err(UpdateError::WindowOpen) };
        if Marker::is_there(paths) {
            return Err(UpdateError::WindowOpen);
        }
        let times = self.tried.filter(|(of, _)| *of == turn).map_or(0, |(_, times)| times);
        self.tried = Some((turn, times + 1));
        info!(version = wanted.version.as_str(), "replacing the controller");
        let new_path = replace::new_path(program);
        let fetched = download::fetch(agent, token, &wanted, &new_path).await;
        let tried = match fetched {
            Ok(()) => replace::try_out(&new_path, wanted.version.as_str()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = tried {
            // What is left of the file does no harm: the next download overwrites it.
            let _ = std::fs::remove_file(&new_path);
            return Err(error);
        }
        let exchange = Exchange::new(turn, wanted.sha256, program.to_owned(), ExchangeState::OnTrial);
        let trial = Duration::from_secs(trial_s(again_in_s));
        replace::put_in(paths, (program, &new_path), &exchange, trial).await.map(|never| match never {})
    }

    /// The last exchange, as it concerns this program. One that never came to its end, or was undone by a person, is
    /// forgotten; one whose way back was begun is gone to its end.
    async fn last_exchange(&self, paths: &Paths) -> Result<Option<Exchange>, UpdateError> {
        let Some(exchange) = Exchange::load(paths)? else { return Ok(None) };
        let runs_it = self.build.as_ref() == Some(&exchange.sha256);
        match exchange.state {
            ExchangeState::OnTrial if runs_it || self.build.is_none() => Ok(Some(exchange)),
            ExchangeState::OnTrial => {
                exchange::clear(paths).await;
                Ok(None)
            }
            ExchangeState::TakenBack if runs_it => Err(take_back::become_old(paths, &exchange).await),
            ExchangeState::TakenBack => Ok(Some(exchange)),
        }
    }
}

/// Does what the agent says of the build on trial, which is this program.
async fn settle(
    paths: &Paths,
    exchange: &Exchange,
    verdict: Option<TrialVerdict>,
) -> Result<(), UpdateError> {
    match verdict {
        Some(TrialVerdict::Confirmed) => {
            exchange::clear(paths).await;
            info!("the agent confirmed this controller: it stays");
            Ok(())
        }
        Some(TrialVerdict::TakeBack) => Err(take_back::become_old(paths, exchange).await),
        Some(TrialVerdict::Undecided) | None => Ok(()),
    }
}
