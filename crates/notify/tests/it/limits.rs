//! Limits of the channels, up to the last unit.
//!
//! In every request each alert is named or counted.

use notify::{Channel, Draft, Message};
use serde_json::{Value, json};

use crate::fixtures::{alert, channel, draft, http_channels, now, outbox_id, request};

/// The texts of a request that a reader sees, and what the receiver's limit counts.
struct Readable {
    texts: Vec<String>,
    used: usize,
    max: usize,
}

fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|one| strings(one, into)),
        Value::Object(fields) => fields.values().for_each(|one| strings(one, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What a reader sees, and Telegram counts: the text without tags, with entities as one character.
fn parsed(html: &str) -> String {
    let text =
        ["<b>", "</b>", "<code>", "</code>"].iter().fold(html.to_owned(), |text, tag| text.replace(tag, ""));
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn readable(channel: &Channel, message: &Message) -> Readable {
    let request = request(channel, message);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    let (texts, used, max) = match channel.kind().as_str() {
        "ntfy" => (vec![text("message")], text("message").len(), 4096),
        "gotify" => (vec![text("message")], text("message").len(), 8192),
        "slack" => (vec![parsed(&text("text"))], text("text").chars().count(), 3000),
        "telegram" => {
            let text = parsed(&text("text"));
            (vec![text.clone()], text.encode_utf16().count(), 4096)
        }
        "matrix" => (vec![text("body")], text("body").len(), 24 * 1024),
        "teams" => {
            let mut texts = Vec::new();
            strings(&body, &mut texts);
            (texts, request.body.len(), 16 * 1024)
        }
        "webhook" => {
            let mut texts = vec![format!("and {} more", body["omitted"])];
            strings(&body["alerts"], &mut texts);
            (texts, request.body.len(), 64 * 1024)
        }
        other => panic!("{other}"),
    };
    Readable { texts, used, max }
}

/// How many of the alerts are named, and how many are counted.
fn named_and_counted(shown: &Readable, message: &Message) -> (usize, usize) {
    let named = message
        .alerts
        .iter()
        .filter(|alert| shown.texts.iter().any(|text| text.contains(&alert.text)))
        .count();
    let counted = shown
        .texts
        .iter()
        .flat_map(|text| text.lines())
        .find_map(|line| line.strip_prefix("and ")?.strip_suffix(" more")?.parse().ok());
    (named, counted.unwrap_or(0))
}

#[test]
fn thirty_alerts_are_thirty_on_every_channel() {
    let texts: [fn(usize) -> String; 3] = [
        |n| format!("guest{n:02} on pve1: backup missed since 02:00"),
        |n| format!("gäst{n:02} 東京 <&> \"x\" {}", "ü".repeat(270)),
        |n| format!("guest{n:02} 🔥{}", "🔥".repeat(280)),
    ];
    for text in texts {
        for omitted in [0, 12_345] {
            let alerts = (0..30).map(|n| alert(n, text(n))).collect();
            let message = Message::from(Draft { omitted, ..draft(alerts) });
            for channel in http_channels("https://chat.example") {
                let shown = readable(&channel, &message);
                let (named, counted) = named_and_counted(&shown, &message);
                let all = 30 + usize::try_from(omitted).unwrap();
                assert_eq!(named + counted, all, "{:?}: {named} named, {counted} counted", channel.kind());
                assert!(shown.used <= shown.max, "{:?}: {} of {}", channel.kind(), shown.used, shown.max);
            }
        }
    }
}

/// The last alert grows by one letter until it no longer fits. At that point the limit must be used up to a few units.
#[test]
fn a_limit_is_used_to_its_edge_and_not_beyond() {
    for channel in http_channels("https://chat.example") {
        let of = |count: usize, last: usize| {
            let mut alerts: Vec<_> =
                (0..count).map(|n| alert(n, format!("{n:04}{}", "x".repeat(200)))).collect();
            alerts.push(alert(9999, format!("last{}", "y".repeat(last))));
            let message = Message::from(draft(alerts));
            let shown = readable(&channel, &message);
            let (named, counted) = named_and_counted(&shown, &message);
            assert_eq!(named + counted, count + 1, "{:?}", channel.kind());
            assert!(shown.used <= shown.max, "{:?}: {} of {}", channel.kind(), shown.used, shown.max);
            (counted, shown.max - shown.used)
        };
        let Some(count) = (0..198).find(|count| of(count + 1, 1).0 > 0) else {
            assert!(matches!(channel.kind().as_str(), "webhook"), "{:?} has no edge", channel.kind());
            continue;
        };
        let edge = (1..300).find(|last| of(count, last + 1).0 > 0).unwrap();
        let (counted, left) = of(count, edge);
        assert!(counted == 0 && left <= 8, "{:?}: {left} units unused", channel.kind());
    }
}

/// 200 alerts of 300 characters are more than one body of a webhook.
#[test]
fn a_webhook_counts_what_its_body_has_no_room_for() {
    let alerts = (0..200).map(|n| alert(n, format!("{n:04}{}", "\"".repeat(296)))).collect();
    let message = Message::from(draft(alerts));
    let all = http_channels("https://chat.example");
    let shown = readable(&all[7], &message);
    let (named, counted) = named_and_counted(&shown, &message);
    assert_eq!(named + counted, 200);
    assert!(counted > 0 && shown.max - shown.used < 700, "{counted} counted, {} used", shown.used);
}

#[test]
fn slack_blocks_keep_all_three_limits() {
    let alerts: Vec<_> = (0..200).map(|n| alert(n, format!("{n:04}{}", "ü".repeat(296)))).collect();
    let message = Message::from(Draft { title: "ü".repeat(300), omitted: 7, ..draft(alerts) });
    let request = request(&http_channels("https://chat.example")[2], &message);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let blocks = body["blocks"].as_array().unwrap();
    assert!(blocks.len() <= 50, "{}", blocks.len());
    let mut texts = String::new();
    for block in blocks {
        let text = block.pointer("/text/text").unwrap().as_str().unwrap();
        let max = if block["type"] == "header" { 150 } else { 3000 };
        assert!((1..=max).contains(&text.chars().count()), "{}", text.chars().count());
        texts.push_str(text);
        texts.push('\n');
    }
    assert!(message.alerts.iter().all(|alert| texts.contains(&alert.text)), "every alert is in a block");
    assert!(texts.contains("\nand 7 more\n"));
}

#[test]
fn a_mail_names_them_all() {
    let smtp = channel(json!({
        "kind": "smtp", "server": "mail.example", "security": "tls", "from": "holdfast@x.example", "to": ["a@x.example"],
    }));
    let notify::channel::Transport::Mail(smtp) = smtp.transport() else { panic!("a mail channel") };
    let alerts = (0..200).map(|n| alert(n, format!("guest{n:04} is down"))).collect();
    let message = Message::from(Draft { omitted: 3, ..draft(alerts) });
    let mail = String::from_utf8(smtp.mail(&message, &outbox_id(), now())).unwrap();
    let body = mail.split_once("\r\n\r\n").unwrap().1;
    assert!((0..200).all(|n| body.contains(&format!("guest{n:04} is down\r\n"))));
    assert!(body.contains("\r\nand 3 more\r\n"));
}
