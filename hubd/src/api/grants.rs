//! `/v1/operators/{name}` and its grant: a role and a scope.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, put};
use holdfast_protocol::access::Grant;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::grant_change::{GrantChanged, GrantPut, grant_tag};
use holdfast_protocol::json;
use holdfast_protocol::operator::OperatorView;
use net::server::Answer;

use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::{GrantChange, GrantChangeError, OperatorRecord};

/// A role and a label selector.
const GRANT_BYTES_MAX: usize = 4 * 1024;

/// The methods of one person.
pub(super) fn one() -> MethodRouter<Arc<Hub>> {
    get(show)
}

/// The methods of their grant.
pub(super) fn grant() -> MethodRouter<Arc<Hub>> {
    put(change)
}

impl From<GrantChangeError> for ApiError {
    fn from(error: GrantChangeError) -> Self {
        let code = match &error {
            GrantChangeError::Unknown => ErrorCode::NotFound,
            GrantChangeError::Moved { .. } | GrantChangeError::LastAdmin { .. } => {
                ErrorCode::PreconditionFailed
            }
        };
        Self::new(code, error.to_string())
    }
}

fn etag(view: &OperatorView) -> [(HeaderName, HeaderValue); 1] {
    // Words and labels are always a header value.
    let value = HeaderValue::from_str(&format!("\"{}\"", grant_tag(view.role, &view.scope)));
    [(header::ETAG, value.unwrap_or(HeaderValue::from_static("\"-\"")))]
}

/// The tag in `If-Match`.
fn seen(headers: &HeaderMap) -> Result<String, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        let says = "a role is changed with If-Match, the ETag of the person that you read";
        return Err(ApiError::new(ErrorCode::PreconditionRequired, says));
    };
    let text = value.to_str().unwrap_or_default();
    let tag = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    tag.map(str::to_owned)
        .ok_or_else(|| ApiError::new(ErrorCode::Range, "If-Match is the ETag of a person, in quotes"))
}

async fn show(State(hub): State<Arc<Hub>>, Path(name): Path<String>) -> Result<impl IntoResponse, ApiError> {
    let missing = || ApiError::not_found("operator");
    let name = name.parse().map_err(|_| missing())?;
    let view = hub.store.operator(name).await?.map(OperatorRecord::view).ok_or_else(missing)?;
    Ok((etag(&view), Answer(StatusCode::OK, view)))
}

async fn change(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    head: Head,
    body: Body,
) -> Result<Answer<GrantChanged>, ApiError> {
    let bytes = body::read("the role and scope", body, GRANT_BYTES_MAX).await?;
    let GrantPut { role, scope } = json::parse("the role and scope", &bytes, GRANT_BYTES_MAX)?;
    let name = name.parse().map_err(|_| ApiError::not_found("operator"))?;
    let (new, seen) = (Grant::new(role, scope)?, seen(&headers)?);
    head.operator().may_give(&new)?;
    let author = head.operator().grant.clone();
    let change = GrantChange { name, author, seen, new };
    Ok(Answer(StatusCode::OK, hub.store.change_grant(head.by(&hub, &bytes)?, change).await?))
}
