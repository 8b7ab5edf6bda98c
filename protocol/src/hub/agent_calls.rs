//! Calls of agents, and those that need no identity.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, json_schema};

use super::calls::{Call, Caller, NUMBER, get, param};
use crate::api::{Answer, Method, Needed, Param, ParamLocation, SchemaOf, framed, of};
use crate::checkin::{CheckinAnswer, CheckinRequest, WAIT_SECONDS_MAX};
use crate::code::ErrorCode::{self, *};
use crate::enrol::{Enrolled, EnrollmentAnswer, EnrollmentRequest, InviteRedemption, RenewRequest};
use crate::escrow::{EscrowFound, EscrowKept, EscrowList, EscrowOpened, EscrowProof, EscrowPut};
use crate::guest_audit::{GuestAuditKept, GuestAuditPut};
use crate::job::Nonce;
use crate::restore::{Replacement, RestoreRedeem, Restored};
use crate::restore_certificate::{CertificateKept, CertificatePut};

type Probe = BTreeMap<String, String>;

const NONCE: Param = param(ParamLocation::Query, "nonce", "what the proof is made with", of::<Nonce>);
const WAIT: Param =
    param(ParamLocation::Query, "wait", "how long the answer may be held back until there is news", wait);

fn wait(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9]+s$", "description": format!("`0s` to `{WAIT_SECONDS_MAX}s`") })
}

/// A call of an agent.
pub(super) const fn agent(
    method: Method,
    path: &'static str,
    names: (&'static str, &'static str),
    body: Option<(Needed, SchemaOf)>,
    answer: SchemaOf,
) -> Call {
    let answer = Answer::Done(answer);
    Call { method, caller: Caller::Agent, body, ..get(path, names.0, names.1, answer) }
}

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Anyone,
        ..get("/healthz", "healthz", "Whether the hub runs.", Answer::Done(framed::<Probe>))
    },
    Call {
        caller: Caller::Anyone,
        ..get("/readyz", "readyz", "Whether the database answers.", Answer::Done(framed::<Probe>))
    },
    Call {
        caller: Caller::Anyone,
        ..get("/v1/openapi.json", "openapi", "This document.", Answer::Description)
    },
    Call {
        method: Method::Post,
        caller: Caller::Anyone,
        body: Some((Needed::Always, of::<InviteRedemption>)),
        refusals: &[Csr, InviteExpired, InviteUnknown, InviteUsed, NameTaken],
        ..get("/v1/enroll", "enroll", "Trades an invite for a certificate.", Answer::Done(framed::<Enrolled>))
    },
    Call {
        method: Method::Post,
        caller: Caller::Anyone,
        body: Some((Needed::Always, of::<EnrollmentRequest>)),
        refusals: &[Csr, NameTaken, NotFound, PreconditionFailed, RateLimited, Refused],
        ..get(
            "/v1/enrollment-requests",
            "requestEnrollment",
            "Asks to be enrolled without an invite; a repeat asks how that stands.",
            Answer::DoneOrTaken(framed::<EnrollmentAnswer>),
        )
    },
    Call {
        method: Method::Post,
        caller: Caller::Anyone,
        body: Some((Needed::Always, of::<RestoreRedeem>)),
        refusals: &[Csr, InviteExpired, InviteUnknown, InviteUsed, InviteWithdrawn, NotYours, Revoked],
        ..get(
            "/v1/restore",
            "restore",
            "Trades a restore invite for the place of a lost host.",
            Answer::Done(framed::<Restored>),
        )
    },
    Call {
        refusals: &[Csr],
        ..agent(
            Method::Post,
            "/v1/renew",
            ("renew", "Trades the present certificate for the next one."),
            Some((Needed::Always, of::<RenewRequest>)),
            framed::<Enrolled>,
        )
    },
    Call {
        parts: &[WAIT],
        refusals: &[RateLimited],
        ..agent(
            Method::Post,
            "/v1/agent/checkin",
            ("checkIn", "Reports how the host is, and hears what it should be."),
            Some((Needed::Always, of::<CheckinRequest>)),
            framed::<CheckinAnswer>,
        )
    },
    Call {
        refusals: &[NotFound],
        ..agent(
            Method::Post,
            "/v1/agent/replacement",
            ("replacement", "By what order another machine took this one's place."),
            None,
            framed::<Replacement>,
        )
    },
    Call {
        refusals: &[
            EscrowBroken,
            ErrorCode::EscrowNumber,
            EscrowOther,
            EscrowTaken,
            EscrowWork,
            Quota,
            RateLimited,
        ],
        ..agent(
            Method::Put,
            "/v1/agent/escrow",
            ("putEscrow", "Leaves a version of the wrapped key."),
            Some((Needed::Always, of::<EscrowPut>)),
            framed::<EscrowKept>,
        )
    },
    Call {
        refusals: &[NotFound, NoticeUnset, RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/escrow",
            ("newestEscrow", "Reads the newest version. Its customer is notified."),
            None,
            framed::<EscrowFound>,
        )
    },
    Call {
        refusals: &[RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/escrow/versions",
            ("escrowVersions", "Lists the versions, without their bytes."),
            None,
            framed::<EscrowList>,
        )
    },
    Call {
        parts: &[NUMBER],
        refusals: &[NotFound, NoticeUnset, RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/escrow/versions/{number}",
            ("escrowVersion", "Reads one version. Its customer is notified."),
            None,
            framed::<EscrowFound>,
        )
    },
    Call {
        parts: &[NUMBER, NONCE],
        refusals: &[NotFound, RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/escrow/versions/{number}/proof",
            ("proveEscrow", "Has the hub prove that it holds a version, without reading it."),
            None,
            framed::<EscrowProof>,
        )
    },
    Call {
        parts: &[NUMBER],
        refusals: &[NotFound, RateLimited],
        ..agent(
            Method::Post,
            "/v1/agent/escrow/versions/{number}/opened",
            ("escrowOpened", "Says that the holder of the code opened a version."),
            Some((Needed::Always, of::<EscrowOpened>)),
            framed::<EscrowKept>,
        )
    },
    Call {
        refusals: &[RateLimited, ErrorCode::RestoreCertificate, RestoreCertificateOld],
        ..agent(
            Method::Put,
            "/v1/agent/restore-certificates",
            ("putRestoreCertificate", "Has the restore certificate of a guest countersigned and kept."),
            Some((Needed::Always, of::<CertificatePut>)),
            framed::<CertificateKept>,
        )
    },
    Call {
        refusals: &[RateLimited],
        ..agent(
            Method::Put,
            "/v1/agent/guest-audit",
            ("putGuestAudit", "Keeps audit records about guests, and says how far the hub is."),
            Some((Needed::Always, of::<GuestAuditPut>)),
            framed::<GuestAuditKept>,
        )
    },
];
