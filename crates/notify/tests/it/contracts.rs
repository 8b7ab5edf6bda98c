//! The exact request of each channel.

use notify::{Alert, Channel, Draft, Link, Message, MessageState, Series, Severity};
use serde_json::{Value, json};

use crate::fixtures::{SECRET, alert, channel, draft, http_channels, message, request};

const SERVER: &str = "https://chat.example/base";

fn made(kind: &str, message: &Message) -> (String, Vec<(&'static str, String)>, Value) {
    let all = http_channels(SERVER);
    let channel = all.iter().find(|channel| channel.kind().as_str() == kind).unwrap();
    parts(channel, message)
}

fn parts(channel: &Channel, message: &Message) -> (String, Vec<(&'static str, String)>, Value) {
    let request = request(channel, message);
    let headers = request.headers.iter().map(|(name, value)| (*name, value.expose().to_owned())).collect();
    let line = format!("{:?} {}", request.method, request.url.expose());
    (line, headers, serde_json::from_slice(&request.body).unwrap())
}

const PLAIN: &str = "web1 on pve1: backup <missed> since 02:00\ndb_1 on pve1: \"late\"\n\n\
                     Run: holdfast guest show web1 && true\nSee: https://hub.example/g/1?a=b&c=d\n2026-08-02 14:03 UTC";
const HEADING: &str = "[critical] Gäste ohne Backup <&> 東京";

#[test]
fn ntfy_gets_json_at_its_root() {
    let (line, headers, body) = made("ntfy", &message());
    assert_eq!(line, "Post https://chat.example/base/");
    assert_eq!(headers, [("authorization", format!("Bearer tk_{SECRET}"))]);
    let expected = json!({
        "topic": "hunter2secret_topic",
        "title": HEADING,
        "message": PLAIN,
        "priority": 5,
        "tags": ["rotating_light"],
        "sequence_id": "pve1-disk",
        "click": "https://hub.example/g/1?a=b&c=d",
    });
    assert_eq!(body, expected);
}

#[test]
fn gotify_gets_its_key_in_a_header() {
    let (line, headers, body) = made("gotify", &message());
    assert_eq!(line, "Post https://chat.example/base/message");
    assert_eq!(headers, [("x-gotify-key", format!("A{SECRET}"))]);
    let extras = json!({
        "client::display": { "contentType": "text/plain" },
        "client::notification": { "click": { "url": "https://hub.example/g/1?a=b&c=d" } },
    });
    assert_eq!(body, json!({ "title": HEADING, "message": PLAIN, "priority": 9, "extras": extras }));
}

#[test]
fn an_alertmanager_gets_labels_and_times_and_no_end_of_what_fires() {
    let with = |starts: &str, ends: Option<&str>| {
        let labels = [("alertname", "GUEST_BROKEN"), ("host", "pve1")];
        let series = Series {
            labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            remedy: "holdfast guest show web1".to_owned(),
            starts_at: starts.parse().unwrap(),
            ends_at: ends.map(|ends| ends.parse().unwrap()),
            source: Some(Link::try_from("https://hub.example/v1/alerts/1".to_owned()).unwrap()),
        };
        Alert { series: Some(Box::new(series)), ..alert(1, "web1 is broken") }
    };
    let settings = json!({ "kind": "alertmanager", "server": SERVER, "token": format!("tk_{SECRET}") });
    let begun = "2026-08-02T14:00:00Z";
    let over = with(begun, Some("2026-08-02T14:01:00Z"));
    // By a clock that went back.
    let odd = with("2026-08-02T14:02:00Z", Some("2026-08-02T14:01:00Z"));
    let message = Message::from(draft(vec![with(begun, None), over, odd, alert(2, "plain")]));
    let (line, headers, body) = parts(&channel(settings), &message);
    assert_eq!(line, format!("Post {SERVER}/api/v2/alerts"));
    assert_eq!(headers, [("authorization", format!("Bearer tk_{SECRET}"))]);
    assert_eq!(
        body[0],
        json!({
            "labels": { "alertname": "GUEST_BROKEN", "host": "pve1" },
            "annotations": { "summary": "web1 is broken", "incident": "inc-1", "remedy": "holdfast guest show web1" },
            "startsAt": begun,
            "generatorURL": "https://hub.example/v1/alerts/1",
        })
    );
    assert_eq!(body[1]["endsAt"], "2026-08-02T14:01:00Z");
    assert_eq!(body[2]["startsAt"], body[2]["endsAt"]);
    assert_eq!(body[3]["labels"], json!({ "alertname": "HOLDFAST", "incident": "inc-2" }));
}

#[test]
fn slack_gets_plain_blocks_and_a_fallback() {
    let (line, headers, body) = made("slack", &message());
    assert_eq!(line, format!("Post https://chat.example/base/services/T1/B1/{SECRET}"));
    assert_eq!(headers, []);
    let (alerts, foot) = PLAIN.split_once("\n\n").unwrap();
    let block = |kind: &str, text: &str| json!({ "type": kind, "text": { "type": "plain_text", "text": text, "emoji": false } });
    assert_eq!(
        body["blocks"],
        json!([block("header", HEADING), block("section", alerts), block("section", foot)])
    );
    let text = body["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "[critical] Gäste ohne Backup &lt;&amp;&gt; 東京\nweb1 on pve1: backup &lt;missed&gt;"
        )
    );
    assert_eq!(body.as_object().unwrap().len(), 2);
}

#[test]
fn teams_gets_a_card_wrapped_or_bare() {
    let all = http_channels(SERVER);
    let [wrapped, bare] = [3, 4].map(|at: usize| parts(&all[at], &message()));
    let url = format!(
        "Post {SERVER}/workflows/{SECRET}?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sig={SECRET}%2Bx-_~"
    );
    assert_eq!((wrapped.0.as_str(), bare.0.as_str()), (url.as_str(), url.as_str()), "the query is verbatim");
    assert_eq!(
        wrapped.2,
        json!({
            "type": "message",
            "attachments": [{ "contentType": "application/vnd.microsoft.card.adaptive", "content": bare.2 }],
        })
    );
    let run = |text: &str, font: &str| json!({ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": text, "fontType": font }] });
    let title = json!({ "type": "TextRun", "text": HEADING, "color": "attention", "weight": "bolder", "size": "large" });
    assert_eq!(
        bare.2["body"],
        json!([
            { "type": "RichTextBlock", "inlines": [title] },
            run("web1 on pve1: backup <missed> since 02:00", "default"),
            run("db_1 on pve1: \"late\"", "default"),
            run("holdfast guest show web1 && true", "monospace"),
            run("2026-08-02 14:03 UTC", "default"),
        ])
    );
    assert_eq!((&bare.2["type"], &bare.2["version"]), (&json!("AdaptiveCard"), &json!("1.4")));
    let open =
        json!([{ "type": "Action.OpenUrl", "title": "Open", "url": "https://hub.example/g/1?a=b&c=d" }]);
    assert_eq!(bare.2["actions"], open);
}

#[test]
fn telegram_gets_html_with_three_escapes() {
    let (line, headers, body) = made("telegram", &message());
    assert_eq!(line, format!("Post {SERVER}/bot123456:{SECRET}_{SECRET}/sendMessage"));
    assert_eq!(headers, []);
    let text = "<b>[critical] Gäste ohne Backup &lt;&amp;&gt; 東京</b>\n\
                web1 on pve1: backup &lt;missed&gt; since 02:00\ndb_1 on pve1: \"late\"\n\n\
                <code>holdfast guest show web1 &amp;&amp; true</code>\n\
                See: https://hub.example/g/1?a=b&amp;c=d\n2026-08-02 14:03 UTC";
    assert_eq!(
        body,
        json!({
            "chat_id": "-42", "text": text, "parse_mode": "HTML",
            "link_preview_options": { "is_disabled": true },
        })
    );
}

#[test]
fn matrix_gets_the_outbox_id_as_its_transaction() {
    let (line, headers, body) = made("matrix", &message());
    assert_eq!(
        line,
        "Put https://chat.example/base/_matrix/client/v3/rooms/!ops%2F1:matrix.example/send/m.room.message/\
         01990f3e-7b2a-7cc0-8000-00000000000a"
    );
    assert_eq!(headers, [("authorization", format!("Bearer syt_{SECRET}"))]);
    assert_eq!(body, json!({ "msgtype": "m.text", "body": format!("{HEADING}\n{PLAIN}") }));
    let resolved = Message::from(Draft { state: MessageState::Resolved, ..draft(vec![]) });
    assert_eq!(made("matrix", &resolved).2["msgtype"], "m.notice");
}

#[test]
fn a_webhook_gets_all_fields() {
    let (line, headers, body) = made("webhook", &message());
    assert_eq!(line, format!("Post {SERVER}/hook?key={SECRET}"));
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["x-holdfast-signature", "idempotency-key"]);
    assert_eq!(headers[1].1, "01990f3e-7b2a-7cc0-8000-00000000000a");
    assert_eq!(
        body,
        json!({
            "version": 1, "id": "01990f3e-7b2a-7cc0-8000-00000000000a", "group": "pve1-disk",
            "state": "firing", "severity": "critical", "title": "Gäste ohne Backup <&> 東京",
            "alerts": [
                { "incident": "inc-1", "text": "web1 on pve1: backup <missed> since 02:00" },
                { "incident": "inc-2", "text": "db_1 on pve1: \"late\"" },
            ],
            "omitted": 0, "remedy": "holdfast guest show web1 && true",
            "link": "https://hub.example/g/1?a=b&c=d", "at": "2026-08-02T14:03:00Z",
        })
    );
}

/// The end of an alert replaces its beginning, and nothing of another group.
#[test]
fn messages_of_one_group_share_their_sequence() {
    for state in [MessageState::Resolved, MessageState::Flapping] {
        let message = Message::from(Draft { state, ..draft(vec![alert(1, "x")]) });
        assert_eq!(made("ntfy", &message).2["sequence_id"], "pve1-disk");
    }
}

/// What is over must not wake anyone.
#[test]
fn urgency_follows_state_and_severity() {
    use MessageState::{Digest, Firing, Flapping, Resolved, Test};
    use Severity::{Critical, Info, Warning};
    for (state, severity, ntfy, gotify, color) in [
        (Firing, Critical, 5, 9, "attention"),
        (Firing, Warning, 4, 6, "warning"),
        (Firing, Info, 3, 4, "accent"),
        (Flapping, Critical, 4, 6, "attention"),
        (Flapping, Info, 3, 4, "accent"),
        (Resolved, Critical, 2, 2, "good"),
        (Digest, Critical, 2, 2, "default"),
        (Test, Critical, 3, 4, "default"),
    ] {
        let message = Message::from(Draft { state, severity, ..draft(vec![]) });
        assert_eq!(made("ntfy", &message).2["priority"], ntfy, "{state:?} {severity:?}");
        assert_eq!(made("gotify", &message).2["priority"], gotify, "{state:?} {severity:?}");
        let card = parts(&http_channels(SERVER)[4], &message).2;
        assert_eq!(card.pointer("/body/0/inlines/0/color").unwrap(), color, "{state:?} {severity:?}");
    }
}

#[test]
fn settings_are_closed_and_complete() {
    let parse =
        |settings: Value| serde_json::from_value::<Channel>(settings).map_err(|error| error.to_string());
    for channel in http_channels(SERVER) {
        let mut settings = serde_json::to_value(&channel).unwrap();
        parse(settings.clone()).unwrap();
        settings["colour"] = json!("red");
        assert!(parse(settings).unwrap_err().contains("unknown field"), "{channel:?}");
    }
    for (settings, why) in [
        (json!({ "kind": "pager" }), "unknown variant"),
        (json!({ "kind": "slack" }), "missing field"),
        (json!({ "kind": "slack", "url": "http://hooks.example/a" }), "https://"),
        (json!({ "kind": "ntfy", "server": "https://a:b@c.example", "topic": "t" }), "user or a password"),
        (json!({ "kind": "ntfy", "server": "https://c.example", "topic": "a/b" }), "a topic has"),
        (json!({ "kind": "webhook", "url": "https://c.example/", "key": "short" }), "a signing key has"),
    ] {
        let error = parse(settings.clone()).unwrap_err();
        assert!(error.contains(why), "{settings}: {error}");
    }
}
