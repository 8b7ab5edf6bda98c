//! Calls of work orders.

use super::calls::{CURSOR, Call, HOST, KEY, LIMIT, change, get, param};
use crate::api::{Answer, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::*;
use crate::id::WorkOrderId;
use crate::operator::Page;
use crate::work_order::{WorkOrderDetail, WorkOrderRequest, WorkOrderState, WorkOrderView};

const ORDER: Param = param(ParamLocation::Path, "order", "a work order", of::<WorkOrderId>);
const STATE: Param = param(ParamLocation::Query, "state", "only those in this state", of::<WorkOrderState>);

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        parts: &[HOST, STATE, LIMIT, CURSOR],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/work-orders",
            "workOrders",
            "Work orders of a host, the newest first.",
            Answer::Done(framed::<Page<WorkOrderView>>),
        )
    },
    Call {
        parts: &[HOST, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Quota],
        ..change(
            "/v1/hosts/{host}/work-orders",
            ("orderWork", "Orders something from a host that loses nothing and needs no signature."),
            Some(of::<WorkOrderRequest>),
            Answer::Made(framed::<WorkOrderView>),
        )
    },
    Call {
        parts: &[HOST, ORDER],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/work-orders/{order}",
            "workOrder",
            "One work order, with the text that was read for it.",
            Answer::Done(framed::<WorkOrderDetail>),
        )
    },
    Call {
        parts: &[HOST, ORDER, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size, UnderWay],
        ..change(
            "/v1/hosts/{host}/work-orders/{order}/cancel",
            ("cancelWorkOrder", "Takes an order back that has not begun. The host has the last word."),
            None,
            Answer::Done(framed::<WorkOrderView>),
        )
    },
];
