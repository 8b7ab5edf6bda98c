//! Work orders of hosts.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, HostId, WorkOrderId};
use holdfast_protocol::work_order::{OrderAct, WorkOrderDetail, WorkOrderState, WorkOrderView};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::idempotency::By;
use super::{StoreError, Term, WriteError, duty};
use crate::domain::host::HostRef;
use crate::domain::work_order::WorkOrderError;

/// An order to be made.
#[derive(Clone, Debug)]
pub struct NewWorkOrder {
    pub host: HostRef,
    pub id: WorkOrderId,
    pub act: OrderAct,
    pub life_s: u32,
}

/// An order that was made or changed, with the host it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkOrderDone {
    pub host: HostId,
    pub order: WorkOrderView,
}

/// Which orders of a host are listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkOrderFilter {
    /// Only those in this state.
    pub state: Option<WorkOrderState>,
    /// Only those before this number.
    pub before: Option<i64>,
}

/// Work orders of hosts.
#[async_trait]
pub trait WorkOrders: Send + Sync {
    /// A host's orders, newest first. `None` when there is no such host.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn work_orders(
        &self,
        host: HostRef,
        filter: WorkOrderFilter,
        limit: u32,
    ) -> Result<Option<Vec<(i64, WorkOrderView)>>, StoreError>;

    /// One order with the text that was read for it.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn work_order(&self, host: HostRef, id: WorkOrderId)
    -> Result<Option<WorkOrderDetail>, StoreError>;

    /// Makes an order. `None` when there is no such host, or it was let go.
    ///
    /// # Errors
    /// [`WorkOrderError`].
    async fn order_work(
        &self,
        by: By,
        new: NewWorkOrder,
    ) -> Result<Option<WorkOrderDone>, WriteError<WorkOrderError>>;

    /// Asks the host to take an order back. Asking twice changes nothing.
    ///
    /// # Errors
    /// [`WorkOrderError`].
    async fn cancel_work_order(
        &self,
        by: By,
        host: HostRef,
        id: WorkOrderId,
    ) -> Result<Option<WorkOrderDone>, WriteError<WorkOrderError>>;

    /// Ends the orders whose time is over and of which no host has spoken.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn expire_work_orders(
        &self,
        term: &Term<duty::WorkOrders>,
        now: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError>;
}
