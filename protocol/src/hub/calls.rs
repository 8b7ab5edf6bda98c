//! Calls of operators about hosts, documents, jobs and operators.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::access::{Access, Object};
use crate::api::{self, Answer, Method, Needed, Param, ParamLocation, SchemaOf, framed, of};
use crate::code::ErrorCode::{self, *};
use crate::escrow::{EscrowFiles, EscrowList, EscrowNumber, EscrowRead};
use crate::filter::{GuestFilter, HostFilter};
use crate::grant_change::{GrantChanged, GrantPut};
use crate::guest_audit::GuestAuditView;
use crate::host_label::LabelChange;
use crate::id::{EnrollmentRequestId, GuestUid, HostId, IdempotencyKey, JobId, OperatorName};
use crate::operator::{
    AuditEvidence, DesiredPut, DesiredVersion, EnrollmentApproval, EnrollmentRequestView, EventView,
    GuestOnHost, HostDetail, HostView, InviteCreated, InviteRequest, JobDetail, JobSubmit, JobView,
    OperatorMade, OperatorRequest, OperatorView, Page, Role, UpdateWindowsPut, WhoAmI,
};
use crate::resource::requests::ChangeAnswer;
use crate::restore::{RestoreOrder, RestoreRequest, WithdrawRequest};
use crate::restore_certificate::CertificateView;
use crate::usage::{UsageSeries, UsageSpan};

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Anyone who reaches the address.
    Anyone,
    /// An agent, by its client certificate.
    Agent,
    /// A person or a machine, by a token, or a person by a session.
    Operator(Access),
    /// A person, by the cookie of a session.
    Session,
}

impl api::Caller for Caller {
    fn refusals(self) -> &'static [ErrorCode] {
        match self {
            Self::Anyone => &[Busy, Internal, Range, Unavailable],
            Self::Agent => &[Busy, Certificate, Frozen, Internal, Range, Replaced, Revoked, Unavailable],
            Self::Operator(_) | Self::Session => {
                &[Busy, Forbidden, Internal, Range, RateLimited, Unauthenticated, Unavailable]
            }
        }
    }

    fn body_refusals(self) -> &'static [ErrorCode] {
        &[DuplicateKey, Missing, Size, Syntax, UnknownField, Version]
    }

    fn scheme(self) -> Option<&'static str> {
        match self {
            Self::Anyone => None,
            Self::Agent => Some("certificate"),
            Self::Operator(_) => Some("token"),
            Self::Session => Some("session"),
        }
    }
}

/// One call of the hub.
pub type Call = api::Call<Caller>;

pub(super) const fn param(
    location: ParamLocation,
    name: &'static str,
    says: &'static str,
    schema: SchemaOf,
) -> Param {
    Param { location, name, says, schema }
}

pub(super) const KEY: Param = param(
    ParamLocation::Header,
    "idempotency-key",
    "the same key with the same request is answered as the first time, and changes nothing more",
    of::<IdempotencyKey>,
);
pub(super) const HOST: Param = param(ParamLocation::Path, "host", "id or name of a host", text);
const GUEST: Param = param(ParamLocation::Path, "guest", "the uid of a guest", of::<GuestUid>);
const REQUEST: Param = param(ParamLocation::Path, "id", "an enrollment request", of::<EnrollmentRequestId>);
pub(super) const JOB: Param = param(ParamLocation::Path, "job", "a signed job", of::<JobId>);
pub(super) const NAME: Param = param(ParamLocation::Path, "name", "an operator", of::<OperatorName>);
pub(super) const NUMBER: Param = param(ParamLocation::Path, "number", "a version", of::<EscrowNumber>);
const OF_HOST_NAME: Param = param(ParamLocation::Query, "host", "only this host, by its id or name", text);
const SPAN: Param = param(ParamLocation::Query, "span", "how far back; `2h` by default", of::<UsageSpan>);
const OF_GUEST: Param =
    param(ParamLocation::Query, "guest", "one of its guests, not the host", of::<GuestUid>);
pub(super) const LIMIT: Param =
    param(ParamLocation::Query, "limit", "how many items a page has at most", number);
