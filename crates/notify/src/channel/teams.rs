//! Delivery to a Power Automate flow of Teams, as an adaptive card.
//!
//! The flow says 202 before it has posted anything, so *delivered* means handed over. Text is in text runs, which know
//! no Markdown. The URL is long, and its signature is sent exactly as it was given.

use holdfast_protocol::condition::Severity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::HttpChannel;
use crate::fit::{Fitted, fit};
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::{Message, MessageState};
use crate::text::{heading, moment, more};
use crate::url::SecretUrl;
use crate::verdict::{Form, Verdict, by_status};

/// The most bytes of a body. Teams refuses 28 KB, measured after it made the card larger by itself.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// What a flow expects as its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardForm {
    /// A message with the card as an attachment.
    #[default]
    Wrapped,
    /// The card alone.
    Bare,
}

/// A flow that posts cards.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teams {
    pub url: SecretUrl,
    #[serde(default)]
    pub form: CardForm,
}

fn run(text: &str, font: &str) -> Value {
    json!({ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": text, "fontType": font }] })
}

impl Teams {
    fn body(&self, message: &Message, lines: &[String], omitted: u64) -> Value {
        let color = match (message.state, message.severity) {
            (MessageState::Resolved, _) => "good",
            (MessageState::Digest | MessageState::Test, _) => "default",
            (MessageState::Firing | MessageState::Flapping, Severity::Critical) => "attention",
            (MessageState::Firing | MessageState::Flapping, Severity::Warning) => "warning",
            (MessageState::Firing | MessageState::Flapping, Severity::Info) => "accent",
        };
        let title = json!({
            "type": "TextRun", "text": heading(message), "color": color, "weight": "bolder", "size": "large",
        });
        let mut body = vec![json!({ "type": "RichTextBlock", "inlines": [title] })];
        body.extend(lines.iter().map(|line| run(line, "default")));
        if omitted > 0 {
            body.push(run(&more(omitted), "default"));
        }
        body.extend(message.remedy.iter().map(|remedy| run(remedy, "monospace")));
        body.push(run(&moment(message.at), "default"));
        let actions =
            message.link.iter().map(|link| json!({ "type": "Action.OpenUrl", "title": "Open", "url": link }));
        let card = json!({
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "msteams": { "width": "Full" },
            "body": body,
            "actions": actions.collect::<Vec<_>>(),
        });
        let content_type = "application/vnd.microsoft.card.adaptive";
        match self.form {
            CardForm::Bare => card,
            CardForm::Wrapped => {
                json!({ "type": "message", "attachments": [{ "contentType": content_type, "content": card }] })
            }
        }
    }
}

impl HttpChannel for Teams {
    fn request(&self, message: &Message, _: &OutboxId, _: Timestamp, _: Form) -> HttpRequest {
        let without_alerts = self.body(message, &[], 0).to_string().len();
        // One block with its comma.
        let size = |line: &str| run(line, "default").to_string().len();
        let lines = message.alerts.iter().map(|alert| alert.text.clone()).collect();
        let budget = BODY_BYTES_MAX.saturating_sub(without_alerts);
        let Fitted { lines, omitted } = fit(lines, message.omitted, budget, size);
        HttpRequest::json(Method::Post, self.url.clone(), &self.body(message, &lines, omitted))
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        by_status(answer, now)
    }
}
