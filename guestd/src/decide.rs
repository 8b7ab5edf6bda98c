//! Decision between set-up, claim and serve. Pure.
//!
//! A kept bootstrap is used even when a bootstrap token is there, since a bootstrap token in a running guest's environment is mostly the
//! old one. A fresh bootstrap token wins only when the agent will not have the kept token, when the kept agent is silent and the
//! bootstrap token names another, or when the guest was started as a restore test, which must never speak with the token that
//! came out of the backup.

use holdfast_protocol::bootstrap::{Bootstrap, BootstrapToken, Mode};
use holdfast_protocol::secret::TokenHash;

use crate::attempt::{Attempt, AttemptError, Outcome};
use crate::bootstrap_env::{BootstrapEnv, BootstrapEnvError};
use crate::bootstrap_file::{BootstrapFileError, Earlier};

/// The stored files and the token, as they were read.
pub struct Situation {
    pub bootstrap: Result<Option<Bootstrap>, BootstrapFileError>,
    /// The environment's bootstrap token.
    pub bootstrap_token: Result<BootstrapEnv, BootstrapEnvError>,
    /// The record of the last claim.
    pub attempt: Result<Option<Attempt>, AttemptError>,
}

/// What to do next.
#[derive(Debug)]
pub enum Next {
    /// Wait for a person or a new start.
    SetUp(SetUp),
    /// Trade the bootstrap token.
    Claim(Claim),
    /// Say hello, and do what the guest was started for.
    Serve(Box<Bootstrap>, Mode),
}

/// A bootstrap token to trade.
#[derive(Debug)]
pub struct Claim {
    pub bootstrap_token: Box<BootstrapToken>,
    /// The attempt that was begun with it, if one was.
    pub attempt: Option<Attempt>,
    /// Whether a bootstrap is stored already.
    pub earlier: Earlier,
}

/// Why the guest is in set-up mode.
#[derive(Debug, thiserror::Error)]
pub enum SetUp {
    /// No bootstrap token was ever given.
    #[error(
        "no bootstrap token in the environment of PID 1: this guest was not made by an agent, or was started without one"
    )]
    NoToken,
    /// Restored, not handed over yet.
    #[error(
        "this guest was restored and is not ready yet: its agent sets the bootstrap token before it starts the guest; do not start it by hand"
    )]
    Pending,
    /// The bootstrap token cannot be read.
    #[error("the bootstrap token cannot be used")]
    BadToken(#[source] BootstrapEnvError),
    /// `bootstrap.json` cannot be used.
    #[error("bootstrap.json cannot be used")]
    BadBootstrap(#[source] BootstrapFileError),
    /// `claim.json` cannot be used.
    #[error("the record of the last claim cannot be used")]
    BadAttempt(#[source] AttemptError),
    /// The agent refused the claim.
    #[error(
        "the agent refused the bootstrap token ({message}): have it issue a new one and start the guest again"
    )]
    Refused {
        /// The agent's message.
        message: String,
    },
    /// The bootstrap token was traded, and what it was traded for is gone.
    #[error(
        "the bootstrap token was used and bootstrap.json is gone: have the agent issue a new token and start the guest again"
    )]
    Spent,
}

/// Why the kept bootstrap is in doubt since this program started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The token it holds.
    pub token: TokenHash,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a kept bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The agent does not know the token, or another server answers at its address.
    Rejected,
    /// No agent answers at that address.
    Silent,
}

impl Doubt {
    /// A restored guest's old agent may be silent for good: a bootstrap token that names another endpoint says where the new
    /// one is. A bootstrap token for the same endpoint would be answered by the same silence.
    fn speaks_for(self, bootstrap: &Bootstrap, bootstrap_token: &BootstrapToken) -> bool {
        self.token == bootstrap.token.hash()
            && match self.cause {
                Cause::Rejected => true,
                Cause::Silent => bootstrap_token.endpoint != bootstrap.endpoint,
            }
    }
}

pub fn decide(seen: Situation, doubt: Option<Doubt>) -> Next {
    let bootstrap = match seen.bootstrap {
        Ok(bootstrap) => bootstrap,
        Err(error) => return Next::SetUp(SetUp::BadBootstrap(error)),
    };
    let bootstrap_token = match (seen.bootstrap_token, bootstrap) {
        (Ok(BootstrapEnv::Pending), _) => return Next::SetUp(SetUp::Pending),
        (Ok(BootstrapEnv::Token(bootstrap_token)), bootstrap) => (bootstrap_token, bootstrap),
        (Ok(BootstrapEnv::Absent) | Err(_), Some(bootstrap)) => {
            return Next::Serve(Box::new(bootstrap), Mode::Serve);
        }
        (Ok(BootstrapEnv::Absent), None) => return Next::SetUp(SetUp::NoToken),
        (Err(problem), None) => return Next::SetUp(SetUp::BadToken(problem)),
    };
    let (bootstrap_token, bootstrap) = bootstrap_token;
    let attempt = match seen.attempt {
        Ok(attempt) => attempt.filter(|attempt| attempt.is_of(&bootstrap_token)),
        Err(error) => return Next::SetUp(SetUp::BadAttempt(error)),
    };
    let spent = match attempt.as_ref().map(|attempt| &attempt.outcome) {
        None | Some(Outcome::Open) => None,
        Some(Outcome::Redeemed) => Some(SetUp::Spent),
        Some(Outcome::Refused(message)) => Some(SetUp::Refused { message: message.clone() }),
    };
    let scratch = bootstrap_token.mode == Mode::RestoreTest;
    match (bootstrap, spent) {
        (None, Some(reason)) => Next::SetUp(reason),
        (None, None) => Next::Claim(Claim { bootstrap_token, attempt, earlier: Earlier::None }),
        (Some(_), Some(reason @ SetUp::Refused { .. })) if scratch => Next::SetUp(reason),
        (Some(bootstrap), None)
            if scratch || doubt.is_some_and(|doubt| doubt.speaks_for(&bootstrap, &bootstrap_token)) =>
        {
            Next::Claim(Claim { bootstrap_token, attempt, earlier: Earlier::Present })
        }
        // A scratch guest's token reaches this point only after it was traded: the stored bootstrap is the result of
        // that trade.
        (Some(bootstrap), _) => Next::Serve(Box::new(bootstrap), bootstrap_token.mode),
    }
}

#[cfg(test)]
mod tests;
