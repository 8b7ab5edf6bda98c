//! Calls of sign-in by a provider.

use super::access::{Access, Object};
use super::calls::{Call, Caller, KEY, NAME, change, get};
use crate::api::{Answer, Method, Needed, framed, of};
use crate::code::ErrorCode::*;
use crate::oidc::{ProviderLink, ProviderPerson};
use crate::operator::Role;

const ADMIN: Caller = Caller::Operator(Access::staff(Role::Admin, Object::Person));

const PATH: &str = "/v1/operators/{name}/oidc";

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: ADMIN,
        parts: &[NAME],
        refusals: &[NotFound],
        ..get(
            PATH,
            "providerLink",
            "Who an operator is at the provider.",
            Answer::Done(framed::<ProviderLink>),
        )
    },
    Call {
        method: Method::Put,
        caller: ADMIN,
        parts: &[NAME, KEY],
        body: Some((Needed::Always, of::<ProviderPerson>)),
        refusals: &[IdempotencyMismatch, NameTaken, NotFound, PreconditionFailed],
        ..change(
            PATH,
            ("linkProvider", "Lets an operator sign in by the hub's provider. It replaces a link before."),
            None,
            Answer::Done(framed::<ProviderLink>),
        )
    },
    Call {
        method: Method::Delete,
        caller: ADMIN,
        parts: &[NAME, KEY],
        refusals: &[IdempotencyMismatch, NotFound],
        ..change(
            PATH,
            ("unlinkProvider", "Ends the link of an operator, and their sessions."),
            None,
            Answer::Done(framed::<ProviderLink>),
        )
    },
];
