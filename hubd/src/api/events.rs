//! `GET /v1/events`: the event log, newest first.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::{EventView, Page};
use net::server::Answer;
use serde::Deserialize;

use super::Hub;
use super::auth::Operator;
use super::page::{CheckedQuery, bad_cursor, limit, open, page};
use super::problem::ApiError;
use crate::store::{EventFilter, EventText, PAGE_MAX};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    pub(super) limit: Option<u32>,
    pub(super) cursor: Option<String>,
    pub(super) host: Option<HostId>,
    /// Words of the kind or of the sentence.
    pub(super) text: Option<String>,
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    CheckedQuery(query): CheckedQuery<EventQuery>,
) -> Result<Answer<Page<EventView>>, ApiError> {
    let limit = limit(query.limit, PAGE_MAX)?;
    let before = match query.cursor {
        Some(cursor) => Some(open(&cursor)?.parse().map_err(|_| bad_cursor())?),
        None => None,
    };
    let text = query.text.map(|text| event_text(&text)).transpose()?;
    let filter = EventFilter { host: query.host, text, before };
    let events = hub.store.events_within(operator.scope(), filter, limit + 1).await?;
    Ok(Answer(StatusCode::OK, page(events, limit, |last| last.number.to_string())))
}

fn event_text(text: &str) -> Result<EventText, ApiError> {
    EventText::new(text).ok_or_else(|| {
        ApiError::new(ErrorCode::Range, format!("`text` is 1 to {} characters", EventText::CHARACTERS_MAX))
    })
}
