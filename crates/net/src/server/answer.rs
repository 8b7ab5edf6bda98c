//! What a handler says, on its way to the envelope.
//!
//! A handler puts it into the response's extensions; only [`super::frame()`] makes bytes of it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use serde::Serialize;
use serde_json::value::RawValue;

/// What a handler says.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Data(Box<RawValue>),
    Refused(Refused),
    /// The response's own body, without an envelope.
    AsItIs,
}

/// A good answer, with its status.
#[derive(Debug)]
pub struct Answer<T>(pub StatusCode, pub T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match serde_json::value::to_raw_value(&self.1) {
            Ok(data) => carry(self.0.into_response(), Content::Data(data)),
            Err(error) => {
                Refused::internal(format!("an answer that cannot be written: {error}")).into_response()
            }
        }
    }
}

/// A refusal.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The part for the caller.
    pub problem: ErrorBody,
    /// The part for the log alone.
    pub cause: Option<String>,
    /// When it is worth to ask again.
    pub retry_after_s: Option<u32>,
}

impl Refused {
    /// A refusal without a separate cause.
    #[must_use]
    pub const fn new(problem: ErrorBody) -> Self {
        Self { problem, cause: None, retry_after_s: None }
    }

    /// A fault of the program: the answer says where to look, the log has the cause.
    #[must_use]
    pub fn internal(cause: impl Into<String>) -> Self {
        let problem = ErrorBody::new(
            ErrorCode::Internal,
            "the server made a mistake: its log says more under this request id",
        );
        Self { problem, cause: Some(cause.into()), retry_after_s: None }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.code.http_status());
        let mut response = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.problem.code == ErrorCode::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        carry(response, Content::Refused(self))
    }
}

/// A response that is sent as it is: bytes, or the description of the API. It still gets its ids.
#[must_use]
pub fn as_it_is(response: impl IntoResponse) -> Response {
    carry(response.into_response(), Content::AsItIs)
}

/// The code of a refusal in a response.
#[must_use]
pub fn refused_code(response: &Response) -> Option<ErrorCode> {
    match response.extensions().get::<Content>()? {
        Content::Refused(refused) => Some(refused.problem.code),
        Content::Data(_) | Content::AsItIs => None,
    }
}

fn carry(mut response: Response, content: Content) -> Response {
    response.extensions_mut().insert(content);
    response
}
