//! Calls of alerts.

use schemars::{JsonSchema as _, Schema, SchemaGenerator};

use super::access::{Access, Object};
use super::calls::{CURSOR, Call, Caller, HOST, KEY, LIMIT, NAME, OF_HOST, change, get, param, text};
use crate::alert::{
    AcknowledgeRequest, DeliveryView, ExplainRequest, ExplanationView, IncidentDetail, IncidentSelection,
    IncidentView, LogView, MaintenanceRequest, MaintenanceView, ReceiverView, SilenceRequest, SilenceView,
    TestQueued,
};
use crate::api::{Answer, Method, Needed, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::*;
use crate::condition::{ConditionCode, Severity};
use crate::id::GuestName;
use crate::operator::{Page, Role};

const ALERT: Param = param(ParamLocation::Path, "id", "an alert", text);
const SILENCE: Param = param(ParamLocation::Path, "id", "the number of a silence", number);
const RECEIVER: Param = Param { says: "a receiver of the hub's settings", ..NAME };
const FILTER: Param = param(ParamLocation::Query, "filter", "which alerts; `firing` by default", selection);
const ON_HOST: Param = param(
    ParamLocation::Query,
    "host",
    "only of this host, by its id or name; `hub` for the hub itself",
    text,
);
const GUEST: Param = param(ParamLocation::Query, "guest", "only about a guest of this name", of::<GuestName>);
const CODE: Param = param(ParamLocation::Query, "code", "only with this code", of::<ConditionCode>);
const SEVERITY: Param =
    param(ParamLocation::Query, "severity", "only as urgent as this, or more", of::<Severity>);
const OF_ALERT: Param = param(ParamLocation::Query, "alert", "only of this alert; not with `host`", text);

fn number(generator: &mut SchemaGenerator) -> Schema {
    u64::json_schema(generator)
}

fn selection(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<IncidentSelection>()
}

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Operator(Access::own(Role::Viewer, Object::List)),
        parts: &[LIMIT, CURSOR, FILTER, ON_HOST, GUEST, CODE, SEVERITY],
        refusals: &[NotFound],
        ..get(
            "/v1/alerts",
            "alerts",
            "Alerts that fire, or all that are kept, by host.",
            Answer::Done(framed::<Page<IncidentView>>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Viewer, Object::Alert)),
        parts: &[ALERT],
        refusals: &[NotFound],
        ..get(
            "/v1/alerts/{id}",
            "alert",
            "One alert: who hears of it, who does not and why, and its log.",
            Answer::Done(framed::<IncidentDetail>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Operator, Object::Alert)),
        parts: &[ALERT, KEY],
        refusals: &[IdempotencyMismatch, IncidentOver, NotFound],
        ..change(
            "/v1/alerts/{id}/acknowledge",
            ("acknowledgeAlert", "Says that the operator knows of an alert: no repeats and no escalation."),
            Some(of::<AcknowledgeRequest>),
            Answer::Done(framed::<IncidentView>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Operator, Object::Alert)),
        parts: &[ALERT, KEY],
        refusals: &[IdempotencyMismatch, IncidentOver, NotFound, Size],
        ..change(
            "/v1/alerts/{id}/unacknowledge",
            ("unacknowledgeAlert", "Takes an acknowledgement back."),
            None,
            Answer::Done(framed::<IncidentView>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Viewer, Object::List)),
        parts: &[LIMIT, CURSOR, OF_HOST, OF_ALERT],
        refusals: &[NotFound],
        ..get(
            "/v1/alerts/log",
            "alertLog",
            "What happened to alerts, and what was not sent and why, the newest first.",
            Answer::Done(framed::<Page<LogView>>),
        )
    },
    Call {
        method: Method::Post,
        body: Some((Needed::Always, of::<ExplainRequest>)),
        refusals: &[NotFound],
        ..get(
            "/v1/alerts/explain",
            "explainAlert",
            "What would become of a condition: route, receivers, and what would mute it. Nothing is sent.",
            Answer::Done(framed::<ExplanationView>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Viewer, Object::List)),
        ..get(
            "/v1/silences",
            "silences",
            "The silences that are not over; in a narrower scope those that name a host or the customer of it.",
            Answer::Done(framed::<Page<SilenceView>>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Operator, Object::List)),
        parts: &[KEY],
        refusals: &[IdempotencyMismatch, Quota, SilenceEverything],
        ..change(
            "/v1/silences",
            ("addSilence", "Mutes alerts by their labels for a time."),
            Some(of::<SilenceRequest>),
            Answer::Made(framed::<SilenceView>),
        )
    },
    Call {
        caller: Caller::Operator(Access::staff(Role::Operator, Object::Silence)),
        parts: &[SILENCE, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size],
        ..change(
            "/v1/silences/{id}/end",
            ("endSilence", "Ends a silence now."),
            None,
            Answer::Done(framed::<SilenceView>),
        )
    },
    Call {
        parts: &[HOST, KEY],
        refusals: &[IdempotencyMismatch, NotFound],
        ..change(
            "/v1/hosts/{host}/maintenance",
            (
                "announceMaintenance",
                "Announces that a host is worked on: nothing is sent of it meanwhile, and its agent opens no operation of its own.",
            ),
            Some(of::<MaintenanceRequest>),
            Answer::Done(framed::<MaintenanceView>),
        )
    },
    change(
        "/v1/hosts/{host}/maintenance/end",
        ("endMaintenance", "Ends the maintenance of a host now."),
        None,
        Answer::Done(framed::<MaintenanceView>),
    ),
    get(
        "/v1/receivers",
        "receivers",
        "The receivers of alerts, with what waits for each.",
        Answer::Done(framed::<Page<ReceiverView>>),
    ),
    Call {
        parts: &[RECEIVER, KEY],
        refusals: &[IdempotencyMismatch, NotFound, Size, UnderWay],
        ..change(
            "/v1/receivers/{name}/test",
            ("testReceiver", "Queues two notices that try a receiver."),
            None,
            Answer::Done(framed::<TestQueued>),
        )
    },
    Call {
        parts: &[LIMIT, CURSOR],
        ..get(
            "/v1/deliveries",
            "deliveries",
            "What became of notices, the newest first.",
            Answer::Done(framed::<Page<DeliveryView>>),
        )
    },
];
