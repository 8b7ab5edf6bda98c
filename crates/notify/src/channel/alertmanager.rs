//! Delivery to an Alertmanager, over its API of version 2.
//!
//! An alert is known there by its labels. One without an end fires until the Alertmanager's `resolve_timeout` is over (five
//! minutes by default), so the caller delivers it again before that, and an alert of a hub that died ends by itself. An
//! explicit end ahead would outlast a real one of a clock that is ahead. Grouping, silences and receivers of the
//! Alertmanager are its own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::HttpChannel;
use crate::field::{CaPem, Token};
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::{Alert, Message, MessageState, Series};
use crate::url::ServerUrl;
use crate::verdict::{Form, Verdict, by_status};

/// A server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alertmanager {
    pub server: ServerUrl,
    /// Of a proxy in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaPem>,
}

fn entry(alert: &Alert, message: &Message) -> Value {
    let (labels, remedy, starts_at, ends_at, source) = match &alert.series {
        Some(series) => {
            let Series { labels, remedy, starts_at, ends_at, source } = series.as_ref();
            (labels.clone(), Some(remedy), *starts_at, *ends_at, source.as_ref())
        }
        None => {
            let name = ("alertname".to_owned(), "HOLDFAST".to_owned());
            let incident = ("incident".to_owned(), alert.incident.to_string());
            let over = (message.state == MessageState::Resolved).then_some(message.at);
            (BTreeMap::from([name, incident]), None, message.at, over, None)
        }
    };
    let mut annotations = json!({ "summary": alert.text, "incident": alert.incident });
    if let (Some(remedy), Some(fields)) = (remedy, annotations.as_object_mut()) {
        fields.insert("remedy".to_owned(), json!(remedy));
    }
    // One that ends before it begins is refused, and the whole request with it.
    let starts_at = ends_at.map_or(starts_at, |ends| starts_at.min(ends));
    let mut entry = json!({ "labels": labels, "annotations": annotations, "startsAt": starts_at });
    if let Some(fields) = entry.as_object_mut() {
        if let Some(ends) = ends_at {
            fields.insert("endsAt".to_owned(), json!(ends));
        }
        if let Some(source) = source.or(message.link.as_ref()) {
            fields.insert("generatorURL".to_owned(), json!(source));
        }
    }
    entry
}

impl HttpChannel for Alertmanager {
    fn request(&self, message: &Message, _: &OutboxId, _: Timestamp, _: Form) -> HttpRequest {
        let entries = message.alerts.iter().map(|alert| entry(alert, message));
        let url = self.server.path(&["api", "v2", "alerts"]);
        let request = HttpRequest::json(Method::Post, url, &entries.collect());
        match &self.token {
            Some(token) => request.with_bearer(token.expose()),
            None => request,
        }
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        by_status(answer, now)
    }

    fn ca(&self) -> Option<&CaPem> {
        self.ca.as_ref()
    }
}
