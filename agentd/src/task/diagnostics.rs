//! The task that carries out ordered readings of the host.
//!
//! In: orders from the store, the agent's own report, Proxmox's running tasks. Out: one bounded text for each order, in
//! the store, from where it goes to the hub. Deliberately absent: commands; what can be read is a closed list
//! (`plan::diagnose`).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::json::chain;
use holdfast_protocol::report::Sections;
use holdfast_protocol::work_order::{DiagnosticName, OrderAct, OrderResult};
use jiff::Timestamp;
use tokio::sync::watch;

use super::stop::Stop;
use crate::plan::diagnose::{self, RunningTask, Sources};
use crate::port::clock::Clock;
use crate::port::pve::{Pve, Upid};
use crate::port::store::work_order::OpenReading;
use crate::port::store::{Store, StoreError};

/// Proxmox answers within this, or the text says that it did not: a person at the admin socket waits for it.
const TASKS_WAIT: Duration = Duration::from_secs(3);

/// An order waits for the first observation of the host, and is looked at again meanwhile.
const AGAIN: Duration = Duration::from_secs(10);

/// Asks Proxmox for its running tasks, or says why it did not answer.
pub type TasksCall =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Vec<Upid>, String>> + Send>> + Send + Sync>;

/// The running tasks of this Proxmox.
pub fn tasks_of(pve: &Arc<dyn Pve>) -> TasksCall {
    let pve = Arc::clone(pve);
    Arc::new(move || {
        let pve = Arc::clone(&pve);
        Box::pin(async move { pve.running_tasks().await.map_err(|error| chain(&error).to_string()) })
    })
}

/// Reads what a text is made from.
#[derive(Clone)]
pub struct Reader {
    pub sections: watch::Receiver<Arc<Sections>>,
    pub tasks: TasksCall,
    pub clock: Arc<dyn Clock>,
}

impl Reader {
    /// One text, now.
    pub async fn text(&self, name: DiagnosticName, guest: Option<GuestUid>) -> String {
        let tasks = match name {
            DiagnosticName::Locks => self.tasks().await,
            DiagnosticName::Doctor
            | DiagnosticName::Storage
            | DiagnosticName::Network
            | DiagnosticName::Journal
            | DiagnosticName::GuestAgent => Ok(Vec::new()),
        };
        let sections = Arc::clone(&self.sections.borrow());
        let tasks = tasks.as_deref().map_err(String::as_str);
        diagnose::text(name, guest, Sources { sections: &sections, tasks, now: self.clock.now() })
    }

    async fn tasks(&self) -> Result<Vec<RunningTask>, String> {
        let asked = tokio::time::timeout(TASKS_WAIT, (self.tasks)()).await;
        let tasks = asked.map_err(|_| "Proxmox did not answer in time".to_owned())??;
        let facts = |upid: &Upid| RunningTask {
            upid: upid.as_str().to_owned(),
            kind: upid.kind().to_owned(),
            subject: upid.subject().to_owned(),
            owner: upid.owner().to_owned(),
            since: i64::try_from(upid.start_epoch_s()).ok().and_then(|at| Timestamp::from_second(at).ok()),
        };
        Ok(tasks.iter().map(facts).collect())
    }

    /// Before the first observation nothing is known of guests.
    fn is_ready(&self) -> bool {
        self.sections.borrow().guests.is_some()
    }
}

/// The task.
pub struct DiagnosticsTask {
    pub store: Store,
    pub reader: Reader,
}

impl DiagnosticsTask {
    /// Reads until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut changes = self.store.changes();
        loop {
            let seen = changes.borrow_and_update().requests;
            let waits = match self.carry_out().await {
                Ok(waits) => waits,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "an ordered reading could not be kept");
                    true
                }
            };
            let again = async {
                if waits {
                    self.reader.clock.sleep(AGAIN).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                () = stop.requested() => return,
                changed = changes.wait_for(|now| now.requests != seen) => if changed.is_err() { return },
                () = again => {}
            }
        }
    }

    /// Whether some wait for the first observation.
    async fn carry_out(&self) -> Result<bool, StoreError> {
        let mut waits = false;
        if self.store.refusal().is_some() {
            return Ok(true);
        }
        for OpenReading { id, act, expires_at, .. } in self.store.open_readings().await? {
            let OrderAct::CollectDiagnostics { name, guest } = act else { continue };
            let now = self.reader.clock.now();
            if now >= expires_at {
                let text = "its time was over before the host could be read: order it anew";
                let problem = ErrorBody::new(ErrorCode::Unavailable, text);
                self.store.settle_reading(id, Err(problem), now).await?;
            } else if self.reader.is_ready() {
                let text = self.reader.text(name, guest).await;
                let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
                let result = OrderResult::Diagnostics { name, bytes };
                self.store.settle_reading(id, Ok((result, Some(text))), now).await?;
                tracing::info!(action = "diagnostics", result = "ok", order = %id, name = name.as_str());
            } else {
                waits = true;
            }
        }
        Ok(waits)
    }
}
