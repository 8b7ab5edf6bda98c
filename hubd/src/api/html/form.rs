//! The body of a form, with values that are wiped.

use axum::body::Body;
use holdfast_protocol::code::ErrorCode;
use zeroize::Zeroizing;

use crate::api::body;
use crate::api::problem::ApiError;

/// Forms have a few short fields.
const FORM_MAX: usize = 8 * 1024;

/// The fields of a form.
pub(super) struct Fields(Vec<(String, Zeroizing<String>)>);

impl Fields {
    /// Reads a body of `application/x-www-form-urlencoded`.
    pub(super) async fn read(body: Body) -> Result<Self, ApiError> {
        let bytes = Zeroizing::new(body::read("the form", body, FORM_MAX).await?.to_vec());
        let pairs = url::form_urlencoded::parse(&bytes);
        Ok(Self(pairs.map(|(name, value)| (name.into_owned(), Zeroizing::new(value.into_owned()))).collect()))
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
}
