//! `GET /v1/backups/due`: which of the guest's backups are due.
//!
//! The same judgement by which the agent begins backups itself, over the records as they are now. A window that just
//! ended is not due again, however old the agent's last observation of the host is.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use holdfast_protocol::local::due_backups::{DueBackup, DueView};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Consistency;
use holdfast_protocol::report::Running;

use super::Local;
use super::auth::GuestScope;
use super::envelope::Data;
use super::error::ApiError;
use super::wait::Wait;
use crate::model::clock_trust::{Steady, TrustedTime};
use crate::plan::schedule::points::Around;
use crate::plan::schedule::still::Still;
use crate::plan::schedule::{ScheduleFacts, outstanding, promised};

pub(super) async fn due(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    wait: Wait,
) -> Result<Data<DueView>, ApiError> {
    wait.for_change(&local, || look(&local, &scope)).await
}

async fn look(local: &Local, scope: &GuestScope) -> Result<DueView, ApiError> {
    let uid = scope.uid();
    let own = local.store.outstanding(uid, local.clock.now()).await?;
    let hello = local.store.guest(uid).await?.and_then(|record| record.hello);
    let Some(promise) = &own.promise else { return Ok(DueView::default()) };
    let (now, forward) = (local.clock.now(), local.clock.monotonic());
    let (anchor, run) = {
        let view = local.view.borrow();
        let seen = view.guests.iter().find(|guest| guest.uid == Some(uid));
        (view.anchor, seen.map_or(Running::Unknown, |guest| guest.run))
    };
    let time =
        anchor.map_or(TrustedTime { at: now, since: now, steady: Steady::No }, |anchor| anchor.at(forward));
    let policy = local.wanted.guest(uid).await?.and_then(|guest| guest.policy);
    // A backup that is under way or requested is not due once more.
    let taking = |kind: &OperationKind| matches!(kind, OperationKind::Backup | OperationKind::QuiescedBackup);
    let taken = own.at_work.iter().any(taking);
    let known = ScheduleFacts {
        guest: uid,
        vmid: None,
        backups: &own.backups,
        snapshots: &[],
        tiers: &own.tiers,
        renumbered: own.renumbered,
        still: Still::new(own.stood_still, &own.limits),
        open: None,
        tests: &[],
        proofs: &BTreeMap::new(),
        hello: hello.as_ref(),
        // It is asking just now.
        silent_since: None,
        run,
        time,
    };
    let mut view = DueView::default();
    // A snapshot is no backup.
    for promised in promised(promise).into_iter().filter(|promised| promised.target.is_some()) {
        let outstanding = outstanding(&known, &promised, Around::of(promised.schedule, time.at));
        let open = outstanding.last.filter(|due| due.is_open() && !taken);
        view.due.extend(open.map(|due| DueBackup {
            tier: promised.tier,
            policy: policy.clone(),
            since: due.since,
            // No window is granted for it now.
            consistency: if known.still.is_spent() { Consistency::Crash } else { promised.consistency },
            waits_until: due.waits_until,
        }));
        view.next_at = view.next_at.into_iter().chain(outstanding.next).min();
    }
    Ok(view)
}
