//! Calls of snapshots of state.

use schemars::{Schema, SchemaGenerator};

use super::calls::{CURSOR, Call, LIMIT, get, param};
use crate::api::{Answer, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::*;
use crate::filter::GuestFilter;
use crate::id::CustomerId;
use crate::operator::Page;
use crate::state::StateSnapshotView;

const CUSTOMER: Param = param(
    ParamLocation::Query,
    "customer",
    "only the guests of this customer, and of hosts only what concerns them",
    of::<CustomerId>,
);
const FILTER: Param =
    param(ParamLocation::Query, "filter", "only these guests: see `GuestFilter`", of::<GuestFilter>);
const NUMBER: Param = param(ParamLocation::Path, "number", "a kept snapshot", number);

fn number(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "integer", "minimum": 1 })
}

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        parts: &[CUSTOMER, FILTER],
        ..get(
            "/v1/state",
            "state",
            "The state of all hosts now, as lines of `StateLine`: head, hosts by name, tail with digests.",
            Answer::Bytes,
        )
    },
    Call {
        parts: &[LIMIT, CURSOR],
        ..get(
            "/v1/state-snapshots",
            "stateSnapshots",
            "The snapshots of state that the hub keeps, the newest first.",
            Answer::Done(framed::<Page<StateSnapshotView>>),
        )
    },
    Call {
        parts: &[NUMBER, CUSTOMER],
        refusals: &[NotFound],
        ..get(
            "/v1/state-snapshots/{number}",
            "stateSnapshot",
            "A kept snapshot of state, as lines of `StateLine`.",
            Answer::Bytes,
        )
    },
];
