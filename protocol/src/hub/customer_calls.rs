//! Calls of customers, and of jobs about their guests.

use super::access::{Access, Object};
use super::calls::{CURSOR, Call, Caller, JOB, KEY, LIMIT, change, get, param, text};
use crate::api::{Answer, Method, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::*;
use crate::customer::{CustomerChange, CustomerView, NewCustomer};
use crate::id::CustomerId;
use crate::objection::{GuestJobView, ObjectionRequest};
use crate::operator::{Page, Role};

const CUSTOMER: Param = param(ParamLocation::Path, "customer", "a customer", of::<CustomerId>);
const SEEN: Param =
    param(ParamLocation::Header, "if-match", "the `ETag` of the customer that was changed", text);

const VIEW: Answer = Answer::Done(framed::<CustomerView>);

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::Customers)),
        parts: &[LIMIT, CURSOR],
        ..get(
            "/v1/customers",
            "customers",
            "Customers by name: those that were added, and those that documents and reports name.",
            Answer::Done(framed::<Page<CustomerView>>),
        )
    },
    Call {
        parts: &[KEY],
        refusals: &[IdempotencyMismatch, NameTaken, Quota],
        ..change(
            "/v1/customers",
            ("addCustomer", "Adds a customer."),
            Some(of::<NewCustomer>),
            Answer::Made(framed::<CustomerView>),
        )
    },
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::Customer)),
        parts: &[CUSTOMER],
        refusals: &[NotFound],
        ..get("/v1/customers/{customer}", "customer", "One customer, with its `ETag`.", VIEW)
    },
    Call {
        method: Method::Patch,
        caller: Caller::Operator(Access::staff(Role::Operator, Object::CustomerEntry)),
        parts: &[CUSTOMER, SEEN, KEY],
        refusals: &[IdempotencyMismatch, NotFound, PreconditionFailed, PreconditionRequired],
        ..change(
            "/v1/customers/{customer}",
            ("changeCustomer", "Changes what is written about a customer. What is not named stays."),
            Some(of::<CustomerChange>),
            VIEW,
        )
    },
    Call {
        method: Method::Delete,
        caller: Caller::Operator(Access::staff(Role::Operator, Object::CustomerEntry)),
        parts: &[CUSTOMER, SEEN, KEY],
        refusals: &[IdempotencyMismatch, InUse, NotFound, PreconditionFailed, PreconditionRequired, Size],
        ..change(
            "/v1/customers/{customer}",
            ("removeCustomer", "Removes a customer that no document, report, person or token names."),
            None,
            VIEW,
        )
    },
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::List)),
        parts: &[LIMIT, CURSOR],
        ..get(
            "/v1/jobs",
            "guestJobs",
            "Signed jobs about guests that hosts have taken, the newest first.",
            Answer::Done(framed::<Page<GuestJobView>>),
        )
    },
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::Job)),
        parts: &[JOB, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Quota, UnderWay],
        ..change(
            "/v1/jobs/{job}/objection",
            (
                "objectToJob",
                "Objects to a signed job that waits. Operators see it; it stops nothing by itself.",
            ),
            Some(of::<ObjectionRequest>),
            Answer::Done(framed::<GuestJobView>),
        )
    },
];
