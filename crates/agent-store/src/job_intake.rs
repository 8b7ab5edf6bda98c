//! Intake of signed jobs from the hub.
//!
//! Each text is judged, and taken once or refused.
//!
//! A text whose bytes are already on record is not judged again: its outcome is final, and is in every report. So a
//! repeat after its time is no refusal. The hub keeps offering a refused text until the next report reaches it. That
//! text is judged again after half a minute at the soonest: its signer may be listed by then. Deliberately absent: the
//! effect; the reconcile loop acts when a job's delay is over.

use holdfast_protocol::id::HostId;
use holdfast_protocol::job::{QueuedJob, SeenHost, SignedJob};
use holdfast_protocol::json::chain;
use holdfast_trust::scope::Here;
use jiff::Timestamp;

use crate::job::{JobOutcome, NewJob, TakeError};
use crate::{Store, StoreError};
use agent_core::gate::job_validation::{TurnedAway, judge};

/// What became of a text.
#[derive(Debug)]
pub enum Outcome {
    /// It is on record from now on.
    Taken,
    /// It was on record before.
    Known,
    /// It was turned away, for this.
    Away(TurnedAway),
    /// It was refused a moment ago, and the hub has no report of that yet.
    AwayStill,
    /// So many texts were refused within the hour that none is judged.
    Unread,
}

/// Judges one text, and takes it or refuses it. On disk when this returns.
///
/// # Errors
/// [`StoreError`]: nothing came of it then, and the hub will pass it on again.
pub async fn take(
    store: &Store,
    (host, own): (HostId, &SeenHost),
    mail: &QueuedJob,
    now: Timestamp,
) -> Result<Outcome, StoreError> {
    if !store.takes_mail(now) {
        return Ok(Outcome::Unread);
    }
    if store.turned_away_just_now(mail.id, &mail.blob, now) {
        return Ok(Outcome::AwayStill);
    }
    if let Ok(signed) = SignedJob::parse(mail.blob.as_bytes())
        && store.knows_job(&signed).await?
    {
        return Ok(Outcome::Known);
    }
    match judged(store, (host, own), mail, now).await {
        Ok(JobOutcome::New) => {
            tracing::info!(action = "job_taken", result = "ok", job = %mail.id, "a signed job was taken");
            Ok(Outcome::Taken)
        }
        Ok(JobOutcome::Known) => Ok(Outcome::Known),
        Err(TakeError::Store(error)) => Err(error),
        Err(TakeError::Away(why)) => {
            if matches!(why, TurnedAway::Replayed) {
                tracing::error!(job = %mail.id, "a job with a used id or nonce and another body was sent");
            } else {
                tracing::warn!(job = %mail.id, error = chain(&why), "a signed job was turned away");
            }
            store.turn_away(mail.id, &mail.blob, &why, now).await?;
            Ok(Outcome::Away(why))
        }
    }
}

async fn judged(
    store: &Store,
    (host, own): (HostId, &SeenHost),
    mail: &QueuedJob,
    now: Timestamp,
) -> Result<JobOutcome, TakeError> {
    let status = store.trust_state().await?;
    let here = Here { host, epoch: status.epoch, now, latest: status.latest };
    let job = judge(&mail.blob, mail.id, status.roster.as_ref(), (&here, own))?;
    store.take_job(NewJob { blob: mail.blob.clone(), job, correlation: mail.correlation_id, at: now }).await
}
