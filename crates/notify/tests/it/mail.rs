//! Mails to a real server: TLS, login, headers, threads, refusals.

use notify::reason::Reason;
use notify::send::Remark;
use notify::{
    Channel, DeliveryError, Draft, EgressPolicy, Message, MessageState, OutboxId, Receipt, RetryDecision,
    Sender,
};
use serde_json::{Value, json};

use crate::fixtures::{alert, certificates, channel, draft, message, now, outbox_id};
use crate::mail_server::MailServer;

fn settings(port: u16, security: &str, ca: &str) -> Value {
    json!({
        "kind": "smtp", "server": "localhost", "port": port, "security": security, "ca": ca,
        "login": { "user": "holdfast", "password": "correct horse" },
        "from": "holdfast@ops.example", "to": ["on-call@ops.example", "second@ops.example"],
    })
}

async fn deliver(channel: &Channel, message: &Message) -> Result<Receipt, DeliveryError> {
    Sender::new(EgressPolicy::Loopback).deliver(channel, message, &outbox_id(), now()).await
}

#[tokio::test]
async fn a_server_with_starttls_or_tls_receives_the_mail() {
    for mode in ["starttls", "tls"] {
        let (ca, certificate, key) = certificates();
        let mut server = MailServer::start(mode, &certificate, &key);
        let receipt = deliver(&channel(settings(server.port, mode, &ca)), &message()).await.unwrap();
        assert_eq!(receipt.remarks, []);
        let mail = server.next_mail();
        assert_eq!(mail["tls"], "TLSv1.3");
        assert_eq!((&mail["user"], &mail["hello"]), (&json!("holdfast"), &json!("ops.example")));
        assert_eq!(mail["from"], "holdfast@ops.example");
        assert_eq!(mail["to"], json!(["on-call@ops.example", "second@ops.example"]));
        assert_eq!((&mail["ascii"], &mail["defects"]), (&json!(true), &json!([])));
        assert!(mail["longest_line"].as_u64().unwrap() <= 100, "{mail}");
        assert_eq!(
            mail["headers"],
            json!({
                "date": "Sun, 02 Aug 2026 14:03:00 +0000",
                "from": "Holdfast <holdfast@ops.example>",
                "to": "on-call@ops.example, second@ops.example",
                "subject": "[critical] Gäste ohne Backup <&> 東京",
                "message-id": "<01990f3e-7b2a-7cc0-8000-00000000000a@ops.example>",
                "in-reply-to": "<pve1-disk.group@ops.example>",
                "references": "<pve1-disk.group@ops.example>",
                "auto-submitted": "auto-generated",
                "mime-version": "1.0",
                "content-type": "text/plain; charset=\"utf-8\"",
                "content-transfer-encoding": "7bit",
            })
        );
        let text = mail["text"].as_str().unwrap();
        assert!(
            text.starts_with("web1 on pve1: backup <missed> since 02:00\ndb_1 on pve1: \"late\"\n\nRun: "),
            "{text}"
        );
    }
}

/// Text outside of ASCII arrives whole, and so does a line that SMTP would read as the end of the mail.
#[tokio::test]
async fn every_text_arrives_as_it_was() {
    let (ca, certificate, key) = certificates();
    let mut server = MailServer::start("starttls", &certificate, &key);
    let channel = channel(settings(server.port, "starttls", &ca));
    for text in ["Gäste 東京 🔥 are down", ".", "..", "From here"] {
        let message = Message::from(draft(vec![alert(1, text), alert(2, "x".repeat(300))]));
        deliver(&channel, &message).await.unwrap();
        let mail = server.next_mail();
        let expected = format!("{text}\n{}\n\nRun: holdfast guest show web1 && true\n", "x".repeat(300));
        assert!(mail["text"].as_str().unwrap().starts_with(&expected), "{mail}");
        assert_eq!((&mail["ascii"], &mail["defects"]), (&json!(true), &json!([])));
    }
}

