//! Delivery to an ntfy server.
//!
//! The request is JSON to the server's root, because titles in headers break outside of ASCII. All messages of a group
//! have one sequence id, so that the end of an alert replaces its beginning (ntfy 2.16; older servers ignore it).

use holdfast_protocol::condition::Severity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::HttpChannel;
use crate::field::{CaPem, Token, Topic};
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::{Message, MessageState};
use crate::text::{heading, plain};
use crate::url::ServerUrl;
use crate::verdict::{Form, Verdict, by_status, confirmed};

/// The most bytes of a message. A longer one would become an attachment.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A topic on a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ntfy {
    pub server: ServerUrl,
    pub topic: Topic,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaPem>,
}

impl HttpChannel for Ntfy {
    fn request(&self, message: &Message, _: &OutboxId, _: Timestamp, _: Form) -> HttpRequest {
        let (priority, tag) = match (message.state, message.severity) {
            (MessageState::Firing, Severity::Critical) => (5, "rotating_light"),
            (MessageState::Firing | MessageState::Flapping, Severity::Warning)
            | (MessageState::Flapping, Severity::Critical) => (4, "warning"),
            (MessageState::Firing | MessageState::Flapping, Severity::Info) => (3, "information_source"),
            // Without a sound.
            (MessageState::Resolved, _) => (2, "white_check_mark"),
            (MessageState::Digest, _) => (2, "clipboard"),
            (MessageState::Test, _) => (3, "test_tube"),
        };
        let mut body = json!({
            "topic": self.topic.expose(),
            "title": heading(message),
            "message": plain(message, MESSAGE_BYTES_MAX, str::len),
            "priority": priority,
            "tags": [tag],
            "sequence_id": message.group,
        });
        if let (Some(link), Some(fields)) = (&message.link, body.as_object_mut()) {
            fields.insert("click".to_owned(), json!(link));
        }
        let request = HttpRequest::json(Method::Post, self.server.root(), &body);
        match &self.token {
            Some(token) => request.with_bearer(token.expose()),
            None => request,
        }
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        confirmed(by_status(answer, now), || answer.json().get("id").is_some())
    }

    fn ca(&self) -> Option<&CaPem> {
        self.ca.as_ref()
    }
}
