//! Calls of rollouts.

use super::access::{Access, Object};
use super::calls::{Call, Caller, KEY, change, get, param};
use crate::api::{Answer, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::*;
use crate::operator::{Page, Role};
use crate::release::rollout::{RolloutRequest, RolloutView};

const NUMBER: Param = param(ParamLocation::Path, "number", "a rollout", of::<u32>);

const VIEW: Answer = Answer::Done(framed::<RolloutView>);

const fn act(path: &'static str, name: &'static str, does: &'static str) -> Call {
    Call {
        parts: &[NUMBER, KEY],
        refusals: &[IdempotencyMismatch, NotFound, PreconditionFailed, Size],
        ..change(path, (name, does), None, VIEW)
    }
}

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Operator(Access::staff(Role::Viewer, Object::List)),
        ..get(
            "/v1/rollouts",
            "rollouts",
            "Rollouts, the newest first, with the hosts of the caller's scope.",
            Answer::Done(framed::<Page<RolloutView>>),
        )
    },
    Call {
        parts: &[KEY],
        refusals: &[DuplicateName, IdempotencyMismatch, NotFound, PreconditionFailed],
        ..change(
            "/v1/rollouts",
            ("planRollout", "Plans a rollout. Nothing is offered before it is started."),
            Some(of::<RolloutRequest>),
            VIEW,
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Viewer, Object::Rollout)),
        parts: &[NUMBER],
        refusals: &[NotFound],
        ..get(
            "/v1/rollouts/{number}",
            "rollout",
            "One rollout, with each of its hosts in the caller's scope.",
            VIEW,
        )
    },
    act("/v1/rollouts/{number}/start", "startRollout", "Opens the first wave."),
    act("/v1/rollouts/{number}/pause", "pauseRollout", "Stops it; nothing is offered."),
    act(
        "/v1/rollouts/{number}/take-back",
        "takeBackRollout",
        "Stops it, and hosts that have the release on trial put the build before back.",
    ),
    act(
        "/v1/rollouts/{number}/resume",
        "resumeRollout",
        "Goes on with the open wave. Of a rollout that is held, the failures so far are accepted.",
    ),
    act("/v1/rollouts/{number}/abort", "abortRollout", "Ends it. Hosts that run the release go on with it."),
];
