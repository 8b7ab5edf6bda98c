//! Delivery by a Telegram bot.
//!
//! Text is HTML with three escapes. A text that Telegram cannot parse is sent again as plain text; no other error calls
//! for that. A group that became a supergroup has a new number, to which the message is sent at once.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::HttpChannel;
use crate::field::{BotToken, ChatId};
use crate::fit::{Fitted, fit};
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::Message;
use crate::reason::Reason;
use crate::text::{heading, moment, more, plain};
use crate::url::ServerUrl;
use crate::verdict::{Fallback, Form, Markup, Verdict, by_status, confirmed, pause};

/// The most UTF-16 units of a text, after its tags are taken out.
const TEXT_UNITS_MAX: usize = 4096;

/// A bot and the chat that it writes to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telegram {
    /// The Bot API: `https://api.telegram.org`, or a server of one's own.
    pub server: ServerUrl,
    pub token: BotToken,
    pub chat: ChatId,
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn html(message: &Message) -> String {
    let heading = heading(message);
    let remedy = message.remedy.as_deref();
    let see = message.link.as_ref().map(|link| format!("See: {}", link.as_str()));
    let time = moment(message.at);
    // Each part that is there, and the line breaks around the parts.
    let parts = [Some(heading.as_str()), remedy, see.as_deref(), Some(time.as_str())];
    let fixed: usize = parts.into_iter().flatten().map(|part| units(part).saturating_add(2)).sum();
    let lines = message.alerts.iter().map(|alert| alert.text.clone()).collect();
    let Fitted { lines, omitted } = fit(lines, message.omitted, TEXT_UNITS_MAX.saturating_sub(fixed), units);
    let mut text = format!("<b>{}</b>\n", escape(&heading));
    for line in lines.iter().map(String::as_str).chain((omitted > 0).then(|| more(omitted)).as_deref()) {
        text.push_str(&escape(line));
        text.push('\n');
    }
    if let Some(remedy) = remedy {
        text.push_str(&format!("\n<code>{}</code>", escape(remedy)));
    }
    if let Some(see) = see {
        text.push_str(&format!("\n{}", escape(&see)));
    }
    text.push_str(&format!("\n{time}"));
    text
}

impl HttpChannel for Telegram {
    fn request(&self, message: &Message, _: &OutboxId, _: Timestamp, form: Form) -> HttpRequest {
        let chat = match form.chat {
            Some(chat) => json!(chat),
            None => json!(self.chat),
        };
        let url = self.server.path(&[&format!("bot{}", self.token.expose()), "sendMessage"]);
        let no_preview = json!({ "is_disabled": true });
        let body = match form.markup {
            Markup::Rich => json!({
                "chat_id": chat, "text": html(message), "parse_mode": "HTML", "link_preview_options": no_preview,
            }),
            Markup::Plain => {
                let heading = heading(message);
                let room = TEXT_UNITS_MAX.saturating_sub(units(&heading)).saturating_sub(1);
                let text = format!("{heading}\n{}", plain(message, room, units));
                json!({ "chat_id": chat, "text": text, "link_preview_options": no_preview })
            }
        };
        HttpRequest::json(Method::Post, url, &body)
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        let body = answer.json();
        let number = |name: &str| body.pointer(&format!("/parameters/{name}"));
        if let Some(chat) = number("migrate_to_chat_id").and_then(serde_json::Value::as_i64) {
            return Verdict::Fallback(Fallback::Chat(chat));
        }
        let description =
            body.get("description").and_then(serde_json::Value::as_str).unwrap_or_default().to_lowercase();
        match answer.status {
            400 if description.contains("can't parse entities") => Verdict::Fallback(Fallback::PlainText),
            400 if description.contains("chat not found") => Verdict::Permanent(Reason::Address),
            400 if description.contains("too long") => Verdict::Permanent(Reason::TooLong),
            // A token that does not exist is a path that does not exist.
            404 => Verdict::Permanent(Reason::Credential),
            429 => match number("retry_after").and_then(serde_json::Value::as_u64) {
                Some(seconds) => pause(Some(Duration::from_secs(seconds))),
                None => by_status(answer, now),
            },
            _ => confirmed(by_status(answer, now), || body.get("ok") == Some(&json!(true))),
        }
    }
}
