//! Pages of lists: bounded length and a cursor.
//!
//! A cursor is opaque text that the client sends back; only the hub interprets it.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::Page;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::problem::ApiError;
use crate::store::PAGE_MAX;

/// Items on a page by default.
const PAGE_USUAL: u32 = 100;

/// A query, or the typed error of a bad one.
pub(super) struct CheckedQuery<T>(pub T);

impl<T: DeserializeOwned, S: Sync + Send> FromRequestParts<S> for CheckedQuery<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|rejection| {
            ApiError::new(ErrorCode::Range, format!("the query is refused: {}", rejection.body_text()))
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    limit: Option<u32>,
    cursor: Option<String>,
}

impl PageQuery {
    /// A page as long as usual.
    pub(super) const fn of(cursor: Option<String>) -> Self {
        Self { limit: None, cursor }
    }

    /// How many items; the list may have a smaller bound of its own.
    pub(super) fn limit(&self, most: u32) -> Result<u32, ApiError> {
        limit(self.limit, most)
    }

    /// Where the page begins.
    pub(super) fn cursor(&self) -> Result<Option<String>, ApiError> {
        self.cursor.as_deref().map(open).transpose()
    }
}

pub(super) fn limit(asked: Option<u32>, most: u32) -> Result<u32, ApiError> {
    let most = most.min(PAGE_MAX);
    match asked {
        None => Ok(PAGE_USUAL.min(most)),
        Some(asked) if (1..=most).contains(&asked) => Ok(asked),
        Some(asked) => {
            Err(ApiError::new(ErrorCode::Range, format!("limit is {asked}; 1 to {most} are possible")))
        }
    }
}

pub(super) fn bad_cursor() -> ApiError {
    ApiError::new(ErrorCode::Range, "the cursor is not one this hub gave: begin the list again without it")
}

pub(super) fn open(cursor: &str) -> Result<String, ApiError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad_cursor())?;
    String::from_utf8(bytes).map_err(|_| bad_cursor())
}

/// A cursor for a place in a list.
pub(super) fn close(place: &str) -> String {
    URL_SAFE_NO_PAD.encode(place)
}

/// Makes a page. The caller fetched one item more than the page holds, which shows whether there is a next page.
pub(super) fn page<T>(mut items: Vec<T>, limit: u32, place: impl Fn(&T) -> String) -> Page<T> {
    let limit = limit as usize;
    if items.len() <= limit {
        return Page { items, next: None };
    }
    items.truncate(limit);
    let next = items.last().map(|last| close(&place(last)));
    Page { items, next }
}
