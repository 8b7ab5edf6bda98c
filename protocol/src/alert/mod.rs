//! Alerts as operators see them: incidents, mutes, receivers, deliveries.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `GET /v1/alerts?filter=` | [`IncidentSelection`] | page of [`IncidentView`] |
//! | `GET /v1/alerts/{id}` | | [`IncidentDetail`] |
//! | `POST /v1/alerts/{id}/acknowledge` | [`AcknowledgeRequest`] | [`IncidentView`] |
//! | `POST /v1/alerts/{id}/unacknowledge` | | [`IncidentView`] |
//! | `GET /v1/alerts/log` | | page of [`LogView`], newest first |
//! | `POST /v1/alerts/explain` | [`ExplainRequest`] | [`ExplanationView`] |
//! | `GET /v1/silences` | | page of [`SilenceView`] |
//! | `POST /v1/silences` | [`SilenceRequest`] | [`SilenceView`] |
//! | `POST /v1/silences/{id}/end` | | [`SilenceView`] |
//! | `POST /v1/hosts/{host}/maintenance` | [`MaintenanceRequest`] | [`MaintenanceView`] |
//! | `POST /v1/hosts/{host}/maintenance/end` | | [`MaintenanceView`] |
//! | `GET /v1/receivers` | | page of [`ReceiverView`] |
//! | `POST /v1/receivers/{name}/test` | | [`TestQueued`] |
//! | `GET /v1/deliveries` | | page of [`DeliveryView`], newest first |

mod explain;
mod id;
mod incident;
mod log;
mod mute;
mod receiver;

pub use explain::{ExplainRequest, ExplanationView, QuietView, QuietWindow, ReceiverExplanationView};
pub use id::AlertId;
pub use incident::{
    AcknowledgeRequest, AcknowledgementView, IncidentDetail, IncidentPhase, IncidentReceiver,
    IncidentSelection, IncidentView, LastSent,
};
pub use log::{LogKindView, LogView};
pub use mute::{
    MaintenanceRequest, MaintenanceView, MaintenanceWindow, MatcherText, MuteReason, MuteView, SilenceNumber,
    SilenceRequest, SilenceView,
};
pub use receiver::{DeliveryOutcome, DeliveryView, ReceiverKind, ReceiverSettings, ReceiverView, TestQueued};
