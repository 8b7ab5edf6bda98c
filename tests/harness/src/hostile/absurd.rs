//! Answers that no hub of ours gives.
//!
//! In: dice, and a valid answer as a frame. Out: a reply, and its description in words.

use std::time::Duration;

use serde_json::{Value, json};

use super::document::spoil_bytes;
use crate::fake_hub::{Reply, framed};
use power_disk::dice::Dice;

/// Longer than any answer may be.
const ENDLESS: usize = 6 << 20;

const PAGES: [&str; 4] = [
    "<!doctype html><title>502 Bad Gateway</title>",
    "Found. Redirecting to https://hub.evil.example/",
    "",
    "\u{feff}\u{0}\u{0}",
];

/// Answers with something that is not the expected answer.
pub fn write(dice: &mut Dice, right: &Value) -> (Reply, String) {
    match dice.below(12) {
        0 | 1 => {
            let status = *dice.of_these(&[200, 201, 204, 301, 302, 307, 401, 403, 404, 500, 502, 503]);
            let page = *dice.of_these(&PAGES);
            (Reply::at_once(status, page), format!("answer: {status} {page:?}"))
        }
        2 => (Reply { after: Duration::ZERO, answer: None }, "answer: none at all".to_owned()),
        3 => {
            let seconds = dice.below(90);
            let reply = Reply::data(right).after(Duration::from_secs(seconds));
            (reply, format!("answer: after {seconds} s"))
        }
        4 => {
            let body = if dice.below(6) == 0 { ENDLESS } else { 300_000 };
            (Reply::at_once(200, "[".repeat(body)), format!("answer: {body} brackets"))
        }
        5 | 6 => {
            let mut text = framed(right, &Value::Null);
            let how = spoil_bytes(dice, &mut text);
            (Reply::at_once(200, text), format!("answer: {how}"))
        }
        7 => {
            let codes = ["INVITE_USED", "CERTIFICATE", "NO_SUCH_CODE", "INTERNAL", "BUSY", "RATE_LIMITED"];
            let code = *dice.of_these(&codes);
            let error = json!({ "code": code, "message": "no" });
            let data = if dice.below(3) == 0 { right.clone() } else { Value::Null };
            let status = *dice.of_these(&[200, 403, 409, 429, 500]);
            (Reply::at_once(status, framed(&data, &error)), format!("answer: {status} {code}"))
        }
        8 | 9 => fields(dice, right),
        _ => cursors(dice, right),
    }
}

/// One field of it is replaced by something else.
fn fields(dice: &mut Dice, right: &Value) -> (Reply, String) {
    let mut answer = right.clone();
    let field = *dice.of_these(&["acknowledged", "need", "poll_interval_s", "jobs", "desired", "more"]);
    let values = [
        json!(null),
        json!(-1),
        json!("full"),
        json!([]),
        json!({}),
        json!(0),
        json!([{ "id": "x", "blob": 1 }]),
    ];
    answer[field] = dice.of_these(&values).clone();
    let what = format!("answer: {field} is {}", answer[field]);
    (Reply::data(&answer), what)
}

/// False statements about what the hub has received.
fn cursors(dice: &mut Dice, right: &Value) -> (Reply, String) {
    let mut answer = right.clone();
    let what = match dice.below(6) {
        0 => {
            answer["acknowledged"] = json!(u64::MAX);
            "it has heard reports of the future"
        }
        1 => {
            answer["acknowledged"] = json!(0);
            "it has heard nothing"
        }
        2 | 3 => {
            answer["need"] = json!("full");
            "it needs all of it"
        }
        4 => {
            answer["audit_seen"] = json!(u64::MAX);
            "it has heard of an audit line that cannot be"
        }
        // Rarely, because it voids what was signed.
        _ => {
            let far = if dice.below(8) == 0 { 1_000_000 + dice.below(1_000) } else { 0 };
            answer["audit_seen"] = json!(far);
            "it has heard of a later audit line, or of none"
        }
    };
    (Reply::data(&answer), format!("answer: {what}"))
}
