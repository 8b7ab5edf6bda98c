//! Calls of sign-in.

use super::access::{Access, Object};
use super::calls::{Call, Caller, KEY, NAME, change, get, param};
use crate::api::{Answer, Method, Needed, Param, ParamLocation, SchemaOf, framed, of};
use crate::code::ErrorCode::*;
use crate::id::SessionId;
use crate::operator::{Page, Role};
use crate::sign_in::{
    CSRF_HEADER, LinkRedemption, LoginRequest, PasswordChange, RecoveryCodes, SessionOpened, SessionView,
    SignInLink, SignInState, TotpConfirmation, TotpOffer, TotpRequest,
};

/// What anybody may do with what is theirs.
const OWN: Caller = Caller::Operator(Access::own(Role::Viewer, Object::Caller));

const ID: Param = param(ParamLocation::Path, "id", "a session", of::<SessionId>);
const CSRF: Param = param(ParamLocation::Header, CSRF_HEADER, "`csrf` of the session", super::calls::text);

/// A call without an identity that opens a session.
const fn opens(path: &'static str, name: &'static str, does: &'static str, body: SchemaOf) -> Call {
    Call {
        method: Method::Post,
        caller: Caller::Anyone,
        body: Some((Needed::Always, body)),
        refusals: &[Forbidden, RateLimited, Unauthenticated],
        ..get(path, name, does, Answer::Done(framed::<SessionOpened>))
    }
}

/// A change by a session.
const fn by_session(
    path: &'static str,
    names: (&'static str, &'static str),
    body: SchemaOf,
    answer: Answer,
) -> Call {
    Call {
        method: Method::Post,
        caller: Caller::Session,
        parts: &[CSRF],
        body: Some((Needed::Always, body)),
        refusals: &[PreconditionFailed, RateLimited],
        ..get(path, names.0, names.1, answer)
    }
}

/// All of them.
pub const CALLS: &[Call] = &[
    opens("/v1/login", "login", "Signs a person in: sets the cookie of a session.", of::<LoginRequest>),
    opens("/v1/sign-in-link", "redeemSignInLink", "Signs a person in by a link, once.", of::<LinkRedemption>),
    Call {
        method: Method::Post,
        caller: Caller::Session,
        parts: &[CSRF],
        ..get("/v1/logout", "logout", "Ends the caller's session.", Answer::Done(framed::<SessionView>))
    },
    Call {
        caller: Caller::Session,
        ..get("/v1/session", "session", "The caller's session.", Answer::Done(framed::<SessionOpened>))
    },
    Call {
        caller: OWN,
        ..get(
            "/v1/sessions",
            "sessions",
            "Open sessions, the newest first: one's own, for admins of everything those of everybody.",
            Answer::Done(framed::<Page<SessionView>>),
        )
    },
    Call {
        method: Method::Delete,
        caller: OWN,
        parts: &[ID, CSRF],
        refusals: &[NotFound],
        ..get(
            "/v1/sessions/{id}",
            "endSession",
            "Ends a session: one's own, for admins of everything anybody's.",
            Answer::Done(framed::<SessionView>),
        )
    },
    by_session(
        "/v1/password",
        ("setPassword", "Sets the caller's password, and ends all their other sessions."),
        of::<PasswordChange>,
        Answer::Done(framed::<SignInState>),
    ),
    by_session(
        "/v1/totp",
        (
            "beginTotp",
            "Gives the secret for an authenticator. One in use stays until the new one is confirmed.",
        ),
        of::<TotpRequest>,
        Answer::Done(framed::<TotpOffer>),
    ),
    by_session(
        "/v1/totp/confirm",
        ("confirmTotp", "Puts the authenticator into use, and gives new recovery codes."),
        of::<TotpConfirmation>,
        Answer::Done(framed::<RecoveryCodes>),
    ),
    Call {
        caller: Caller::Operator(Access::staff(Role::Admin, Object::Person)),
        parts: &[NAME, KEY],
        ..change(
            "/v1/operators/{name}/sign-in-link",
            (
                "makeSignInLink",
                "Makes a link by which an operator sets a password and an authenticator, once.",
            ),
            None,
            Answer::Made(framed::<SignInLink>),
        )
    },
];
