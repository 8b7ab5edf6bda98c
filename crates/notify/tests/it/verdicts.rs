//! Verdicts on answers, as the servers give them.

use std::time::Duration;

use notify::http::HttpAnswer;
use notify::reason::Reason;
use notify::verdict::{Fallback, Form, Markup, Verdict};
use serde_json::{Value, json};

use crate::fixtures::{contract, http_channels, message, now, outbox_id};

/// Kind, status, `Retry-After`, body, verdict.
type Row = (&'static str, u16, Option<&'static str>, &'static str, Verdict);

const fn after(seconds: u64) -> Verdict {
    Verdict::RetryAfter(Duration::from_secs(seconds))
}

const CREDENTIAL: Verdict = Verdict::Permanent(Reason::Credential);
const ADDRESS: Verdict = Verdict::Permanent(Reason::Address);
const REQUEST: Verdict = Verdict::Permanent(Reason::Request);
const TOO_LONG: Verdict = Verdict::Permanent(Reason::TooLong);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("ntfy", 200, None, r#"{"id":"hwQ2YpKdmg","time":1,"event":"message","topic":"t"}"#, Verdict::Delivered),
    ("ntfy", 200, None, "<html>log in to the hotel</html>", Verdict::Retry),
    ("ntfy", 429, None, r#"{"code":42901,"http":429,"error":"limit reached"}"#, after(60)),
    ("ntfy", 429, Some("5"), "", after(5)),
    ("ntfy", 403, None, r#"{"code":40301,"http":403,"error":"forbidden"}"#, CREDENTIAL),
    ("ntfy", 413, None, "", TOO_LONG),
    ("ntfy", 507, None, "", Verdict::Retry),
    ("gotify", 200, None, r#"{"id":25,"appid":5,"message":"m"}"#, Verdict::Delivered),
    ("gotify", 200, None, "", Verdict::Retry),
    ("gotify", 401, None, r#"{"error":"Unauthorized","errorCode":401}"#, CREDENTIAL),
    ("gotify", 400, None, r#"{"error":"Bad Request","errorCode":400}"#, REQUEST),
    ("slack", 200, None, "ok", Verdict::Delivered),
    ("slack", 200, None, "ok\n", Verdict::Delivered),
    ("slack", 200, None, "<html>", Verdict::Retry),
    ("slack", 400, None, "invalid_blocks", REQUEST),
    ("slack", 403, None, "action_prohibited", CREDENTIAL),
    ("slack", 404, None, "no_service", ADDRESS),
    ("slack", 410, None, "channel_is_archived", ADDRESS),
    ("slack", 429, Some("30"), "", after(30)),
    ("slack", 500, None, "rollup_error", Verdict::Retry),
    ("teams", 202, None, "", Verdict::Delivered),
    ("teams", 200, None, "1", Verdict::Delivered),
    ("teams", 401, None, r#"{"error":{"code":"SignatureInvalid"}}"#, CREDENTIAL),
    ("teams", 404, None, r#"{"error":{"code":"WorkflowNotFound"}}"#, ADDRESS),
    ("teams", 429, Some("17"), "", after(17)),
    ("teams", 502, None, "", Verdict::Retry),
    ("telegram", 200, None, r#"{"ok":true,"result":{"message_id":1}}"#, Verdict::Delivered),
    ("telegram", 200, None, r#"{"ok":false}"#, Verdict::Retry),
    ("telegram", 400, None, r#"{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities: Unsupported start tag"}"#, Verdict::Fallback(Fallback::PlainText)),
    ("telegram", 400, None, r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#, ADDRESS),
    ("telegram", 400, None, r#"{"ok":false,"error_code":400,"description":"Bad Request: message is too long"}"#, TOO_LONG),
    ("telegram", 400, None, r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}"#, Verdict::Fallback(Fallback::Chat(-1_001_234_567_890))),
    ("telegram", 401, None, r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#, CREDENTIAL),
    ("telegram", 403, None, r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was kicked"}"#, CREDENTIAL),
    ("telegram", 404, None, r#"{"ok":false,"error_code":404,"description":"Not Found"}"#, CREDENTIAL),
    ("telegram", 429, None, r#"{"ok":false,"error_code":429,"description":"Too Many Requests: can't parse entities","parameters":{"retry_after":13}}"#, after(13)),
    ("telegram", 429, Some("3"), "", after(3)),
    ("matrix", 200, None, r#"{"event_id":"$abc"}"#, Verdict::Delivered),
    ("matrix", 200, None, "{}", Verdict::Retry),
    ("matrix", 429, None, r#"{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":2500}"#, Verdict::RetryAfter(Duration::from_millis(2500))),
    ("matrix", 429, None, r#"{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":10}"#, after(1)),
    ("matrix", 429, Some("9"), r#"{"errcode":"M_LIMIT_EXCEEDED"}"#, after(9)),
    ("matrix", 401, None, r#"{"errcode":"M_UNKNOWN_TOKEN"}"#, CREDENTIAL),
    ("matrix", 403, None, r#"{"errcode":"M_FORBIDDEN"}"#, CREDENTIAL),
    ("matrix", 413, None, r#"{"errcode":"M_TOO_LARGE"}"#, TOO_LONG),
    ("webhook", 200, None, "", Verdict::Delivered),
    ("webhook", 204, None, "", Verdict::Delivered),
    ("webhook", 307, None, "", Verdict::Permanent(Reason::Redirect)),
    ("webhook", 410, None, "", ADDRESS),
    ("webhook", 422, None, "", REQUEST),
    ("webhook", 429, Some("Sun, 02 Aug 2026 14:04:00 GMT"), "", after(60)),
    ("webhook", 503, Some("120"), "", after(120)),
    ("webhook", 500, None, "", Verdict::Retry),
];

#[test]
fn answers_are_judged_by_the_table() {
    let channels = http_channels("https://chat.example");
    for (kind, status, retry_after, body, verdict) in TABLE {
        let channel = channels.iter().find(|channel| channel.kind().as_str() == *kind).unwrap();
        let answer = HttpAnswer {
            status: *status,
            retry_after: retry_after.map(str::to_owned),
            body: body.as_bytes().to_vec(),
        };
        assert_eq!(contract(channel).verdict(&answer, now()), *verdict, "{kind} {status} {body}");
    }
}

#[test]
fn a_telegram_fallback_changes_what_it_names_alone() {
    let channels = http_channels("https://chat.example");
    let body = |form: Form| -> Value {
        let request = contract(&channels[5]).request(&message(), &outbox_id(), now(), form);
        serde_json::from_slice(&request.body).unwrap()
    };
    let plain = body(Form { markup: Markup::Plain, chat: None });
    assert_eq!(plain.get("parse_mode"), None);
    assert!(plain["text"].as_str().unwrap().contains("backup <missed> since"));
    let moved = body(Form { markup: Markup::Rich, chat: Some(-100) });
    assert_eq!((&moved["chat_id"], &moved["parse_mode"]), (&json!(-100), &json!("HTML")));
}
