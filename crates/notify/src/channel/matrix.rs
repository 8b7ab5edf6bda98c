//! Delivery to a Matrix room.
//!
//! The transaction id is the id of the outbox row: a homeserver that has taken it answers a repeat with the same event.
//! Encrypted rooms are out of scope.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::HttpChannel;
use crate::field::{CaPem, RoomId, Token};
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::{Message, MessageState};
use crate::text::{heading, plain};
use crate::url::ServerUrl;
use crate::verdict::{Form, Verdict, by_status, confirmed, pause};

/// The most bytes of a text. An event has at most 65,536 bytes with everything that servers add; JSON may make a text twice as long.
const TEXT_BYTES_MAX: usize = 24 * 1024;

/// A room, and the account that writes to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    pub server: ServerUrl,
    pub token: Token,
    pub room: RoomId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaPem>,
}

impl HttpChannel for Matrix {
    fn request(&self, message: &Message, id: &OutboxId, _: Timestamp, _: Form) -> HttpRequest {
        // A notice makes no sound.
        let kind = match message.state {
            MessageState::Firing | MessageState::Flapping | MessageState::Test => "m.text",
            MessageState::Resolved | MessageState::Digest => "m.notice",
        };
        let heading = heading(message);
        let room = TEXT_BYTES_MAX.saturating_sub(heading.len());
        let text = format!("{heading}\n{}", plain(message, room, str::len));
        let path =
            ["_matrix", "client", "v3", "rooms", self.room.as_str(), "send", "m.room.message", id.as_str()];
        let body = json!({ "msgtype": kind, "body": text });
        HttpRequest::json(Method::Put, self.server.path(&path), &body).with_bearer(self.token.expose())
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        let body = answer.json();
        let asked = body.get("retry_after_ms").and_then(serde_json::Value::as_u64);
        match (answer.status, asked) {
            (429, Some(pause_ms)) => pause(Some(Duration::from_millis(pause_ms))),
            _ => confirmed(by_status(answer, now), || body.get("event_id").is_some()),
        }
    }

    fn ca(&self) -> Option<&CaPem> {
        self.ca.as_ref()
    }
}
