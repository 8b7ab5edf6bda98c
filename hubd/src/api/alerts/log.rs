//! `GET /v1/alerts/log`: what happened, and what was not sent and why.

use std::sync::Arc;

use alerts::incident::Scope;
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::alert::LogView;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::Page;
use net::server::Answer;
use serde::Deserialize;

use super::view;
use crate::api::Hub;
use crate::api::auth::Operator;
use crate::api::page::{CheckedQuery, bad_cursor, limit, open, page};
use crate::api::problem::ApiError;
use crate::store::{LogFilter, PAGE_MAX};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct LogQuery {
    limit: Option<u32>,
    cursor: Option<String>,
    host: Option<HostId>,
    alert: Option<String>,
}

pub(in crate::api) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    CheckedQuery(query): CheckedQuery<LogQuery>,
) -> Result<Answer<Page<LogView>>, ApiError> {
    let limit = limit(query.limit, PAGE_MAX)?;
    let before = match query.cursor {
        Some(cursor) => Some(open(&cursor)?.parse().map_err(|_| bad_cursor())?),
        None => None,
    };
    let filter = match (query.host, query.alert) {
        (Some(_), Some(_)) => {
            return Err(ApiError::new(ErrorCode::Range, "give either `host` or `alert`, and not both"));
        }
        (Some(host), None) => LogFilter { scope: Some(Scope::Host(host)), incident: None, before },
        (None, Some(alert)) => {
            let id = view::incident_id(&alert)?;
            LogFilter { scope: Some(id.scope), incident: Some(id.number), before }
        }
        (None, None) => LogFilter { scope: None, incident: None, before },
    };
    Ok(Answer(StatusCode::OK, read(&hub, operator.scope(), filter, limit).await?))
}

/// One page of the log.
pub(super) async fn read(
    hub: &Hub,
    scope: AccessScope,
    filter: LogFilter,
    limit: u32,
) -> Result<Page<LogView>, ApiError> {
    let records = hub.store.alert_log_within(scope, filter, limit + 1).await?;
    let Page { items, next } = page(records, limit, |last| last.number.to_string());
    let items = items.into_iter().map(view::log_entry).collect::<Result<_, _>>()?;
    Ok(Page { items, next })
}
