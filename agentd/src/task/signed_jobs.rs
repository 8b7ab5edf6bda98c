//! The task that begins signed jobs after their delay.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{HostId, JobId, OperationId, Vmid};
use holdfast_protocol::job::{Act, Ordered, Payload, Target};
use holdfast_protocol::json::chain;
use holdfast_trust::Accepted;
use holdfast_trust::scope::{Here, NotHere};
use jiff::Timestamp;
use tracing::Instrument as _;

use super::admission::{Begin, Origin};
use crate::execute::Ports;
use crate::execute::failpoint::{Moment, Point, Side, pass};
use crate::gate::job_validation::{TurnedAway, when_due};
use crate::plan::Inputs;
use crate::plan::signed_jobs::{Turn, turn};
use crate::port::store::job::{DueJob, Settled, TakeError};
use crate::port::store::{Store, StoreError};

/// The numbers of the guests that are next: they are observed anew, not remembered.
///
/// # Errors
/// [`StoreError`].
pub(super) async fn targets(store: &Store, now: Timestamp) -> Result<Vec<Vmid>, StoreError> {
    let of = |due: &DueJob| match Payload::parse(&due.signed.payload).ok()?.target {
        Target::Guest { vmid, .. } => vmid,
        Target::Host {} => None,
    };
    Ok(store.due_jobs(now).await?.iter().filter_map(of).collect())
}

/// Judges every job whose delay is over. Returns those that become operations now; the others are settled or wait.
///
/// # Errors
/// [`StoreError`].
pub(super) async fn begin(ports: &Ports, inputs: &Inputs<'_>) -> Result<Vec<Begin>, StoreError> {
    let (store, mut begun) = (&ports.store, Vec::new());
    let jobs = store.due_jobs(inputs.now).await?;
    if jobs.is_empty() {
        return Ok(begun);
    }
    for due in jobs {
        if is_elsewhere(&due) {
            continue;
        }
        let span = tracing::info_span!(
            "job",
            job = %due.id,
            correlation_id = due.correlation.map(tracing::field::display)
        );
        begun.extend(Box::pin(begin_one(ports, inputs, due)).instrument(span).await?);
    }
    Ok(begun)
}

/// Jobs of a task of its own (`break_glass`), which does not wait for Proxmox.
fn is_elsewhere(due: &DueJob) -> bool {
    matches!(Payload::parse(&due.signed.payload), Ok(Payload { act: Act::BreakGlass(_), .. }))
}

async fn begin_one(ports: &Ports, inputs: &Inputs<'_>, due: DueJob) -> Result<Option<Begin>, StoreError> {
    let job = match check(&ports.store, &due, inputs.now).await? {
        Ok(job) => job,
        // The job continues once the clock is corrected.
        Err(TurnedAway::NotHere(NotHere::ClockBehind { .. } | NotHere::NotYet(_))) => return Ok(None),
        Err(why) => {
            fail(ports, due.id, &ErrorBody::new(why.code(), chain(&why)), inputs.now).await?;
            return Ok(None);
        }
    };
    match turn(inputs, &job) {
        Turn::Begin(action) => {
            let origin = Origin::Job(OperationId::new(due.id.uuid()));
            return Ok(Some(Begin { action: *action, origin }));
        }
        Turn::Waits | Turn::Elsewhere => {}
        Turn::Fails(problem) => fail(ports, due.id, &problem, inputs.now).await?,
        Turn::Now => now(ports, due.id, job, inputs.now).await?,
    }
    Ok(None)
}

/// The permitted signers may have changed since it was accepted, and so may this host's epoch and the time.
pub(super) async fn check(
    store: &Store,
    due: &DueJob,
    now: Timestamp,
) -> Result<Result<Accepted, TurnedAway>, StoreError> {
    let status = store.trust_state().await?;
    let Some(roster) = status.roster else { return Ok(Err(TurnedAway::NoOperators)) };
    // The job was accepted for this host and no other, so its own host id serves for the comparison of the rest. An
    // approval for all hosts names none: nothing is compared with the one that stands for it.
    let host = match Ordered::parse(&due.signed.payload) {
        Ok(Ordered::OneHost(payload)) => payload.host_id,
        Ok(Ordered::AllHosts(_)) => HostId::new(due.id.uuid()),
        Err(error) => return Ok(Err(TurnedAway::Refused(error.into()))),
    };
    let here = Here { host, epoch: status.epoch, now, latest: status.latest };
    Ok(when_due(&due.signed, due.due_at, &roster, &here))
}

async fn fail(ports: &Ports, id: JobId, problem: &ErrorBody, now: Timestamp) -> Result<(), StoreError> {
    tracing::warn!(action = "job", result = "failed", job = %id, %problem, "a signed job came to nothing");
    settle(ports, id, Settled::Failed(problem.clone()), now).await
}

async fn settle(ports: &Ports, id: JobId, end: Settled, at: Timestamp) -> Result<(), StoreError> {
    reach(ports, Side::Before).await;
    ports.store.settle_job(id, end, at).await?;
    reach(ports, Side::After).await;
    Ok(())
}

async fn reach(ports: &Ports, side: Side) {
    pass(ports.failpoints.as_ref(), Point { step: "job", side, moment: Moment::Settled }).await;
}

/// What needs no operation.
async fn now(ports: &Ports, id: JobId, job: Accepted, at: Timestamp) -> Result<(), StoreError> {
    let store = &ports.store;
    reach(ports, Side::Before).await;
    let outcome = match &job.payload().act {
        Act::PolicyUpdate(_) => store.change_roster(job, at).await,
        Act::ApproveRelease(_) => store.approve_release(job, at).await,
        Act::LoosenPolicy(_) => store.lower_protection(job, at).await,
        Act::AttachStorage(_) => store.attach_storage(job, at).await,
        Act::DetachStorage(_) => store.detach_storage(job, at).await,
        Act::ReleaseBrake(_) => store.release_brake(job, at).await,
        Act::AllowGrowth(_) => store.allow_growth(job, at).await,
        Act::WithdrawRestore(_) => store.withdraw_order(job, at).await,
        other => {
            let text = format!("{} does not wait", other.verb().as_str());
            return fail(ports, id, &ErrorBody::new(ErrorCode::Internal, text), at).await;
        }
    };
    reach(ports, Side::After).await;
    match outcome {
        Ok(()) => {
            tracing::info!(action = "job", result = "done", job = %id, "a signed job is done");
            Ok(())
        }
        Err(TakeError::Store(error)) => Err(error),
        Err(TakeError::Away(why)) => fail(ports, id, &ErrorBody::new(why.code(), chain(&why)), at).await,
    }
}
