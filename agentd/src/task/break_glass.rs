//! The task that passes break-glass orders on to root's program.
//!
//! In: signed jobs after their delay, and the status that root's program writes. Out: the order in a file, the end of the
//! job, lines of the audit, the status for the report. It works while Proxmox does not answer. Deliberately absent: any
//! power to open something; root's program checks the order by itself.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::break_glass::BreakGlassStatus;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CustomerId, JobId};
use holdfast_protocol::job::act::{Sha256Text, args};
use holdfast_protocol::job::{Act, Payload};
use holdfast_protocol::json::chain;
use holdfast_trust::scope::NotHere;
use tokio::sync::watch;

use super::signed_jobs;
use super::stop::Stop;
use crate::gate::job_validation::TurnedAway;
use crate::model::view::HostSnapshot;
use crate::plan::break_glass::{OrderAnswer, answer, left_out, lines};
use crate::port::break_glass::{BreakGlassError, BreakGlassFiles};
use crate::port::clock::Clock;
use crate::port::store::job::{DueJob, Settled};
use crate::port::store::{Store, StoreError};

/// How often the status is read, and an order without an answer is put down again.
const EVERY: Duration = Duration::from_secs(15);

/// What root's program says, where it said something.
pub type SharedStatus = Arc<Option<BreakGlassStatus>>;

pub struct BreakGlassTask {
    pub files: BreakGlassFiles,
    pub store: Store,
    /// The guests, for the customers that an order must name.
    pub view: watch::Receiver<Arc<HostSnapshot>>,
    /// Where the status is published.
    pub status: watch::Sender<SharedStatus>,
    pub clock: Arc<dyn Clock>,
}

/// Why a turn ended early. The next one does the rest.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] BreakGlassError),
    #[error("an order cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("a thread for files ended early")]
    Thread(#[from] tokio::task::JoinError),
}

impl BreakGlassTask {
    /// Passes orders on until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut changes = self.store.changes();
        loop {
            changes.borrow_and_update();
            tokio::select! {
                () = stop.requested() => return,
                turn = self.turn() => if let Err(error) = turn {
                    tracing::warn!(error = chain(&error), "break-glass: this turn ended early");
                }
            }
            tokio::select! {
                () = stop.requested() => return,
                changed = changes.changed() => if changed.is_err() { return },
                () = self.clock.sleep(EVERY) => {}
            }
        }
    }

    async fn turn(&self) -> Result<(), TurnError> {
        let files = self.files.clone();
        // A status that cannot be read says nothing: what was known stays.
        let status = tokio::task::spawn_blocking(move || files.status()).await??;
        self.publish(status).await?;
        let now = self.clock.now();
        for due in self.store.due_jobs(now).await? {
            if let Some(args) = order(&due) {
                self.pass_on(&due, &args).await?;
            }
        }
        Ok(())
    }

    /// The audit has a change before anything else hears of it.
    async fn publish(&self, status: Option<BreakGlassStatus>) -> Result<(), TurnError> {
        if **self.status.borrow() == status {
            return Ok(());
        }
        let now = self.clock.now();
        if let Some(status) = &status {
            self.store.note_ways(lines(status, now), now).await?;
        }
        self.status.send_replace(Arc::new(status));
        Ok(())
    }

    async fn pass_on(&self, due: &DueJob, args: &args::BreakGlass) -> Result<(), TurnError> {
        let status = Arc::clone(&self.status.borrow());
        match answer(status.as_ref().as_ref(), &Sha256Text::of(&due.signed.payload)) {
            OrderAnswer::Opened => return self.end(due.id, Settled::Done).await,
            OrderAnswer::Refused(problem) => return self.end(due.id, Settled::Failed(problem)).await,
            OrderAnswer::Pending => {}
        }
        match signed_jobs::check(&self.store, due, self.clock.now()).await? {
            Ok(_) => {}
            // The job continues once the clock is corrected.
            Err(TurnedAway::NotHere(NotHere::ClockBehind { .. } | NotHere::NotYet(_))) => return Ok(()),
            Err(why) => {
                let problem = ErrorBody::new(why.code(), chain(&why));
                return self.end(due.id, Settled::Failed(problem)).await;
            }
        }
        let left_out = left_out(args, &self.view.borrow().guests);
        if !left_out.is_empty() {
            let names: Vec<&str> = left_out.iter().map(CustomerId::as_str).collect();
            let text = format!(
                "{} have guests on this host, and the order does not name them: sign it anew",
                names.join(", ")
            );
            return self.end(due.id, Settled::Failed(ErrorBody::new(ErrorCode::ConsentMissing, text))).await;
        }
        let (files, text) = (self.files.clone(), due.signed.to_json()?);
        Ok(tokio::task::spawn_blocking(move || files.put_order(&text)).await??)
    }

    async fn end(&self, id: JobId, end: Settled) -> Result<(), TurnError> {
        match &end {
            Settled::Done => {
                tracing::warn!(action = "job", result = "done", job = %id, "a way into this host was opened");
            }
            Settled::Failed(problem) => {
                tracing::warn!(action = "job", result = "failed", job = %id, %problem, "no way was opened");
            }
        }
        self.store.settle_job(id, end, self.clock.now()).await?;
        let files = self.files.clone();
        Ok(tokio::task::spawn_blocking(move || files.remove_order()).await??)
    }
}

/// The arguments, where a job is one of these.
fn order(due: &DueJob) -> Option<args::BreakGlass> {
    match Payload::parse(&due.signed.payload).ok()?.act {
        Act::BreakGlass(args) => Some(args),
        _ => None,
    }
}
