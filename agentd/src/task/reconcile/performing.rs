//! Operations under way, each in its own task.
//!
//! In: what the plan begins. Out: journals that record it before anything is done. Deliberately absent: which operation
//! is first (`arrivals`).

use std::time::Duration;

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CustomerId, GuestUid, OperationId, Vmid};
use holdfast_protocol::json::chain;
use tracing::Instrument as _;
use uuid::Uuid;

use super::{Reconcile, State};
use crate::execute::failpoint::{Moment, Point, Side, pass};
use crate::execute::run;
use crate::model::limits;
use crate::operation::progress::OperationState;
use crate::port::store::StoreError;
use crate::port::store::journal::{NewOperation, OpenOperationError};
use crate::task::admission::{Begin, Origin};

impl Reconcile {
    /// Takes up operations that are open and that no task performs.
    pub(super) async fn take_up(&self, state: &mut State) -> Result<(), StoreError> {
        if self.ports.store.refusal().is_some() {
            return Ok(());
        }
        let open = self.ports.store.open_operations().await?;
        let left: Vec<OperationState> =
            open.into_iter().filter(|progress| !state.ids.contains_key(&progress.id)).collect();
        run::sit_down(&self.ports, left.iter());
        for progress in left {
            self.perform(state, progress);
        }
        Ok(())
    }

    pub(super) async fn open(
        &self,
        state: &mut State,
        Begin { action, origin }: Begin,
        generation: Generation,
    ) -> Result<(), StoreError> {
        if self.ports.store.refusal().is_some() || state.ids.len() >= limits::OPERATIONS_AT_ONCE {
            return Ok(());
        }
        let id = match origin {
            Origin::Document => OperationId::new(Uuid::now_v7()),
            Origin::Request(id) | Origin::Job(id) => id,
        };
        let new = NewOperation {
            id,
            operation: action.operation,
            generation,
            reason: action.reason,
            at: self.ports.clock.now(),
        };
        self.reach(Side::Before).await;
        let opened = match origin {
            Origin::Document => match action.growth {
                Some(growth) => self.ports.store.open_growing(new, *growth).await,
                None => self.ports.store.open_operation(new).await,
            },
            Origin::Request(_) => self.ports.store.open_request(new).await,
            Origin::Job(_) => self.ports.store.open_job(new).await,
        };
        self.reach(Side::After).await;
        match opened {
            Ok(progress) => self.perform(state, progress),
            // The next cycle sees it as open.
            Err(OpenOperationError::Busy(guest)) => {
                tracing::debug!(%guest, "an operation is under way already")
            }
            Err(OpenOperationError::Ended(request)) => {
                tracing::debug!(%request, "the request was cancelled before its turn came");
            }
            Err(OpenOperationError::Store(error)) => return Err(error),
        }
        Ok(())
    }

    /// Where tests stop the world: the dead do nothing more.
    pub(super) async fn reach(&self, side: Side) {
        let point = Point { step: "operation", side, moment: Moment::Opened };
        pass(self.ports.failpoints.as_ref(), point).await;
    }

    /// The customer of a guest, by the last cycle; none of a guest that is being made.
    fn customer(&self, uid: GuestUid) -> Option<CustomerId> {
        let view = self.view.borrow();
        view.guests.iter().find(|guest| guest.uid == Some(uid))?.customer.clone()
    }

    pub(super) fn perform(&self, state: &mut State, progress: OperationState) {
        let (id, vmid) = (progress.id, progress.vmid());
        state.ids.insert(id, vmid);
        let ports = self.ports.clone();
        let span = tracing::info_span!(
            "operation",
            operation = %id,
            guest = %progress.operation.uid(),
            customer = self.customer(progress.operation.uid()).map(tracing::field::display),
            correlation_id = progress.correlation.map(tracing::field::display)
        );
        let work = async move {
            let action = progress.operation.kind().as_str();
            match run::run(&ports, progress).await {
                Ok(done) => {
                    tracing::info!(action, result = done.wire_status().as_str(), "an operation ended");
                    (id, done.vmid())
                }
                Err(stopped) => {
                    tracing::error!(
                        action,
                        result = "stopped",
                        error = chain(&stopped),
                        "an operation stopped where it stands"
                    );
                    // It is taken up again, but not at once: otherwise a full disk would be tried without end.
                    ports.clock.sleep(Duration::from_secs(5)).await;
                    (id, vmid)
                }
            }
        };
        state.under_way.spawn(work.instrument(span));
    }

    pub(super) fn ended(
        &mut self,
        state: &mut State,
        ended: Option<Result<(OperationId, Option<Vmid>), tokio::task::JoinError>>,
    ) {
        match ended {
            Some(Ok((id, vmid))) => {
                let before = state.ids.remove(&id).flatten();
                for vmid in vmid.into_iter().chain(before) {
                    self.eye.touch(vmid);
                }
            }
            Some(Err(error)) => {
                tracing::error!(%error, "an operation's task broke");
                // It is no longer known which one it was: every operation that is still open is taken up again.
                if state.under_way.is_empty() {
                    state.ids.clear();
                }
            }
            None => {}
        }
    }
}
