//! The controller's loop, one step at a time: look, decide, do, say how it stands, tell how long to wait.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_protocol::bootstrap::{Bootstrap, Mode as Duty};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::local::Hello;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::report::Health;
use holdfast_protocol::strict::chain;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::agent::{Agent, AgentError, Word};
use crate::attempt::{Attempt, AttemptError, Outcome};
use crate::backoff::{Backoff, LONGEST};
use crate::board;
use crate::clock;
use crate::decide::{Cause, Claim, Doubt, Next, Seen, SetUp, decide};
use crate::keeper::Serving;
use crate::kept::{self, KeptError};
use crate::own_program;
use crate::people::upgrade;
use crate::place::Place;
use crate::restart;
use crate::state::{self, Mode, Schema, State};
use crate::ticket;
use crate::update::Own;

/// In set-up mode: how soon to look again whether a person mended it.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// An agent may ask for a hello this often at most, and this seldom.
const HELLO_SECONDS: std::ops::RangeInclusive<u32> = 1..=3600;

/// Why a ticket was not traded.
#[derive(Debug, thiserror::Error)]
enum TradeError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Kept(#[from] KeptError),
    #[error(transparent)]
    Attempt(#[from] AttemptError),
}

/// The controller.
pub struct Control {
    place: Place,
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
    /// Hears of each hello that was answered.
    serving: watch::Sender<Option<Serving>>,
}

impl Control {
    /// A controller that has not looked yet.
    pub fn new(
        place: Place,
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
            own: Own::new(&place, build.clone()),
            place,
            source_address,
            boot_id,
            build,
            agent: None,
            backoff: Backoff::default(),
            doubt: None,
            state,
            health: Health::Well,
            restart: restart::Watch::default(),
            serving,
        }
    }

    /// One step. Tells how long to wait before the next.
    pub async fn step(&mut self) -> Duration {
        let seen = Seen {
            kept: kept::load(&self.place),
            ticket: ticket::find(&self.place),
            attempt: Attempt::load(&self.place),
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
        self.tell(Mode::SetUp, Some(chain(reason)));
        LOOK_AGAIN
    }

    async fn claim(&mut self, claim: Claim) -> Duration {
        self.state.endpoint = Some(claim.ticket.endpoint.clone());
        self.state.guest = None;
        match self.trade(claim).await {
            Ok(bootstrap) => {
                info!(guest = %bootstrap.guest, customer = %bootstrap.customer, "the agent gave this guest its token");
                self.backoff.reset();
                self.doubt = None;
                Duration::ZERO
            }
            Err(error) => {
                self.tell(Mode::Claiming, Some(chain(&error)));
                self.wait()
            }
        }
    }

    async fn trade(&mut self, claim: Claim) -> Result<Bootstrap, TradeError> {
        let Claim { ticket, attempt, earlier } = claim;
        let source_address = self.source_address;
        let mut attempt = match attempt {
            Some(attempt) => attempt,
            None => {
                let attempt = Attempt::begin(&ticket)?;
                attempt.store(&self.place)?;
                attempt
            }
        };
        let agent = Agent::new(&ticket.endpoint, ticket.pin, source_address)?;
        match agent.claim(&ticket.claim, attempt.redeemer()).await {
            Ok(bootstrap) => {
                kept::store(&self.place, &bootstrap, earlier)?;
                attempt.outcome = Outcome::Traded;
                attempt.store(&self.place)?;
                Ok(bootstrap)
            }
            Err(error) => {
                if let AgentError::Refused { problem } = &error
                    && is_final(problem.code)
                {
                    attempt.outcome = Outcome::Refused(problem.to_string());
                    attempt.store(&self.place)?;
                }
                Err(error.into())
            }
        }
    }

    async fn serve(&mut self, bootstrap: &Bootstrap, duty: Duty) -> Duration {
        self.state.endpoint = Some(bootstrap.endpoint.clone());
        self.state.guest = Some(bootstrap.guest);
        let word = if duty == Duty::Serve { Word::MoreFollow } else { Word::Last };
        match self.hello(bootstrap, word).await {
            Ok(again_in_s) => {
                self.backoff.reset();
                self.doubt = None;
                self.state.last_hello_at = Some(clock::now());
                self.tell(Mode::Serving, None);
                self.serving.send_replace(Some(Serving { bootstrap: bootstrap.clone(), mode: duty }));
                if duty == Duty::Serve {
                    self.exchange(bootstrap).await;
                }
                Duration::from_secs(u64::from(again_in_s.clamp(*HELLO_SECONDS.start(), *HELLO_SECONDS.end())))
            }
            Err(error) => {
                let doubt = cause(&error).map(|cause| Doubt { token: bootstrap.token.hash(), cause });
                let news = doubt != self.doubt;
                self.doubt = doubt;
                self.tell(Mode::Serving, Some(chain(&error)));
                // With a fresh ticket at hand, the next look decides for it; that look need not wait.
                if news { Duration::from_millis(100) } else { self.wait() }
            }
        }
    }

    /// Exchanges this program when it should be; then this is the last line of it that runs.
    async fn exchange(&mut self, bootstrap: &Bootstrap) {
        let (place, Some((_, _, agent))) = (&self.place, &self.agent) else { return };
        if let Err(error) = self.own.look(place, agent, &bootstrap.token).await {
            self.tell(Mode::Serving, Some(chain(&error)));
        }
    }

    async fn hello(&mut self, bootstrap: &Bootstrap, word: Word) -> Result<u32, AgentError> {
        let told = board::load(&self.place);
        let hello = Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            health: if self.health == Health::Well { told.health() } else { self.health },
            unwell: told.unwell(),
            upgrade: upgrade::load(&self.place).last,
            restart_needed: self.restart.needed(&self.place),
            boot_id: self.boot_id.clone(),
            build: self.build.clone(),
        };
        let agent = self.agent(&bootstrap.endpoint, bootstrap.pin)?;
        Ok(agent.hello(&bootstrap.token, &hello, word).await?.again_in_s)
    }

    /// The connection is kept as long as endpoint and pin stay: a handshake for every hello would cost the agent more
    /// than the hello.
    fn agent(&mut self, endpoint: &str, pin: Pin) -> Result<&Agent, AgentError> {
        let kept = self.agent.take().filter(|(at, known, _)| at == endpoint && *known == pin);
        let kept = match kept {
            Some(kept) => kept,
            None => (endpoint.to_owned(), pin, Agent::new(endpoint, pin, self.source_address)?),
        };
        Ok(&self.agent.insert(kept).2)
    }

    fn wait(&mut self) -> Duration {
        let mut dice = [0; 8];
        match getrandom::fill(&mut dice) {
            Ok(()) => self.backoff.next(u64::from_ne_bytes(dice)),
            Err(error) => {
                warn!(%error, "the kernel gives no random numbers; waiting long");
                LONGEST
            }
        }
    }

    /// Writes down how it stands, and logs what changed. A folder that cannot be written to is told to the agent too.
    fn tell(&mut self, mode: Mode, problem: Option<String>) {
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
        self.health = match state::store(&self.place, &self.state) {
            Ok(()) => Health::Well,
            Err(error) => {
                warn!(error = chain(&error), "the state for `guestd status` cannot be written");
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
        AgentError::Stranger { .. } => Some(Cause::Rejected),
        AgentError::Away { .. } => Some(Cause::Silent),
        _ if error.code() == Some(ErrorCode::Unauthenticated) => Some(Cause::Rejected),
        _ => None,
    }
}
