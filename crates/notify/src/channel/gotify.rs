//! Delivery to a Gotify server.
//!
//! The key travels in a header; in the URL it would be in the server's log.

use holdfast_protocol::condition::Severity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::HttpChannel;
use crate::field::{CaPem, Token};
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::{Message, MessageState};
use crate::text::{heading, plain};
use crate::url::ServerUrl;
use crate::verdict::{Form, Verdict, by_status, confirmed};

/// The most bytes of a message. Gotify has no bound; a phone shows no more than this.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// An application on a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gotify {
    pub server: ServerUrl,
    pub key: Token,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaPem>,
}

impl HttpChannel for Gotify {
    fn request(&self, message: &Message, _: &OutboxId, _: Timestamp, _: Form) -> HttpRequest {
        // From 8 on the app shows it over other apps; from 4 on it makes a sound.
        let priority = match (message.state, message.severity) {
            (MessageState::Firing, Severity::Critical) => 9,
            (MessageState::Flapping, Severity::Critical)
            | (MessageState::Firing | MessageState::Flapping, Severity::Warning) => 6,
            (MessageState::Firing | MessageState::Flapping, Severity::Info) | (MessageState::Test, _) => 4,
            (MessageState::Resolved | MessageState::Digest, _) => 2,
        };
        let mut extras = json!({ "client::display": { "contentType": "text/plain" } });
        if let (Some(link), Some(fields)) = (&message.link, extras.as_object_mut()) {
            fields.insert("client::notification".to_owned(), json!({ "click": { "url": link } }));
        }
        let body = json!({
            "title": heading(message),
            "message": plain(message, MESSAGE_BYTES_MAX, str::len),
            "priority": priority,
            "extras": extras,
        });
        HttpRequest::json(Method::Post, self.server.path(&["message"]), &body)
            .with("x-gotify-key", self.key.expose())
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        confirmed(by_status(answer, now), || answer.json().get("id").is_some())
    }

    fn ca(&self) -> Option<&CaPem> {
        self.ca.as_ref()
    }
}
