//! Requests to a hub in this process, and what it answers.

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use hubd::domain::identity::Presented;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::hub::Opened;

/// Why a request has no good answer.
#[derive(Clone, Debug)]
pub(super) enum NoAnswer {
    /// The hub was not able to, for example without power.
    Failed,
    /// The hub refused: status and error.
    Refused(String),
}

/// A running hub, for as long as requests are sent to it.
pub(super) struct Client<'a> {
    pub(super) opened: &'a Opened,
}

impl Client<'_> {
    /// Sends a request as an operator with this token, or as an agent.
    pub(super) async fn send(&self, ask: Ask<'_>) -> Result<Value, NoAnswer> {
        let mut request = Request::builder().method(ask.method).uri(ask.path);
        request = request.header(header::CONTENT_TYPE, "application/json");
        request = ask.headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut request = request.body(Body::from(ask.body.to_string())).unwrap();
        match ask.by {
            By::Operator(token) => {
                let token = format!("Bearer {token}").parse().unwrap();
                request.headers_mut().insert(header::AUTHORIZATION, token);
            }
            By::Agent(presented) => drop(request.extensions_mut().insert(presented)),
            By::Stranger => {}
        }
        let answer = self.opened.routes.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), ANSWER_BYTES).await.unwrap();
        let mut answer: Value = serde_json::from_slice(&body).unwrap();
        match status {
            StatusCode::OK | StatusCode::CREATED => Ok(answer["data"].take()),
            status if status.is_server_error() => Err(NoAnswer::Failed),
            status => Err(NoAnswer::Refused(format!("{status}: {}", answer["error"]))),
        }
    }
}

/// The caller.
#[derive(Clone, Copy, Debug)]
pub(super) enum By<'a> {
    Operator(&'a str),
    Agent(Presented),
    Stranger,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) by: By<'a>,
    pub(super) headers: &'a [(&'static str, &'a str)],
    pub(super) body: &'a Value,
}

/// The longest answer.
const ANSWER_BYTES: usize = 1 << 20;
