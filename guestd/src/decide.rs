//! What to do next, from what lies there: pure, so that every case is one line of a table.
//!
//! A kept bootstrap is used even when a ticket is there, since a ticket in a running guest's environment is mostly the
//! old one. A fresh ticket wins only when the agent will not have the kept token, when the kept agent is silent and the
//! ticket names another, or when the guest was started as a restore test, which must never speak with the token that
//! came out of the backup.

use holdfast_protocol::bootstrap::{Bootstrap, Mode, Ticket};
use holdfast_protocol::secret::TokenHash;

use crate::attempt::{Attempt, AttemptError, Outcome};
use crate::kept::{Earlier, KeptError};
use crate::ticket::{Found, TicketProblem};

/// What lies there.
pub struct Seen {
    /// `bootstrap.json`.
    pub kept: Result<Option<Bootstrap>, KeptError>,
    /// The environment's ticket.
    pub ticket: Result<Found, TicketProblem>,
    /// The record of the last claim.
    pub attempt: Result<Option<Attempt>, AttemptError>,
}

/// What to do next.
#[derive(Debug)]
pub enum Next {
    /// Wait for a person or a new start.
    SetUp(SetUp),
    /// Trade the ticket.
    Claim(Claim),
    /// Say hello, and do what the guest was started for.
    Serve(Box<Bootstrap>, Mode),
}

/// A ticket to trade.
#[derive(Debug)]
pub struct Claim {
    /// The ticket.
    pub ticket: Box<Ticket>,
    /// The attempt that was begun with it, if one was.
    pub attempt: Option<Attempt>,
    /// Whether a bootstrap lies there already.
    pub earlier: Earlier,
}

/// Why the guest is in set-up mode.
#[derive(Debug, thiserror::Error)]
pub enum SetUp {
    /// No ticket was ever given.
    #[error(
        "there is no ticket in the environment of PID 1: this guest was not made by an agent, or was started without one"
    )]
    NoTicket,
    /// Restored, not handed over yet.
    #[error(
        "this guest was restored and not handed over yet: its agent sets the ticket before it starts the guest; do not start it by hand"
    )]
    Pending,
    /// The ticket cannot be read.
    #[error("the ticket cannot be used")]
    Ticket(#[source] TicketProblem),
    /// `bootstrap.json` cannot be used.
    #[error("the kept bootstrap cannot be used")]
    Kept(#[source] KeptError),
    /// `claim.json` cannot be used.
    #[error("the record of the last claim cannot be used")]
    Attempt(#[source] AttemptError),
    /// The agent refused the claim.
    #[error(
        "the agent refused this guest's ticket ({message}): have it issue a new one and start the guest again"
    )]
    Refused {
        /// In its words.
        message: String,
    },
    /// The ticket was traded, and what it was traded for is gone.
    #[error(
        "this guest's ticket was used and its bootstrap.json is gone: have the agent issue a new ticket and start the guest again"
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
    /// The agent does not know the token, or somebody else answers at its address.
    Rejected,
    /// Nobody answers there.
    Silent,
}

impl Doubt {
    /// A restored guest's old agent may be silent for good: a ticket that names another endpoint says where the new
    /// one is. A ticket for the same endpoint would be answered by the same silence.
    fn speaks_for(self, kept: &Bootstrap, ticket: &Ticket) -> bool {
        self.token == kept.token.hash()
            && match self.cause {
                Cause::Rejected => true,
                Cause::Silent => ticket.endpoint != kept.endpoint,
            }
    }
}

/// Decides.
pub fn decide(seen: Seen, doubt: Option<Doubt>) -> Next {
    let kept = match seen.kept {
        Ok(kept) => kept,
        Err(error) => return Next::SetUp(SetUp::Kept(error)),
    };
    let ticket = match (seen.ticket, kept) {
        (Ok(Found::Pending), _) => return Next::SetUp(SetUp::Pending),
        (Ok(Found::Ticket(ticket)), kept) => (ticket, kept),
        (Ok(Found::Absent) | Err(_), Some(kept)) => return Next::Serve(Box::new(kept), Mode::Serve),
        (Ok(Found::Absent), None) => return Next::SetUp(SetUp::NoTicket),
        (Err(problem), None) => return Next::SetUp(SetUp::Ticket(problem)),
    };
    let (ticket, kept) = ticket;
    let attempt = match seen.attempt {
        Ok(attempt) => attempt.filter(|attempt| attempt.is_of(&ticket)),
        Err(error) => return Next::SetUp(SetUp::Attempt(error)),
    };
    let spent = match attempt.as_ref().map(|attempt| &attempt.outcome) {
        None | Some(Outcome::Open) => None,
        Some(Outcome::Traded) => Some(SetUp::Spent),
        Some(Outcome::Refused(message)) => Some(SetUp::Refused { message: message.clone() }),
    };
    let scratch = ticket.mode == Mode::RestoreTest;
    match (kept, spent) {
        (None, Some(reason)) => Next::SetUp(reason),
        (None, None) => Next::Claim(Claim { ticket, attempt, earlier: Earlier::None }),
        (Some(_), Some(reason @ SetUp::Refused { .. })) if scratch => Next::SetUp(reason),
        (Some(kept), None) if scratch || doubt.is_some_and(|doubt| doubt.speaks_for(&kept, &ticket)) => {
            Next::Claim(Claim { ticket, attempt, earlier: Earlier::Kept })
        }
        // Of a scratch guest's tickets only one that was traded comes here: what is kept is what it was traded for.
        (Some(kept), _) => Next::Serve(Box::new(kept), ticket.mode),
    }
}

#[cfg(test)]
mod tests;