pub(super) const CURSOR: Param = param(ParamLocation::Query, "cursor", "`next` of the page before", text);
pub(super) const OF_HOST: Param = param(ParamLocation::Query, "host", "only of this host", of::<HostId>);
const OF_HOSTS: Param =
    param(ParamLocation::Query, "filter", "only these hosts: see `HostFilter`", of::<HostFilter>);
const WITH_TEXT: Param =
    param(ParamLocation::Query, "text", "only with these words in its kind or its sentence", text);
pub(super) const OF_GUESTS: Param =
    param(ParamLocation::Query, "filter", "only these guests: see `GuestFilter`", of::<GuestFilter>);
pub(super) const SEEN: Param = param(
    ParamLocation::Header,
    "if-match",
    "the `ETag` of the document that was changed, `\"0\"` for the first",
    text,
);

const SEEN_GRANT: Param =
    param(ParamLocation::Header, "if-match", "the `ETag` of the person that was changed", text);

pub(super) const DRY_RUN: Param = param(
    ParamLocation::Query,
    "dry_run",
    "`true` answers what the change would do, and changes nothing",
    truth,
);

fn truth(generator: &mut SchemaGenerator) -> Schema {
    bool::json_schema(generator)
}

pub(super) fn text(generator: &mut SchemaGenerator) -> Schema {
    String::json_schema(generator)
}

fn number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1 })
}

pub(super) const fn get(path: &'static str, name: &'static str, does: &'static str, answer: Answer) -> Call {
    let (method, caller) = (Method::Get, Caller::Operator(Access::of(path, Role::Viewer)));
    Call { method, path, name, does, caller, parts: &[], body: None, answer, refusals: &[] }
}

/// A list that customers see their part of.
const OWN_LIST: Caller = Caller::Operator(Access::own(Role::Viewer, Object::List));

/// A guest that its customer sees.
const OWN_GUEST: Caller = Caller::Operator(Access::own(Role::Viewer, Object::Guest));

/// A change by an operator.
pub(super) const fn change(
    path: &'static str,
    names: (&'static str, &'static str),
    body: Option<SchemaOf>,
    answer: Answer,
) -> Call {
    let body = match body {
        Some(schema) => Some((Needed::Always, schema)),
        None => None,
    };
    let call = get(path, names.0, names.1, answer);
    Call {
        method: Method::Post,
        caller: Caller::Operator(Access::of(path, Role::Operator)),
        parts: &[HOST, KEY],
        body,
        refusals: &[IdempotencyMismatch, NotFound, Size],
        ..call
    }
}

