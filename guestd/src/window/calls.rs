//! API calls of a window, and their answers for the decision.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::StorageView;
use holdfast_protocol::local::due_backups::DueView;
use holdfast_protocol::local::restore_test::TestReport;
use holdfast_protocol::local::window::{Quiesced, Released, WindowRequest, WindowView};
use holdfast_protocol::local::work::Accepted;
use holdfast_protocol::secret::Secret;

use crate::agent::{Agent, AgentError};
use crate::work::{WorkError, key};

/// A change is answered at once; the pause is for a change that came while no request was open.
const WAIT: &str = "5s";

/// The agent of this guest, as far as windows go.
pub struct Windows<'a> {
    pub agent: &'a Agent,
    pub token: &'a Secret,
}

/// What an answer is.
pub enum Answer {
    Says(Box<WindowView>),
    Refuses(String),
    Silent(String),
}

impl Windows<'_> {
    /// What is due.
    pub async fn due(&self) -> Result<DueView, AgentError> {
        self.agent.look(self.token, "/v1/backups/due").await
    }

    /// This guest's volumes.
    pub async fn storage(&self) -> Result<StorageView, AgentError> {
        self.agent.storage(self.token).await
    }

    /// Requests a window; after a lost answer the request is repeated under the same key.
    pub async fn ask(&self, request: &WindowRequest, key: &str) -> Result<Accepted, AgentError> {
        self.agent.work(self.token, "/v1/quiesce-windows", key, request).await
    }

    /// How far it is.
    pub async fn look(&self, id: OperationId) -> Answer {
        answer(self.agent.look_waiting(self.token, &path(id, ""), WAIT).await)
    }

    /// How it is, at once.
    pub async fn peek(&self, id: OperationId) -> Answer {
        answer(self.agent.look(self.token, &path(id, "")).await)
    }

    /// Reports that the stacks are stopped.
    pub async fn quiesced(&self, id: OperationId, body: &Quiesced) -> Answer {
        answer(self.agent.put(self.token, &path(id, "/quiesced"), &keyed(id, "quiesced"), body).await)
    }

    /// They run again.
    pub async fn released(&self, id: OperationId, body: &Released) -> Answer {
        answer(self.agent.put(self.token, &path(id, "/released"), &keyed(id, "released"), body).await)
    }

    /// Nothing was stopped: never mind.
    pub async fn give_up(&self, id: OperationId) -> Answer {
        answer(self.agent.delete(self.token, &path(id, ""), &keyed(id, "given-up")).await)
    }

    /// What a restore test found.
    pub async fn report(&self, report: &TestReport) -> Result<serde_json::Value, AgentError> {
        let key = key().map_err(|_| AgentError::Token)?;
        self.agent.notify(self.token, "/v1/restore-tests/report", &key, report).await
    }
}

/// A key for a new request.
pub fn fresh_key() -> Result<String, WorkError> {
    key()
}

/// The same message about the same window is one request, however often it is sent.
fn keyed(id: OperationId, agent: &str) -> String {
    format!("{agent}-{}", id.uuid().simple())
}

fn path(id: OperationId, rest: &str) -> String {
    format!("/v1/quiesce-windows/{id}{rest}")
}

fn answer(result: Result<WindowView, AgentError>) -> Answer {
    let text = |error: &AgentError| holdfast_protocol::json::chain(error);
    match result {
        Ok(view) => Answer::Says(Box::new(view)),
        Err(error) => match error.code() {
            Some(code) if is_final(code) => Answer::Refuses(text(&error)),
            _ => Answer::Silent(text(&error)),
        },
    }
}

/// Whether asking about this window again is pointless. A busy or unwell agent may yet say something else.
const fn is_final(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Forbidden
            | ErrorCode::Frozen
            | ErrorCode::NotFound
            | ErrorCode::NotYours
            | ErrorCode::Unauthenticated
            | ErrorCode::WindowOver
    )
}

/// Between two tries of a call that was not answered.
pub const PAUSE: Duration = Duration::from_secs(2);
