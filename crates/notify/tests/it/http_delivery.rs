//! Deliveries to servers that check the contract and are busy at first.

use std::time::Duration;

use notify::send::Remark;
use notify::{Channel, DeliveryError, EgressPolicy, RetryDecision, Sender};
use serde_json::{Value, json};

use crate::fixtures::{KEY, SECRET, certificates, channel, http_channels, message, now, outbox_id};
use crate::http_server::{Received, Reply, Server, reply};

/// A field of a body, and what must hold of its value.
type Field = (&'static str, fn(&Value) -> bool);

/// Checks a request as strictly as the contract is written; the error is the first difference.
fn check(kind: &str, got: &Received) -> Result<(), String> {
    let path = match kind {
        "ntfy" => "POST /".to_owned(),
        "gotify" => "POST /message".to_owned(),
        "slack" => format!("POST /services/T1/B1/{SECRET}"),
        "teams" => {
            format!(
                "POST /workflows/{SECRET}?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sig={SECRET}%2Bx-_~"
            )
        }
        "telegram" => format!("POST /bot123456:{SECRET}_{SECRET}/sendMessage"),
        "matrix" => format!(
            "PUT /_matrix/client/v3/rooms/!ops%2F1:matrix.example/send/m.room.message/{}",
            outbox_id().as_str()
        ),
        "webhook" => format!("POST /hook?key={SECRET}"),
        other => panic!("{other}"),
    };
    let came = format!("{} {}", got.method, got.path);
    if came != path {
        return Err(format!("{came} instead of {path}"));
    }
    let own: &[(&str, String)] = match kind {
        "ntfy" => &[("authorization", format!("Bearer tk_{SECRET}"))],
        "gotify" => &[("x-gotify-key", format!("A{SECRET}"))],
        "matrix" => &[("authorization", format!("Bearer syt_{SECRET}"))],
        _ => &[],
    };
    for (name, value) in own {
        if got.headers.get(*name) != Some(value) {
            return Err(format!("{name} is missing or wrong"));
        }
    }
    let known = [
        "accept",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "user-agent",
        "x-gotify-key",
        "x-holdfast-signature",
    ];
    if let Some(strange) = got.headers.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("{strange} is not in the contract"));
    }
    if got.headers["content-type"] != "application/json" {
        return Err("not JSON".to_owned());
    }
    let fields: &[Field] = match kind {
        "ntfy" => &[
            ("click", Value::is_string),
            ("message", |text| text.as_str().is_some_and(|text| (1..=4096).contains(&text.len()))),
            ("priority", |number| number.as_u64().is_some_and(|number| (1..=5).contains(&number))),
            ("sequence_id", |id| id == "pve1-disk"),
            ("tags", |tags| tags.as_array().is_some_and(|tags| tags.iter().all(Value::is_string))),
            ("title", Value::is_string),
            ("topic", |topic| topic == "hunter2secret_topic"),
        ],
        "gotify" => &[
            ("extras", |extras| extras["client::display"]["contentType"] == "text/plain"),
            ("message", |text| text.as_str().is_some_and(|text| !text.is_empty())),
            ("priority", |number| number.as_u64().is_some_and(|number| number <= 10)),
            ("title", Value::is_string),
        ],
        "matrix" => &[("body", Value::is_string), ("msgtype", |kind| kind == "m.text")],
        _ => return Ok(()),
    };
    let body = got.json();
    let body = body.as_object().ok_or("no object")?;
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    if !body.keys().map(String::as_str).eq(names.iter().copied()) {
        return Err(format!("the fields are {:?} instead of {names:?}", body.keys()));
    }
    match fields.iter().find(|(name, fits)| !fits(&body[*name])) {
        Some((name, _)) => Err(format!("{name} does not fit: {}", body[*name])),
        None => Ok(()),
    }
}

