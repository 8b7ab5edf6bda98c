//! Judgements of guests that hold for later plans.
//!
//! In: what it was made from, tier by tier, and what came of it. Out: what is kept of its tiers, and until when it holds by
//! time alone. None is kept where something is to be begun, or something waits for a time that is not one of what is
//! owed: the next plan judges such a guest anew.

use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::Condition;
use jiff::Timestamp;

use super::facts::{Promised, ScheduleFacts};
use super::faults;
use super::memory::{KeptTier, KeptTiers, LastOutstanding, of_tier};
use super::outstanding::scheduled;
use super::space;
use super::tier::{OutstandingPoint, State};
use crate::gate::retention::taken_at;
use crate::model::records::TierRecord;
use crate::plan::restore_test_status::Tested;
use crate::plan::{Action, Context};

/// What is kept of a judgement, as it is made.
pub(super) struct Keeping {
    tiers: KeptTiers,
    until: Timestamp,
    may: May,
}

/// Whether it may be kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum May {
    Keep,
    Not,
}

impl Keeping {
    pub(super) fn new(context: &Context<'_>, known: &ScheduleFacts<'_>) -> Self {
        let removals = [OperationKind::PruneBackup, OperationKind::ExpireSnapshot];
        let waits = removals.iter().any(|kind| context.attempts.contains_key(&(known.guest, *kind)));
        let may = if waits || is_ahead(known) { May::Not } else { May::Keep };
        Self { tiers: KeptTiers::default(), until: Timestamp::MAX, may }
    }

    pub(super) fn tier(
        &mut self,
        known: &ScheduleFacts<'_>,
        (promised, tested): (&Promised<'_>, &Tested<'_>),
        (stands, outstanding): (Option<Timestamp>, OutstandingPoint),
        open: &Result<(), Condition>,
    ) {
        if open.is_err() || outstanding.last.is_some_and(|due| due.state == State::Now) {
            self.may = May::Not;
        }
        let proved = promised.test_every.and_then(|every| tested.proved_until(every, known.time.at));
        let test_due = faults::test_due(promised, known, tested).filter(|due| known.time.at <= *due);
        self.until = proved.into_iter().chain(test_due).fold(self.until, Timestamp::min);
        let takes =
            promised.target.map_or(0, |target| space::next_takes(known.backups, (target, promised.tier)));
        // Without a backup the report says when the first is due.
        let is_reported = promised.target.is_none() || known.good(promised).next().is_some();
        let outstanding = if is_reported && outstanding.is_quiet() {
            LastOutstanding::Quiet
        } else {
            LastOutstanding::This(Box::new(outstanding))
        };
        match self.tiers.iter_mut().find(|tier| tier.is_none()) {
            Some(free) => {
                let known = of_tier(known, promised.tier);
                *free = Some(KeptTier { stands, outstanding, known, takes });
            }
            None => self.may = May::Not,
        }
    }

    /// What is kept, and until when it holds, unless something is to be done.
    pub(super) fn unless(self, action: Option<&Action>) -> Option<(KeptTiers, Timestamp)> {
        (self.may == May::Keep && action.is_none()).then_some((self.tiers, self.until))
    }
}

/// Whether something says that it was after now. It is not believed until then, so time alone changes what follows.
fn is_ahead(known: &ScheduleFacts<'_>) -> bool {
    let latest = known.latest();
    let proved = |backup| known.proofs.get(backup).copied();
    let backups = known
        .backups
        .iter()
        .any(|one| taken_at(one).max(proved(&one.taken_by).unwrap_or(Timestamp::MIN)) > latest);
    let tried = |record: &TierRecord| record.tried.is_some_and(|tried| tried.last > latest);
    let tiers = known.tiers.iter().any(|record| record.since > latest || tried(record));
    backups || tiers || scheduled(known.snapshots).any(|point| point > latest)
}
