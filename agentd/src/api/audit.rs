//! `GET /v1/audit`: audit lines about this guest, by pages.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use holdfast_protocol::local::audit::{AuditPage, RECORDS_MAX};
use serde::Deserialize;

use super::Local;
use super::auth::GuestScope;
use super::envelope::Data;
use super::error::ApiError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    after: Option<i64>,
    limit: Option<u32>,
}

pub(super) async fn audit(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Result<Data<AuditPage>, ApiError> {
    let rule = "its parts are after, a record's number from 0, and limit, from 1 to 100";
    let refused = || ApiError::Part { what: "the query", rule };
    let Query(ask) = ask.map_err(|_| refused())?;
    let (after, limit) = (ask.after.unwrap_or(0), ask.limit.unwrap_or(RECORDS_MAX));
    if after < 0 || !(1..=RECORDS_MAX).contains(&limit) {
        return Err(refused());
    }
    Ok(Data(local.store.own_audit(scope.uid(), after, limit).await?))
}
