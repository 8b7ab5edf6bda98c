//! Calls of machine tokens.

use super::access::{Access, Object};
use super::calls::{Call, Caller, KEY, NAME, change, get};
use crate::api::{Answer, Param, framed, of};
use crate::code::ErrorCode::*;
use crate::machine_token::{TokenMade, TokenRequest, TokenRotation, TokenView};
use crate::operator::{Page, Role};

const TOKEN: Param = Param { says: "a machine token", ..NAME };

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::List)),
        ..get(
            "/v1/tokens",
            "tokens",
            "Machine tokens of the caller; for admins, those of all that they stand above.",
            Answer::Done(framed::<Page<TokenView>>),
        )
    },
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::New)),
        parts: &[KEY],
        refusals: &[IdempotencyMismatch, NameTaken, Quota],
        ..change(
            "/v1/tokens",
            ("createToken", "Makes a token for a machine, of at most the caller's role and scope."),
            Some(of::<TokenRequest>),
            Answer::Made(framed::<TokenMade>),
        )
    },
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::Token)),
        parts: &[TOKEN, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Quota],
        ..change(
            "/v1/tokens/{name}/rotate",
            ("rotateToken", "Makes the next secret of a token. Those before it go on for the overlap."),
            Some(of::<TokenRotation>),
            Answer::Done(framed::<TokenMade>),
        )
    },
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::Token)),
        parts: &[TOKEN, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size],
        ..change(
            "/v1/tokens/{name}/revoke",
            ("revokeToken", "Ends all secrets of a token at once."),
            None,
            Answer::Done(framed::<TokenView>),
        )
    },
];
