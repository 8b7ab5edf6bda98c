//! A form of a change as it was sent.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::IDEMPOTENCY_KEY_HEADER;
use holdfast_protocol::generation::Generation;
use hub_page::form::values::Values;
use hub_page::frame::{Frame, Section};
use net::server::Ids;

use crate::api::Hub;
use crate::api::desired::etag;
use crate::api::html::answer::problem;
use crate::api::html::form::Fields;
use crate::api::html::person::Person;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::domain::desired::IfMatch;

/// Fields that are about the form itself, and not of what is changed.
const OF_THE_FORM: [&str; 3] = ["csrf", "step", "key"];

/// What a person asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To see what the change would do.
    Review,
    /// To make it.
    Apply,
    /// To go on with the form.
    Edit,
}

/// A form that its own session sent.
pub(super) struct Submission {
    pub values: Values,
    pub step: Step,
    /// The version of the document that the person saw.
    pub seen: IfMatch,
    key: Option<String>,
}

impl Submission {
    /// Reads a form of at most `max` bytes, and checks that a page of this session sent it.
    pub(super) async fn read(hub: &Hub, person: &Person, body: Body, max: usize) -> Result<Self, ApiError> {
        let fields = Fields::read_up_to(body, max).await?;
        person.check(hub, &fields)?;
        let step = match fields.optional("step") {
            Some("apply") => Step::Apply,
            Some("edit") => Step::Edit,
            Some(_) | None => Step::Review,
        };
        let seen = fields.required("generation")?.parse().map_err(|_| {
            ApiError::new(
                ErrorCode::Range,
                "the form names no generation, and nothing was changed: load it again",
            )
        })?;
        let seen = IfMatch(Generation::new(seen));
        let key = fields.optional("key").map(str::to_owned);
        let values = fields.all().filter(|(name, _)| !OF_THE_FORM.contains(name)).collect();
        Ok(Self { values, step, seen, key })
    }

    /// The headers that the call of `/v1` would have had.
    pub(super) fn headers(&self) -> Result<HeaderMap, ApiError> {
        let mut headers = HeaderMap::new();
        headers.extend(etag(self.seen.0).map(|(_, value)| (header::IF_MATCH, value)));
        match (self.step, &self.key) {
            (Step::Apply, None) => {
                let says = "the form has no key, and nothing was changed: review the change again";
                return Err(ApiError::new(ErrorCode::Missing, says));
            }
            (Step::Apply, Some(key)) => {
                let key = HeaderValue::from_str(key);
                let key =
                    key.map_err(|_| ApiError::new(ErrorCode::Range, "the form's key is not of this hub"))?;
                headers.insert(IDEMPOTENCY_KEY_HEADER, key);
            }
            (Step::Review | Step::Edit, _) => {}
        }
        Ok(headers)
    }

    /// The head of the call.
    pub(super) fn head(&self, person: &Person, ids: Ids, call: (Method, String)) -> Result<Head, ApiError> {
        Ok(Head::of_page(call, self.headers()?, person.operator.clone(), ids))
    }
}

/// A page, or why there is none as a page.
pub(super) fn or_problem(frame: &Frame, answer: Result<Response, ApiError>) -> Response {
    answer.unwrap_or_else(|error| problem(frame, error))
}

/// The frame of pages that change something: they do not read themselves anew.
pub(super) fn frame_of(hub: &Arc<Hub>, person: &Person) -> Frame {
    person.frame(hub, Section::Other)
}