/// How each server says that it is busy for seven seconds, and that it has the message.
fn replies(kind: &str) -> (Reply, Reply) {
    let by_header = (429, "retry-after: 7\r\n".to_owned(), String::new());
    match kind {
        "ntfy" => (by_header, reply(200, r#"{"id":"a","event":"message","sequence_id":"pve1-disk"}"#)),
        "gotify" => (by_header, reply(200, r#"{"id":1}"#)),
        "slack" => (by_header, reply(200, "ok")),
        "teams" => (by_header, reply(202, "")),
        "telegram" => {
            (reply(429, r#"{"ok":false,"parameters":{"retry_after":7}}"#), reply(200, r#"{"ok":true}"#))
        }
        "matrix" => (
            reply(429, r#"{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":7000}"#),
            reply(200, r#"{"event_id":"$a"}"#),
        ),
        "webhook" => (by_header, reply(204, "")),
        other => panic!("{other}"),
    }
}

fn sender() -> Sender {
    Sender::new(EgressPolicy::Loopback)
}

async fn deliver(channel: &Channel) -> Result<notify::Receipt, DeliveryError> {
    sender().deliver(channel, &message(), &outbox_id(), now()).await
}

#[tokio::test]
async fn every_server_gets_its_contract_and_is_asked_again_when_it_was_busy() {
    for at in 0..http_channels("http://127.0.0.1").len() {
        let kind = http_channels("http://127.0.0.1")[at].kind().as_str();
        let server = Server::start(move |number, request| match check(kind, request) {
            Err(why) => reply(400, &why),
            Ok(()) if number == 0 => replies(kind).0,
            Ok(()) => replies(kind).1,
        });
        let channel = &http_channels(&server.url())[at];
        let busy = deliver(channel).await.unwrap_err();
        assert_eq!(busy.retry(), RetryDecision::After(Duration::from_secs(7)), "{kind}: {busy}");
        let receipt = deliver(channel).await.unwrap();
        assert_eq!(receipt.remarks, [], "{kind}");
        let received = server.received();
        assert_eq!(received.len(), 2, "{kind}");
        // A repeat is the same request, so that the receiver can know it as one.
        assert_eq!((&received[0].path, &received[0].body), (&received[1].path, &received[1].body), "{kind}");
        assert_eq!(received[0].headers, received[1].headers, "{kind}");
    }
}

#[tokio::test]
async fn telegram_gets_plain_text_and_the_new_chat_at_once() {
    let server = Server::start(|number, _| match number {
        0 => reply(400, r#"{"ok":false,"description":"Bad Request: can't parse entities"}"#),
        1 => reply(400, r#"{"ok":false,"parameters":{"migrate_to_chat_id":-100}}"#),
        _ => reply(200, r#"{"ok":true}"#),
    });
    let receipt = deliver(&http_channels(&server.url())[5]).await.unwrap();
    assert_eq!(receipt.remarks, [Remark::PlainText, Remark::ChatMoved(-100)]);
    let bodies: Vec<Value> = server.received().iter().map(Received::json).collect();
    let form = |body: &Value| (body["chat_id"].clone(), body.get("parse_mode").is_some());
    let forms: Vec<_> = bodies.iter().map(form).collect();
    assert_eq!(forms, [(json!("-42"), true), (json!("-42"), false), (json!(-100), false)]);
}

/// Two servers that send a bot from one chat to the other.
#[tokio::test]
async fn a_chat_that_moves_again_and_again_is_given_up() {
    let server = Server::start(|number, _| {
        reply(400, &format!(r#"{{"ok":false,"parameters":{{"migrate_to_chat_id":-{}}}}}"#, number + 1))
    });
    let error = deliver(&http_channels(&server.url())[5]).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Unavailable { status: 400, .. }), "{error}");
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_server_of_ones_own_is_trusted_by_its_ca_alone() {
    let (ca, certificate, key) = certificates();
    let (other, ..) = certificates();
    let settings = |server: &Server, ca: Option<&str>| {
        let url = format!("https://localhost:{}/hook", server.address.port());
        channel(json!({ "kind": "webhook", "url": url, "key": KEY, "ca": ca }))
    };
    let server = Server::start_tls(&certificate, &key, |_, _| reply(204, ""));
    deliver(&settings(&server, Some(&ca))).await.unwrap();
    assert_eq!(server.received().len(), 1);
    let error = deliver(&settings(&server, Some(&other))).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Connection(_)), "{error}");
    assert_eq!(error.retry(), RetryDecision::BackOff);
    assert_eq!(server.received().len(), 0, "nothing was sent to a server that is not trusted");
}
