//! Messages, channels and certificates for tests.

use jiff::Timestamp;
use notify::channel::{HttpChannel, Transport};
use notify::http::HttpRequest;
use notify::verdict::Form;
use notify::{Alert, Channel, Draft, GroupId, IncidentId, Link, Message, MessageState, OutboxId, Severity};
use serde_json::{Value, json};

/// Every secret of these channels has this in it.
pub const SECRET: &str = "hunter2secret";
pub const KEY: &str = "hunter2secret-hunter2secret-hunter2";

pub fn now() -> Timestamp {
    Timestamp::from_second(1_785_679_380).unwrap()
}

pub fn outbox_id() -> OutboxId {
    OutboxId::try_from("01990f3e-7b2a-7cc0-8000-00000000000a".to_owned()).unwrap()
}

pub fn group() -> GroupId {
    GroupId::try_from("pve1-disk".to_owned()).unwrap()
}

pub fn alert(number: usize, text: impl Into<String>) -> Alert {
    Alert {
        incident: IncidentId::try_from(format!("inc-{number}")).unwrap(),
        text: text.into(),
        series: None,
    }
}

pub fn draft(alerts: Vec<Alert>) -> Draft {
    Draft {
        group: group(),
        state: MessageState::Firing,
        severity: Severity::Critical,
        title: "Gäste ohne Backup <&> 東京".to_owned(),
        alerts,
        omitted: 0,
        remedy: Some("holdfast guest show web1 && true".to_owned()),
        link: Some(Link::try_from("https://hub.example/g/1?a=b&c=d".to_owned()).unwrap()),
        at: now(),
    }
}

/// Two alerts with characters that some channel escapes.
pub fn message() -> Message {
    draft(vec![alert(1, "web1 on pve1: backup <missed> since 02:00"), alert(2, "db_1 on pve1: \"late\"")])
        .into()
}

pub fn channel(settings: Value) -> Channel {
    serde_json::from_value(settings).unwrap()
}

/// One channel of each kind over HTTP, at this server.
pub fn http_channels(server: &str) -> Vec<Channel> {
    let flow = format!(
        "{server}/workflows/{SECRET}?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sig={SECRET}%2Bx-_~"
    );
    [
        json!({ "kind": "ntfy", "server": server, "topic": "hunter2secret_topic", "token": format!("tk_{SECRET}") }),
        json!({ "kind": "gotify", "server": server, "key": format!("A{SECRET}") }),
        json!({ "kind": "slack", "url": format!("{server}/services/T1/B1/{SECRET}") }),
        json!({ "kind": "teams", "url": flow }),
        json!({ "kind": "teams", "url": flow, "form": "bare" }),
        json!({ "kind": "telegram", "server": server, "token": format!("123456:{SECRET}_{SECRET}"), "chat": "-42" }),
        json!({ "kind": "matrix", "server": server, "token": format!("syt_{SECRET}"), "room": "!ops/1:matrix.example" }),
        json!({ "kind": "webhook", "url": format!("{server}/hook?key={SECRET}"), "key": KEY }),
    ]
    .into_iter()
    .map(channel)
    .collect()
}

pub fn contract(channel: &Channel) -> &dyn HttpChannel {
    match channel.transport() {
        Transport::Http(contract) => contract,
        Transport::Mail(_) => panic!("a mail channel has no HTTP contract"),
    }
}

pub fn request(channel: &Channel, message: &Message) -> HttpRequest {
    contract(channel).request(message, &outbox_id(), now(), Form::default())
}

/// A CA and a server's certificate of it for `localhost`, as PEM: CA, certificate, key.
pub fn certificates() -> (String, String, String) {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = rcgen::CertifiedIssuer::self_signed(ca, ca_key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &ca).unwrap();
    (ca.pem(), leaf.pem(), key.serialize_pem())
}
