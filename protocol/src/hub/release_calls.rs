//! Calls of releases and their files.

use super::access::{Access, Object};
use super::agent_calls::agent;
use super::calls::{Call, Caller, HOST, KEY, change, get, param, text};
use crate::api::{Answer, Method, Needed, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::*;
use crate::job::act::Sha256Text;
use crate::operator::{Page, Role};
use crate::release::stored::{
    ArtifactView, HostOffer, ImageOffer, OfferRequest, ReleaseOffer, ReleaseText, ReleaseView, WithdrawnOffer,
};
use crate::release::{SignedRelease, VersionNumber};
use schemars::{JsonSchema as _, Schema, SchemaGenerator};

const VERSION: Param = param(ParamLocation::Path, "version", "a release", of::<VersionNumber>);
const DIGEST: Param = param(ParamLocation::Path, "sha256", "a file by its digest", of::<Sha256Text>);
const OFFSET: Param =
    param(ParamLocation::Query, "offset", "where these bytes begin; 0 begins the file anew", offset);
const RANGE: Param =
    param(ParamLocation::Header, "range", "`bytes=FROM-TO`, `bytes=FROM-` or `bytes=-LAST`, one alone", text);

fn offset(generator: &mut SchemaGenerator) -> Schema {
    u64::json_schema(generator)
}

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Operator(Access::staff(Role::Viewer, Object::Releases)),
        ..get("/v1/releases", "releases", "Releases, the newest version first.", PAGE)
    },
    Call {
        method: Method::Put,
        parts: &[VERSION, KEY],
        refusals: &[DuplicateName, IdempotencyMismatch, NameTaken, Quota],
        ..change(
            "/v1/releases/{version}",
            (
                "putRelease",
                "Leaves a signed release. The hub checks its form and no signature: it has no keys.",
            ),
            Some(of::<SignedRelease>),
            Answer::Done(framed::<ReleaseView>),
        )
    },
    Call {
        method: Method::Delete,
        parts: &[VERSION, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size],
        ..change(
            "/v1/releases/{version}",
            ("deleteRelease", "Removes a release, and the files that no other release names."),
            None,
            Answer::Done(framed::<ReleaseView>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Operator, Object::Hub)),
        method: Method::Put,
        parts: &[DIGEST, OFFSET],
        body: Some((Needed::Octets, of::<Sha256Text>)),
        refusals: &[ArtifactWrong, DiskFull, Locked, NotFound, PreconditionFailed],
        ..get(
            "/v1/artifacts/{sha256}",
            "putArtifact",
            "Leaves the bytes of a file that a release names, or the next of them.",
            Answer::Done(framed::<ArtifactView>),
        )
    },
    Call {
        method: Method::Put,
        parts: &[HOST, KEY],
        refusals: &[IdempotencyMismatch, NotFound, PreconditionFailed, Revoked],
        ..change(
            "/v1/hosts/{host}/release-offer",
            ("offerRelease", "Offers a release to a host, in the place of what it was offered before."),
            Some(of::<OfferRequest>),
            Answer::Done(framed::<HostOffer>),
        )
    },
    Call {
        method: Method::Delete,
        parts: &[HOST, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size],
        ..change(
            "/v1/hosts/{host}/release-offer",
            ("withdrawReleaseOffer", "Takes back what a host is offered; nothing changes where nothing is."),
            None,
            Answer::Done(framed::<WithdrawnOffer>),
        )
    },
    Call {
        refusals: &[RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/release-offer",
            (
                "agentReleaseOffer",
                "The release that the hub wants the host to run; none where it should stay.",
            ),
            None,
            framed::<ReleaseOffer>,
        )
    },
    Call {
        refusals: &[RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/image-offer",
            ("agentImageOffer", "The golden image that a rollout brings to the host; none where it has it."),
            None,
            framed::<ImageOffer>,
        )
    },
    Call {
        parts: &[VERSION],
        refusals: &[NotFound, RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/releases/{version}",
            ("agentRelease", "The signed release of a version."),
            None,
            framed::<ReleaseText>,
        )
    },
    Call {
        parts: &[DIGEST],
        refusals: &[NotFound, RateLimited],
        ..agent(
            Method::Get,
            "/v1/agent/artifacts/{sha256}/release",
            (
                "agentArtifactRelease",
                "The signed release that names a file; of several, the one that may be installed longest.",
            ),
            None,
            framed::<ReleaseText>,
        )
    },
    Call {
        parts: &[DIGEST, RANGE],
        refusals: &[NotFound, RateLimited],
        answer: Answer::BytesOrPart,
        ..agent(
            Method::Get,
            "/v1/agent/artifacts/{sha256}",
            ("agentArtifact", "The bytes of a file of a release, or a part of them."),
            None,
            framed::<ArtifactView>,
        )
    },
];

const PAGE: Answer = Answer::Done(framed::<Page<ReleaseView>>);
