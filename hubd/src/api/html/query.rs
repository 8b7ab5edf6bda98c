//! What the address of a page asks for.
//!
//! In: the query of an address, which a bookmark or a form made. Out: the query of the call that the page stands for.
//! Fields that the page does not know are passed over, and empty ones are as if they were not there.

use std::collections::BTreeMap;

use axum::extract::Query;
use axum::http::Uri;
use holdfast_protocol::code::ErrorCode;
use serde::de::DeserializeOwned;

use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;

/// The fields that a page knows, as they were typed.
pub(super) struct AskedFields(BTreeMap<&'static str, String>);

impl AskedFields {
    pub(super) fn of(query: Option<&str>, names: &[&'static str]) -> Self {
        let mut fields = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let known = names.iter().find(|known| **known == name);
            if let Some(known) = known.filter(|_| !value.trim().is_empty()) {
                fields.insert(*known, value.trim().to_owned());
            }
        }
        Self(fields)
    }

    /// As it was typed; nothing where it was not.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Without a field that the call does not know.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// As the call takes it.
    pub(super) fn checked<T: DeserializeOwned>(&self) -> Result<CheckedQuery<T>, ApiError> {
        let refused = |why: String| ApiError::new(ErrorCode::Range, format!("the list is not shown: {why}"));
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish();
        let address: Uri =
            format!("/?{query}").parse().map_err(|_| refused("the filter is too long".to_owned()))?;
        let read = Query::<T>::try_from_uri(&address);
        read.map(|Query(value)| CheckedQuery(value)).map_err(|error| refused(error.body_text()))
    }
}
