//! Delivery to an incoming webhook of Slack.
//!
//! Blocks are plain text: names with `_` or `<!here>` in an alert neither format nor notify. The field `text` is what a
//! notification shows and is always set.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::HttpChannel;
use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::id::OutboxId;
use crate::message::{ALERT_CHARS_MAX, ALERTS_MAX, Message};
use crate::text::{foot, heading, more, one_line, plain};
use crate::url::SecretUrl;
use crate::verdict::{Form, Verdict, by_status, confirmed};

/// The most characters of a header block.
const HEADER_CHARS_MAX: usize = 150;
/// The most characters of a section block, and of the fallback.
const SECTION_CHARS_MAX: usize = 3000;
/// The most blocks of a message.
const BLOCKS_MAX: usize = 50;
/// Header, count and foot.
const OTHER_BLOCKS: usize = 3;
// All alerts of the longest message fit: a section is left for the next one when less than one line is free in it.
const _: () = assert!(
    ALERTS_MAX * (ALERT_CHARS_MAX + 1) <= (BLOCKS_MAX - OTHER_BLOCKS) * (SECTION_CHARS_MAX - ALERT_CHARS_MAX)
);

/// A webhook of one Slack channel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slack {
    pub url: SecretUrl,
}

/// The three characters that begin an entity.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn block(kind: &str, text: &str) -> Value {
    json!({ "type": kind, "text": { "type": "plain_text", "text": text, "emoji": false } })
}

/// Lines joined into texts of at most `max` characters.
fn sections(lines: &[String], max: usize) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    for line in lines {
        match sections.last_mut() {
            Some(last) if chars(last).saturating_add(1).saturating_add(chars(line)) <= max => {
                last.push('\n');
                last.push_str(line);
            }
            Some(_) | None => sections.push(one_line(line, max)),
        }
    }
    sections
}

impl HttpChannel for Slack {
    fn request(&self, message: &Message, _: &OutboxId, _: Timestamp, _: Form) -> HttpRequest {
        let heading = heading(message);
        let lines: Vec<String> = message.alerts.iter().map(|alert| alert.text.clone()).collect();
        let mut blocks = vec![block("header", &one_line(&heading, HEADER_CHARS_MAX))];
        blocks.extend(sections(&lines, SECTION_CHARS_MAX).iter().map(|text| block("section", text)));
        if message.omitted > 0 {
            blocks.push(block("section", &more(message.omitted.into())));
        }
        blocks.push(block("section", &foot(message).join("\n")));
        let escaped = |text: &str| chars(&escape(text));
        let room = SECTION_CHARS_MAX.saturating_sub(escaped(&heading)).saturating_sub(1);
        let text = format!("{}\n{}", escape(&heading), escape(&plain(message, room, escaped)));
        HttpRequest::json(Method::Post, self.url.clone(), &json!({ "text": text, "blocks": blocks }))
    }

    fn verdict(&self, answer: &HttpAnswer, now: Timestamp) -> Verdict {
        confirmed(by_status(answer, now), || answer.body.trim_ascii() == b"ok")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_filled_to_the_last_character() {
        let line = |count: usize| "ü".repeat(count);
        assert_eq!(sections(&[line(4), line(5)], 10), [format!("{}\n{}", line(4), line(5))]);
        assert_eq!(sections(&[line(5), line(5)], 10), [line(5), line(5)]);
        assert_eq!(sections(&[], 10), [""; 0]);
    }
}
