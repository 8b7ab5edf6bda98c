//! The change limit: bulk changes by documents within a window.
//!
//! What comes in: the rule from the settings, how many guests run, and which were touched within the window by the
//! agent's own journal. What goes out, for one guest after the other: go on, or held. It counts guests over time and not
//! changes of one document, so many small documents get no further than one large one. Which operations count is theirs to
//! say. Pure. Deliberately absent: who signed; a checked
//! release is an input.

use std::collections::BTreeSet;

use holdfast_protocol::generation::{ContentHash, Generation, Numbered};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::act::{Act, BulkChange, args};
use holdfast_protocol::job::{Draft, Target};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::WaitingForSignature;
use holdfast_trust::scope::NotHere;
use jiff::{SignedDuration, Timestamp};

use super::pending_approval::text;
use crate::model::policy::BrakeRule;
use crate::model::records::{PassedBy, Touched};

/// What an operator signed for and was not used up: of each guest one operation, under exactly this document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub document: Numbered,
    /// What may be done to which guest, each once.
    pub changes: BTreeSet<(GuestUid, OperationKind)>,
}

/// Whether a guest may be touched now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    Go,
    /// It waits for a signature.
    Held,
}

/// The brake of one plan.
#[derive(Clone, Debug)]
pub struct Brake {
    limit: usize,
    touched: BTreeSet<GuestUid>,
    /// Those that were touched within the limit. What a release let pass counts, and lets nothing else pass.
    free: BTreeSet<GuestUid>,
    released: BTreeSet<(GuestUid, OperationKind)>,
}

impl Brake {
    /// `running` are the guests that run now. Those that were touched within the window count among them even when they
    /// stand still by now: else each stop would make the share of the rest smaller, which only holds the honest up.
    #[must_use]
    pub fn new(rule: BrakeRule, running: &BTreeSet<GuestUid>, touched: &[Touched], now: Timestamp) -> Self {
        let window = SignedDuration::from_hours(i64::from(rule.window_h));
        let since = now.checked_sub(window).unwrap_or(Timestamp::MIN);
        // Times in the future, because the clock went back, count.
        let within = || touched.iter().filter(|touched| touched.at > since);
        let free = within().filter(|touched| touched.by == PassedBy::Brake).map(|touched| touched.guest);
        let free: BTreeSet<GuestUid> = free.collect();
        let touched: BTreeSet<GuestUid> = within().map(|touched| touched.guest).collect();
        let limit = rule.limit(running.union(&touched).count());
        Self { limit, touched, free, released: BTreeSet::new() }
    }

    /// Lets what was signed for pass, under its own document only.
    #[must_use]
    pub fn with(mut self, release: Option<&Release>, document: Option<Numbered>) -> Self {
        if let Some(release) = release.filter(|release| Some(release.document) == document) {
            self.released.clone_from(&release.changes);
        }
        self
    }

    /// Whether this may be done to this guest; if so, the guest counts from now on. One that was touched within the limit may
    /// be touched again; one that a release let pass may not, save by a release.
    pub fn pull(&mut self, guest: GuestUid, operation: OperationKind) -> Pull {
        if self.released.remove(&(guest, operation)) {
            self.touched.insert(guest);
            return Pull::Go;
        }
        if self.free.contains(&guest) {
            return Pull::Go;
        }
        if self.touched.len() >= self.limit {
            return Pull::Held;
        }
        self.touched.insert(guest);
        self.free.insert(guest);
        Pull::Go
    }

    /// How many guests count at present.
    #[must_use]
    pub fn touched(&self) -> usize {
        self.touched.len()
    }

    /// How many may.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }
}

/// Why a release that names no content of a document lets nothing pass.
#[must_use]
pub const fn unbound() -> NotHere {
    NotHere::Unbound("what the content of the document hashes to")
}

/// A bulk change that is held, with the text an operator would sign for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkHeld {
    /// By which document.
    pub generation: Generation,
    /// What its content hashes to.
    pub content: Option<ContentHash>,
    /// What would be done to which guest.
    pub changes: Vec<BulkChange>,
    /// How many guests count at present.
    pub touched: usize,
    /// How many may.
    pub limit: usize,
    /// Within how many hours.
    pub window_h: u32,
}

impl BulkHeld {
    /// Why one of its guests waits, and who may let it pass.
    #[must_use]
    pub fn reason(&self, operation: OperationKind) -> String {
        let operation = operation.as_str();
        format!(
            "{operation} is held: {} guests were stopped, restarted or resized within {} h, and {} may be without a signature; \
             an operator signs for it, or root on this box raises [brake] in agent.toml",
            self.touched, self.window_h, self.limit
        )
    }

    /// As it is reported.
    #[must_use]
    pub fn report(&self) -> WaitingForSignature {
        let act = Act::ReleaseBrake(args::ReleaseBrake {
            generation: self.generation,
            document: self.content.map(Into::into),
            changes: self.changes.clone(),
        });
        let payload = text(&Draft { target: Target::Host {}, act });
        let count = self.changes.len();
        let guests = if count == 1 { "guest" } else { "guests" };
        WaitingForSignature {
            guest: None,
            effect: format!(
                "stop, restart or resize {count} more {guests} at once, by document {}",
                self.generation
            ),
            reason: "it is more than the brake allows at once".to_owned(),
            payload,
            last_backup: None,
            last_proof: None,
        }
    }
}

#[cfg(test)]
mod tests;
