//! The body of a form, with values that are wiped.

use std::collections::BTreeMap;

use axum::body::Body;
use holdfast_protocol::code::ErrorCode;
use zeroize::{Zeroize as _, Zeroizing};

use crate::api::body;
use crate::api::problem::ApiError;

/// Forms have a few short fields.
const FORM_MAX: usize = 8 * 1024;

/// The fields of a form.
pub(super) struct Fields(Vec<(String, Zeroizing<String>)>);

impl Fields {
    /// Reads a body of `application/x-www-form-urlencoded`.
    pub(super) async fn read(body: Body) -> Result<Self, ApiError> {
        Self::read_up_to(body, FORM_MAX).await
    }

    /// The same for a form with longer fields.
    pub(super) async fn read_up_to(body: Body, max: usize) -> Result<Self, ApiError> {
        let bytes = body::read("the form", body, max).await?;
        let pairs = url::form_urlencoded::parse(&bytes);
        let fields = pairs.map(|(name, value)| (name.into_owned(), Zeroizing::new(value.into_owned())));
        let fields = Self(fields.collect());
        if let Ok(mut bytes) = bytes.try_into_mut() {
            bytes.as_mut().zeroize();
        }
        Ok(fields)
    }

    /// A field that may be left out; an empty one was.
    pub(super) fn optional(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        let missing = || {
            ApiError::new(ErrorCode::Missing, format!("the field {name} is empty, and nothing was changed"))
        };
        self.optional(name).ok_or_else(missing)
    }

    /// All fields by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The named fields that have a value, as the body that the call of `/v1` would have had. Who reads it wipes it.
    pub(super) fn body_of(&self, names: &[&'static str]) -> Result<Body, ApiError> {
        let named = names.iter().filter_map(|name| Some((*name, self.optional(name)?)));
        let json = serde_json::to_vec(&named.collect::<BTreeMap<_, _>>());
        json.map(Body::from).map_err(|error| ApiError::internal(format!("a form is no JSON: {error}")))
    }
}
