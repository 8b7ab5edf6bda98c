//! Controller loop: one decision and action per step.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_protocol::bootstrap::{Bootstrap, Mode as Duty};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::Hello;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::report::Health;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::agent::{Agent, AgentError, Word};
use crate::attempt::{Attempt, AttemptError, Outcome};
use crate::backoff::{Backoff, LONGEST};
use crate::backup_loop::Serving;
use crate::bootstrap_env;
use crate::bootstrap_file::{self, BootstrapFileError};
use crate::clock;
use crate::commands::upgrade;
use crate::decide::{Cause, Claim, Doubt, Next, SetUp, Situation, decide};
use crate::own_program;
use crate::paths::Paths;
use crate::restart;
use crate::root_disk;
use crate::state::{self, Mode, Schema, State};
use crate::status_file;
use crate::update::Own;

/// In set-up mode: how soon to check again whether a person repaired it.
const RECHECK: Duration = Duration::from_secs(15);

/// The limits of the hello interval that an agent may request.
const HELLO_SECONDS: std::ops::RangeInclusive<u32> = 1..=3600;

/// Why a bootstrap token was not traded.
#[derive(Debug, thiserror::Error)]
enum ClaimError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    BootstrapFile(#[from] BootstrapFileError),
    #[error(transparent)]
    Attempt(#[from] AttemptError),
}

pub struct Control {
    paths: Paths,
    source_address: Option<IpAddr>,
    boot_id: String,
    /// What this program hashes to.
    build: Option<Sha256Text>,
    /// This program, which may be exchanged.
    own: Own,
    agent: Option<(String, Pin, Agent)>,
    backoff: Backoff,
    doubt: Option<Doubt>,
    state: State,
    health: Health,
    restart: restart::Watch,
    root_disk: root_disk::Watch,
    /// Receives each hello that was answered.
    serving: watch::Sender<Option<Serving>>,
}

impl Control {
    /// A controller that has not checked anything yet.
    pub fn new(
        paths: Paths,
        source_address: Option<IpAddr>,
        boot_id: String,
        serving: watch::Sender<Option<Serving>>,
    ) -> Self {
        let state = State {
            schema: Schema::V1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: Mode::SetUp,
            since: clock::now(),
            problem: None,
            endpoint: None,
            guest: None,
            last_hello_at: None,
        };
        let build = own_program::sha256();
        Self {
            own: Own::new(&paths, build.clone()),
            paths,
            source_address,
            boot_id,
            build,
            agent: None,
            backoff: Backoff::default(),
            doubt: None,
            state,
            health: Health::Well,
            restart: restart::Watch::default(),
            root_disk: root_disk::Watch::default(),
            serving,
        }
    }

    /// One step. Returns how long to wait before the next.
    pub async fn step(&mut self) -> Duration {
        let seen = Situation {
            bootstrap: bootstrap_file::load(&self.paths),
            bootstrap_token: bootstrap_env::find(&self.paths),
            attempt: Attempt::load(&self.paths),
        };
        match decide(seen, self.doubt) {
            Next::SetUp(reason) => self.set_up(&reason),
            Next::Claim(claim) => self.claim(claim).await,
            Next::Serve(bootstrap, duty) => self.serve(&bootstrap, duty).await,
        }
    }

    fn set_up(&mut self, reason: &SetUp) -> Duration {
        self.state.endpoint = None;
        self.state.guest = None;
        self.publish(Mode::SetUp, Some(chain(reason)));
        RECHECK
    }

    async fn claim(&mut self, claim: Claim) -> Duration {
        self.state.endpoint = Some(claim.bootstrap_token.endpoint.clone());
        self.state.guest = None;
        match self.redeem(claim).await {
            Ok(bootstrap) => {
                info!(guest = %bootstrap.guest, customer = %bootstrap.customer, "claim accepted: token stored");
                self.backoff.reset();
                self.doubt = None;
                Duration::ZERO
            }
            Err(error) => {
                self.publish(Mode::Claiming, Some(chain(&error)));
                self.wait()
            }
        }
    }

    async fn redeem(&mut self, claim: Claim) -> Result<Bootstrap, ClaimError> {
        let Claim { bootstrap_token, attempt, earlier } = claim;
        let source_address = self.source_address;
        let mut attempt = match attempt {
            Some(attempt) => attempt,
            None => {
                let attempt = Attempt::begin(&bootstrap_token)?;
                attempt.store(&self.paths)?;
                attempt
            }
        };
        let agent = Agent::new(&bootstrap_token.endpoint, bootstrap_token.pin, source_address)?;
        match agent.claim(&bootstrap_token.claim, attempt.redeemer()).await {
            Ok(bootstrap) => {
                bootstrap_file::store(&self.paths, &bootstrap, earlier)?;
                attempt.outcome = Outcome::Redeemed;
                attempt.store(&self.paths)?;
                Ok(bootstrap)
            }
            Err(error) => {
                if let AgentError::Refused { problem } = &error
                    && is_final(problem.code)
                {
                    attempt.outcome = Outcome::Refused(problem.to_string());
                    attempt.store(&self.paths)?;
                }
                Err(error.into())
            }
        }
    }

    async fn serve(&mut self, bootstrap: &Bootstrap, duty: Duty) -> Duration {
        self.state.endpoint = Some(bootstrap.endpoint.clone());
        self.state.guest = Some(bootstrap.guest);
        logging::set_guest(bootstrap.guest, bootstrap.customer.clone());
        let word = if duty == Duty::Serve { Word::MoreFollow } else { Word::Last };
        match self.hello(bootstrap, word).await {
            Ok(again_in_s) => {
                self.backoff.reset();
                self.doubt = None;
                self.state.last_hello_at = Some(clock::now());
                self.publish(Mode::Serving, None);
                self.serving.send_replace(Some(Serving { bootstrap: bootstrap.clone(), mode: duty }));
                if duty == Duty::Serve {
                    self.exchange(bootstrap, again_in_s).await;
                }
                Duration::from_secs(u64::from(again_in_s.clamp(*HELLO_SECONDS.start(), *HELLO_SECONDS.end())))
            }
            Err(error) => {
                let doubt = cause(&error).map(|cause| Doubt { token: bootstrap.token.hash(), cause });
                let news = doubt != self.doubt;
                self.doubt = doubt;
                self.publish(Mode::Serving, Some(chain(&error)));
                // With a new bootstrap token present, the next check decides for it without a pause.
                if news { Duration::from_millis(100) } else { self.wait() }
            }
        }
    }

    /// Exchanges this program when it should be; then this is the last line of it that runs.
    async fn exchange(&mut self, bootstrap: &Bootstrap, again_in_s: u32) {
        let (paths, Some((_, _, agent))) = (&self.paths, &self.agent) else { return };
        if let Err(error) = self.own.look(paths, (agent, &bootstrap.token), again_in_s).await {
            self.publish(Mode::Serving, Some(chain(&error)));
        }
    }

    async fn hello(&mut self, bootstrap: &Bootstrap, word: Word) -> Result<u32, AgentError> {
        let status = status_file::load(&self.paths);
        let hello = Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            health: if self.health == Health::Well { status.health() } else { self.health },
            unwell: status.unwell(),
            upgrade: upgrade::load(&self.paths).last,
            restart_needed: self.restart.needed(&self.paths),
            root_disk: self.root_disk.latest(&self.paths),
            boot_id: self.boot_id.clone(),
            build: self.build.clone(),
        };
        let agent = self.agent(&bootstrap.endpoint, bootstrap.pin)?;
        Ok(agent.hello(&bootstrap.token, &hello, word).await?.again_in_s)
    }

    /// The connection is kept as long as endpoint and pin stay: a handshake for every hello would cost the agent more
    /// than the hello.
    fn agent(&mut self, endpoint: &str, pin: Pin) -> Result<&Agent, AgentError> {
        let bootstrap = self.agent.take().filter(|(at, known, _)| at == endpoint && *known == pin);
        let bootstrap = match bootstrap {
            Some(bootstrap) => bootstrap,
            None => (endpoint.to_owned(), pin, Agent::new(endpoint, pin, self.source_address)?),
        };
        Ok(&self.agent.insert(bootstrap).2)
    }

    fn wait(&mut self) -> Duration {
        let mut dice = [0; 8];
        match getrandom::fill(&mut dice) {
            Ok(()) => self.backoff.next(u64::from_ne_bytes(dice)),
            Err(error) => {
                warn!(%error, "no random numbers for the backoff; waiting for the maximum");
                LONGEST
            }
        }
    }

    /// Stores the state, and logs what changed. A folder that cannot be written to is also reported to the agent.
    fn publish(&mut self, mode: Mode, problem: Option<String>) {
        if mode != self.state.mode {
            self.state.since = clock::now();
        }
        if (mode, &problem) != (self.state.mode, &self.state.problem) {
            match &problem {
                Some(problem) => warn!(mode = ?mode, problem, "this guest needs attention"),
                None => info!(mode = ?mode, endpoint = self.state.endpoint, "well"),
            }
        }
        self.state.mode = mode;
        self.state.problem = problem;
        self.health = match state::store(&self.paths, &self.state) {
            Ok(()) => Health::Well,
            Err(error) => {
                warn!(error = chain(&error), "cannot write the state file for `guestd status`");
                Health::Unwell
            }
        };
    }
}

/// Whether asking again with the same claim is pointless.
const fn is_final(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ClaimRefused
            | ErrorCode::ClaimTwice
            | ErrorCode::Frozen
            | ErrorCode::Forbidden
            | ErrorCode::IdempotencyMismatch
            | ErrorCode::NotYours
            | ErrorCode::Unauthenticated
    )
}

/// What an error says about the kept bootstrap. An agent that is busy or unwell says nothing about it.
fn cause(error: &AgentError) -> Option<Cause> {
    match error {
        AgentError::OtherServer { .. } => Some(Cause::Rejected),
        AgentError::Unreachable { .. } => Some(Cause::Silent),
        _ if error.code() == Some(ErrorCode::Unauthenticated) => Some(Cause::Rejected),
        _ => None,
    }
}
