//! `POST /v1/alerts/explain`: what would become of a condition.

use std::sync::Arc;

use alerts::explain::{Explanation, QuietExplanation, ReceiverExplanation, Sample};
use alerts::quiet::Window;
use alerts::{Scope, ScopeState};
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::alert::{
    ExplainRequest, ExplanationView, QuietView, QuietWindow, ReceiverExplanationView,
};
use net::server::Answer;

use super::{BODY_MAX, view};
use crate::api::auth::Operator;
use crate::api::hosts::host_ref;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::domain::alerting::sample::{is_of_hub, sample};
use crate::domain::alerting::{GuestLabels, HostOfScope};
use crate::store::AlertPicture;

/// It changes nothing, so an operator who may only read may ask.
pub(super) async fn explain(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    body: Body,
) -> Result<Answer<ExplanationView>, ApiError> {
    let request: ExplainRequest = body::parse("the condition", body, BODY_MAX).await?;
    let picture = picture(&hub, &request).await?;
    let sample = sample(&request, &picture.guests)?;
    let now = hub.clock.now();
    let silences = hub.store.silences(now).await?;
    let rules = hub.alerts.in_force();
    let setting = rules.setting(&silences, &picture.host);
    let explanation = alerts::explain::explain(&sample, &picture.state, &setting, now);
    Ok(Answer(StatusCode::OK, explained(&sample, explanation)))
}

/// What is known of the host, of the hub for its own conditions, or nothing.
async fn picture(hub: &Hub, request: &ExplainRequest) -> Result<AlertPicture, ApiError> {
    let known = match &request.host {
        Some(host) => hub.store.alert_picture(Some(host_ref(host)?)).await?,
        None if is_of_hub(request.code) => hub.store.alert_picture(None).await?,
        None => {
            let state = ScopeState::new(Scope::Hub);
            Some(AlertPicture { state, host: HostOfScope::default(), guests: GuestLabels::default() })
        }
    };
    known.ok_or_else(|| ApiError::not_found("host"))
}

fn explained(sample: &Sample, explanation: Explanation) -> ExplanationView {
    ExplanationView {
        code: sample.code,
        subject: sample.subject.to_string(),
        severity: explanation.severity,
        fires_after_s: explanation.fires_after_s,
        clears_after_s: explanation.clears_after_s,
        route: explanation.route.map(String::from),
        receivers: explanation.receivers.into_iter().map(receiver).collect(),
        inhibited_by: explanation.inhibited_by,
    }
}

fn receiver(one: ReceiverExplanation) -> ReceiverExplanationView {
    ReceiverExplanationView {
        receiver: one.receiver,
        escalated_after_s: one.escalated_after_s,
        group: one.group.to_string(),
        group_wait_s: one.group_wait_s,
        group_interval_s: one.group_interval_s,
        repeat_interval_s: one.repeat_interval_s,
        fire_muted: view::muted(&one.fire),
        resolve_muted: view::muted(&one.resolve),
        quiet_hours: one.quiet_hours.into_iter().map(quiet).collect(),
    }
}

fn quiet(hours: QuietExplanation) -> QuietView {
    let window = |Window { from, until }: Window| QuietWindow { from, until };
    let QuietExplanation { rule, current, next } = hours;
    QuietView { rule: rule.into(), current: current.map(window), next: next.map(window) }
}