/// Those of hosts, documents, jobs and operators.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::Caller)),
        ..get(
            "/v1/whoami",
            "whoami",
            "Name, role and scope of the token's holder.",
            Answer::Done(framed::<WhoAmI>),
        )
    },
    Call {
        parts: &[KEY],
        refusals: &[IdempotencyMismatch, NameTaken],
        ..change(
            "/v1/invites",
            ("createInvite", "Makes an invite for a host."),
            Some(of::<InviteRequest>),
            Answer::Made(framed::<InviteCreated>),
        )
    },
    Call {
        caller: OWN_LIST,
        parts: &[OF_HOST_NAME, OF_GUESTS, LIMIT, CURSOR],
        refusals: &[NotFound],
        ..get(
            "/v1/guests",
            "guests",
            "Guests of hosts that were not let go, by host. A page may be shorter than its limit, and not the last.",
            Answer::Done(framed::<Page<GuestOnHost>>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Viewer, Object::List)),
        parts: &[OF_HOSTS, LIMIT, CURSOR],
        ..get(
            "/v1/hosts",
            "hosts",
            "Hosts by name. With a filter, a page may be shorter than its limit, and not the last.",
            Answer::Done(framed::<Page<HostView>>),
        )
    },
    Call {
        parts: &[HOST],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}",
            "host",
            "One host with its last report.",
            Answer::Done(framed::<HostDetail>),
        )
    },
    change(
        "/v1/hosts/{host}/revoke",
        ("revokeHost", "Takes a host's certificates back."),
        None,
        Answer::Done(framed::<HostView>),
    ),
    // Labels decide who may touch a host, so they are the hub's.
    Call {
        caller: Caller::Operator(Access::staff(Role::Operator, Object::Hub)),
        ..change(
            "/v1/hosts/{host}/labels",
            ("changeHostLabels", "Sets and removes labels of a host."),
            Some(of::<LabelChange>),
            Answer::Done(framed::<HostView>),
        )
    },
    Call {
        method: Method::Put,
        ..change(
            "/v1/hosts/{host}/update-windows",
            ("putUpdateWindows", "Says when rollouts may offer a host a release."),
            Some(of::<UpdateWindowsPut>),
            Answer::Done(framed::<HostView>),
        )
    },
    Call {
        refusals: &[IdempotencyMismatch, JobUnbound, NotFound, NotYours, Revoked],
        ..change(
            "/v1/hosts/{host}/restore",
            (
                "inviteRestore",
                "Makes an invite by which another machine takes a host's place, for a signed order.",
            ),
            Some(of::<RestoreRequest>),
            Answer::Made(framed::<InviteCreated>),
        )
    },
    Call {
        refusals: &[IdempotencyMismatch, NotFound, NotYours],
        ..change(
            "/v1/hosts/{host}/restore/withdraw",
            ("withdrawRestore", "Takes such an order back, by a signed withdrawal."),
            Some(of::<WithdrawRequest>),
            Answer::Done(framed::<RestoreOrder>),
        )
    },
    Call {
        parts: &[HOST],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/escrow",
            "hostEscrow",
            "Lists the versions of a host's wrapped key, without their bytes.",
            Answer::Done(framed::<EscrowList>),
        )
    },
    Call {
        refusals: &[IdempotencyMismatch, NotFound, NoticeUnset],
        ..change(
            "/v1/hosts/{host}/escrow/read",
            ("readHostEscrow", "Reads versions of a host's wrapped key. Their customer is notified."),
            Some(of::<EscrowRead>),
            Answer::Done(framed::<EscrowFiles>),
        )
    },
    Call {
        caller: OWN_GUEST,
        parts: &[HOST, GUEST],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/guests/{guest}/audit",
            "guestAudit",
            "The newest audit records about a guest.",
            Answer::Done(framed::<GuestAuditView>),
        )
    },
    Call {
        caller: OWN_GUEST,
        parts: &[HOST, GUEST],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/guests/{guest}/restore-certificate",
            "restoreCertificate",
            "The newest restore certificate of a guest.",
            Answer::Done(framed::<CertificateView>),
        )
    },
    Call {
        parts: &[HOST],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/desired",
            "desired",
            "The newest desired document of a host, with its `ETag`.",
            Answer::Done(framed::<DesiredVersion>),
        )
    },
    Call {
        method: Method::Put,
        parts: &[HOST, SEEN, KEY, DRY_RUN],
        refusals: &[
            GenerationConflict,
            GenerationJump,
            IdempotencyMismatch,
            NotFound,
            PreconditionFailed,
            PreconditionRequired,
            StaleGeneration,
            Unsupported,
        ],
        ..change(
            "/v1/hosts/{host}/desired",
            ("putDesired", "Puts the next desired document of a host."),
            Some(of::<DesiredPut>),
            Answer::Done(framed::<ChangeAnswer<DesiredVersion>>),
        )
    },
    Call {
        parts: &[HOST, LIMIT, CURSOR],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/desired/history",
            "desiredHistory",
            "Earlier desired documents of a host, the newest first.",
            Answer::Done(framed::<Page<DesiredVersion>>),
        )
    },
    Call {
        parts: &[HOST],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/audit-heads",
            "auditHeads",
            "Ends of the host's audit that were reported, and evidence of another history.",
            Answer::Done(framed::<AuditEvidence>),
        )
    },
    Call {
        parts: &[OF_HOST_NAME],
        refusals: &[NotFound],
        ..get("/metrics", "metrics", "The fleet, or one host, in Prometheus' text format.", Answer::Text)
    },
    Call {
        parts: &[HOST, SPAN, OF_GUEST],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/usage",
            "usage",
            "What a host or one of its guests used over time.",
            Answer::Done(framed::<UsageSeries>),
        )
    },
    Call {
        parts: &[HOST, LIMIT, CURSOR],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/jobs",
            "jobs",
            "Signed jobs of a host, the newest first.",
            Answer::Done(framed::<Page<JobView>>),
        )
    },
    Call {
        refusals: &[IdempotencyMismatch, NameTaken, NotFound, Quota, UnderWay],
        ..change(
            "/v1/hosts/{host}/jobs",
            ("submitJob", "Leaves a signed job for a host."),
            Some(of::<JobSubmit>),
            Answer::Made(framed::<JobView>),
        )
    },
    Call {
        parts: &[HOST, JOB],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/jobs/{job}",
            "job",
            "One signed job with its text.",
            Answer::Done(framed::<JobDetail>),
        )
    },
    Call {
        parts: &[HOST, JOB, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size, UnderWay],
        ..change(
            "/v1/hosts/{host}/jobs/{job}/withdraw",
            ("withdrawJob", "Takes a signed job back that the host has not seen."),
            None,
            Answer::Done(framed::<JobView>),
        )
    },
    Call {
        parts: &[LIMIT, CURSOR],
        ..get(
            "/v1/enrollment-requests",
            "enrollmentRequests",
            "Enrollment requests, the oldest first.",
            Answer::Done(framed::<Page<EnrollmentRequestView>>),
        )
    },
    Call {
        parts: &[REQUEST, KEY],
        refusals: &[Csr, IdempotencyMismatch, NameTaken, NotFound, PreconditionFailed, Refused],
        ..change(
            "/v1/enrollment-requests/{id}/approve",
            ("approveEnrollment", "Approves an enrollment request of this fingerprint."),
            Some(of::<EnrollmentApproval>),
            Answer::Done(framed::<EnrollmentRequestView>),
        )
    },
    Call {
        parts: &[REQUEST, KEY],
        refusals: &[IdempotencyMismatch, NotFound, PreconditionFailed, Size],
        ..change(
            "/v1/enrollment-requests/{id}/refuse",
            ("refuseEnrollment", "Refuses an enrollment request for good."),
            None,
            Answer::Done(framed::<EnrollmentRequestView>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Admin, Object::List)),
        ..get(
            "/v1/operators",
            "operators",
            "All people within the caller's own role and scope.",
            Answer::Done(framed::<Page<OperatorView>>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Admin, Object::New)),
        parts: &[KEY],
        refusals: &[IdempotencyMismatch, NameTaken],
        ..change(
            "/v1/operators",
            (
                "makeOperator",
                "Makes a person of at most the caller's role and scope, or another token for one.",
            ),
            Some(of::<OperatorRequest>),
            Answer::Made(framed::<OperatorMade>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Admin, Object::Person)),
        parts: &[NAME],
        refusals: &[NotFound],
        ..get(
            "/v1/operators/{name}",
            "operator",
            "One person within the caller's own role and scope, with their `ETag`.",
            Answer::Done(framed::<OperatorView>),
        )
    },
    Call {
        method: Method::Put,
        caller: Caller::Operator(Access::staff(Role::Admin, Object::Person)),
        parts: &[NAME, SEEN_GRANT, KEY],
        refusals: &[IdempotencyMismatch, NotFound, PreconditionFailed, PreconditionRequired],
        ..change(
            "/v1/operators/{name}/grant",
            (
                "changeGrant",
                "Changes a person's role and scope to at most the caller's own, for all their tokens and sessions at once.",
            ),
            Some(of::<GrantPut>),
            Answer::Done(framed::<GrantChanged>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Admin, Object::Person)),
        parts: &[NAME, KEY],
        refusals: &[IdempotencyMismatch, NotFound, PreconditionFailed, Size],
        ..change(
            "/v1/operators/{name}/revoke",
            ("revokeOperator", "Ends all tokens of a person, and those of the machines that they made."),
            None,
            Answer::Done(framed::<OperatorView>),
        )
    },
    Call {
        caller: OWN_LIST,
        parts: &[LIMIT, CURSOR, OF_HOST, WITH_TEXT],
        ..get("/v1/events", "events", "The log, the newest first.", Answer::Done(framed::<Page<EventView>>))
    },
];