#[tokio::test]
async fn mails_of_one_group_are_one_thread_and_repeats_are_one_mail() {
    let (ca, certificate, key) = certificates();
    let mut server = MailServer::start("tls", &certificate, &key);
    let channel = channel(settings(server.port, "tls", &ca));
    let resolved = Message::from(Draft { state: MessageState::Resolved, ..draft(vec![alert(1, "x")]) });
    let second = OutboxId::try_from("01990f3e-7b2a-7cc0-8000-00000000000b".to_owned()).unwrap();
    let sender = Sender::new(EgressPolicy::Loopback);
    for (message, id) in [(message(), outbox_id()), (message(), outbox_id()), (resolved, second)] {
        sender.deliver(&channel, &message, &id, now()).await.unwrap();
    }
    let mails = [server.next_mail(), server.next_mail(), server.next_mail()];
    let [first, repeat, resolved] = mails.map(|mail| mail["headers"].clone());
    assert_eq!(first["message-id"], repeat["message-id"]);
    assert_ne!(first["message-id"], resolved["message-id"]);
    assert_eq!(first["references"], resolved["references"]);
    assert!(resolved["subject"].as_str().unwrap().starts_with("[resolved] "));
}

#[tokio::test]
async fn a_reply_code_decides_about_a_repeat() {
    let (ca, certificate, key) = certificates();
    let server = MailServer::start("starttls", &certificate, &key);
    let with = |name: &str, value: Value| {
        let mut settings = settings(server.port, "starttls", &ca);
        *settings.pointer_mut(name).unwrap() = value;
        channel(settings)
    };
    for (name, value, status, reason) in [
        ("/login/password", json!("wrong"), 535, Some(Reason::Credential)),
        ("/to", json!(["gone@ops.example"]), 550, Some(Reason::Address)),
        ("/to", json!(["later@ops.example", "gone@ops.example"]), 451, None),
        ("/to", json!(["gone@ops.example", "later@ops.example"]), 451, None),
        ("/from", json!("busy@ops.example"), 452, None),
        ("/from", json!("spam@ops.example"), 554, Some(Reason::Request)),
    ] {
        let error = deliver(&with(name, value.clone()), &message()).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("correct horse"), "{error}");
        let (came, decision) = match &error {
            DeliveryError::Refused { status, reason, .. } => (*status, Some(*reason)),
            DeliveryError::Unavailable { status, .. } => (*status, None),
            other => panic!("{value}: {other}"),
        };
        assert_eq!((came, decision), (status, reason), "{value}");
        let retry = if reason.is_some() { RetryDecision::Never } else { RetryDecision::BackOff };
        assert_eq!(error.retry(), retry);
    }
}

#[tokio::test]
async fn one_refused_recipient_does_not_keep_the_mail_from_the_others() {
    let (ca, certificate, key) = certificates();
    let mut server = MailServer::start("starttls", &certificate, &key);
    let mut settings = settings(server.port, "starttls", &ca);
    settings["to"] = json!(["gone@ops.example", "on-call@ops.example", "later@ops.example"]);
    let receipt = deliver(&channel(settings), &message()).await.unwrap();
    let refused = |address: &str, status| Remark::RecipientRefused { address: address.to_owned(), status };
    assert_eq!(receipt.remarks, [refused("gone@ops.example", 550), refused("later@ops.example", 451)]);
    assert_eq!(server.next_mail()["to"], json!(["on-call@ops.example"]));
}

#[tokio::test]
async fn a_server_without_trust_gets_no_mail_and_no_password() {
    let (_, certificate, key) = certificates();
    let (other_ca, ..) = certificates();
    for mode in ["starttls", "tls"] {
        let server = MailServer::start(mode, &certificate, &key);
        let error = deliver(&channel(settings(server.port, mode, &other_ca)), &message()).await.unwrap_err();
        assert!(matches!(error, DeliveryError::Connection(_)), "{error}");
        assert_eq!(server.stop(), [Value::Null; 0]);
    }
}

#[tokio::test]
async fn plain_mail_to_this_machine_is_possible_and_kept_to_the_policy() {
    let (ca, certificate, key) = certificates();
    let mut server = MailServer::start("plain", &certificate, &key);
    let mut settings = settings(server.port, "plain_loopback", &ca);
    settings.as_object_mut().unwrap().remove("login");
    let channel = channel(settings);
    deliver(&channel, &message()).await.unwrap();
    assert_eq!(server.next_mail()["tls"], Value::Null);
    let refused = Sender::new(EgressPolicy::Private).deliver(&channel, &message(), &outbox_id(), now()).await;
    assert!(matches!(refused, Err(DeliveryError::Egress(_))), "{refused:?}");
    assert_eq!(server.stop(), [Value::Null; 0]);
}
