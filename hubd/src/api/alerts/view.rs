//! The engine's types as wire types, and ids of alerts.

use alerts::incident::{Ack, Incident, IncidentId, Phase};
use alerts::silence::Silence;
use alerts::{Suppression, Verdict};
use holdfast_protocol::alert::{
    AcknowledgementView, AlertId, IncidentPhase, IncidentView, LogView, MatcherText, MuteReason, MuteView,
    SilenceNumber, SilenceView,
};
use holdfast_protocol::id::HostName;
use jiff::Timestamp;

use super::sentence;
use crate::api::problem::ApiError;
use crate::store::{IncidentRecord, LogRecord};

/// The wire types are at least as wide as the engine's, so this is our own fault.
fn unwritable(error: &str) -> ApiError {
    ApiError::internal(format!("something of the alert engine cannot be written: {error}"))
}

/// A text that is no id names no incident.
pub(super) fn incident_id(text: &str) -> Result<IncidentId, ApiError> {
    text.parse().map_err(|_| no_incident())
}

pub(super) fn no_incident() -> ApiError {
    ApiError::not_found("alert (one that is over leaves the list after an hour, and stays in the log)")
}

pub(super) fn alert_id(id: IncidentId) -> Result<AlertId, ApiError> {
    AlertId::try_from(id.to_string()).map_err(unwritable)
}

const fn phase(phase: Phase) -> (IncidentPhase, Timestamp) {
    match phase {
        Phase::Pending { since } => (IncidentPhase::Pending, since),
        Phase::Firing { since } => (IncidentPhase::Firing, since),
        Phase::Resolved { at, .. } => (IncidentPhase::Resolved, at),
    }
}

fn acknowledgement(ack: Ack) -> AcknowledgementView {
    let Ack { by, at, until } = ack;
    AcknowledgementView { by, at, until }
}

pub(super) fn incident(incident: Incident, host: Option<HostName>) -> Result<IncidentView, ApiError> {
    let (phase, phase_since) = phase(incident.phase);
    Ok(IncidentView {
        id: alert_id(incident.id)?,
        host,
        subject: incident.subject.to_string(),
        guest: incident.labels.guest,
        customer: incident.labels.customer,
        code: incident.code,
        severity: incident.severity,
        phase,
        phase_since,
        since: incident.since,
        message: incident.message,
        remedy: incident.remedy,
        acknowledged: incident.ack.map(acknowledgement),
        stale_since: incident.stale_since,
        flapping_since: incident.flapping,
    })
}

pub(super) fn incident_record(record: IncidentRecord) -> Result<IncidentView, ApiError> {
    incident(record.incident, record.host)
}

pub(super) fn log_entry(record: LogRecord) -> Result<LogView, ApiError> {
    let LogRecord { number, scope, host, entry } = record;
    let id = entry.incident.map(|number| IncidentId { scope, number });
    let (receiver, why) = sentence::concerned(&entry.what);
    Ok(LogView {
        number,
        at: entry.at,
        host,
        alert: id.map(alert_id).transpose()?,
        kind: sentence::kind(&entry.what),
        receiver: receiver.cloned(),
        muted: why.map(mute),
        text: sentence::text(&entry.what),
    })
}

pub(super) fn mute(why: &Suppression) -> MuteView {
    MuteView { reason: reason(why), text: why.to_string(), until: why.until() }
}

/// Why it would not be sent, where it would not.
pub(super) fn muted(verdict: &Verdict) -> Option<MuteView> {
    match verdict {
        Verdict::Deliver => None,
        Verdict::Suppress(why) => Some(mute(why)),
    }
}

const fn reason(why: &Suppression) -> MuteReason {
    match why {
        Suppression::Acknowledged { .. } => MuteReason::Acknowledged,
        Suppression::Flapping {} => MuteReason::Flapping,
        Suppression::Grouped { .. } => MuteReason::Grouped,
        Suppression::Inhibited { .. } => MuteReason::Inhibited,
        Suppression::Maintenance { .. } => MuteReason::Maintenance,
        Suppression::NeverSent {} => MuteReason::NeverSent,
        Suppression::OtherCustomer {} => MuteReason::OtherCustomer,
        Suppression::OwnFailure {} => MuteReason::OwnFailure,
        Suppression::QuietHours { .. } => MuteReason::QuietHours,
        Suppression::ReceiverRemoved {} => MuteReason::ReceiverRemoved,
        Suppression::ResolvedUnwanted {} => MuteReason::ResolvedUnwanted,
        Suppression::Silenced { .. } => MuteReason::Silenced,
        Suppression::Unrouted {} => MuteReason::Unrouted,
    }
}

pub(super) fn silence(silence: Silence) -> Result<SilenceView, ApiError> {
    let Silence { id, matchers, from, until, by, comment } = silence;
    let texts = matchers.iter().map(|matcher| MatcherText::try_from(matcher.to_string()));
    let matchers = texts.collect::<Result<_, _>>().map_err(unwritable)?;
    Ok(SilenceView { id: SilenceNumber::new(id.0), matchers, from, until, by, comment })
}
