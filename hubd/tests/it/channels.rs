//! Channels of receiver files, each delivered to by the running hub.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use holdfast_protocol::alert::DeliveryOutcome;
use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::report::Sections;
use hubd::clock::Clock as _;
use hubd::settings::{Given, Settings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::mail_server::MailServer;
use crate::world::{Options, World, until};

type Requests = Arc<Mutex<Vec<(String, HeaderMap, Value)>>>;

/// Answers as ntfy, Gotify and Slack do.
async fn take(State(seen): State<Requests>, uri: Uri, headers: HeaderMap, body: Bytes) -> &'static str {
    let body = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().push((uri.path().to_owned(), headers, body));
    if uri.path().starts_with("/services") { "ok" } else { "{\"id\": 1}" }
}

async fn chats(seen: &Requests) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(take).with_state(Arc::clone(seen));
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// A mail server with STARTTLS, and the CA of its certificate.
fn mail_server() -> (MailServer, String) {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    (MailServer::start("starttls", &leaf.pem(), &key.serialize_pem()), ca.pem())
}

fn receiver(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(format!("receiver-{name}.toml"));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_reaches_mail_ntfy_gotify_and_a_chat() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Requests::default();
    let (url, (mut mails, ca)) = (chats(&seen).await, mail_server());
    let smtp = format!(
        "kind = \"smtp\"\nserver = \"localhost\"\nport = {}\nsecurity = \"starttls\"\nca = \"\"\"\n{ca}\"\"\"\n\
         login = {{ user = \"holdfast\", password = \"correct horse\" }}\n\
         from = \"holdfast@ops.example\"\nto = [\"on-call@ops.example\"]\n",
        mails.port
    );
    let mut settings = "deliver_to = \"loopback\"\n[alerts]\ngroup_wait_s = 0\n".to_owned();
    for (name, text) in [
        ("mail", smtp),
        ("push", format!("kind = \"ntfy\"\nserver = \"{url}\"\ntopic = \"t0p1c\"\n")),
        ("phone", format!("kind = \"gotify\"\nserver = \"{url}\"\nkey = \"Ak3y\"\n")),
        ("chat", format!("kind = \"slack\"\nurl = \"{url}/services/T1/B1/s3cret\"\n")),
    ] {
        let path = receiver(folder.path(), name, &text);
        settings.push_str(&format!("[[receiver]]\nname = \"{name}\"\nfile = \"{}\"\n", path.display()));
    }
    std::fs::write(folder.path().join("hub.toml"), settings).unwrap();
    let given = Given { dir: folder.path().to_owned(), ..Given::default() };
    let alerts = Settings::load(given).unwrap().alerts;
    let world = World::with(Options { alerts, ..Options::default() }).await;

    let host = world.enrol("box7").await;
    let (code, since) = (ConditionCode::RecordsBroken, world.clock.now());
    let wrong = ReportedCondition::new(code, Subject::Host {}, since, "no write succeeds");
    let request = host.full(1, 0);
    let conditions = Some(ConditionSet::collect([wrong]));
    let sections = Sections { conditions, ..request.sections.clone() };
    host.check_in(&CheckinRequest { sections, ..request }, "0s").await.data(StatusCode::OK);
    let now = world.clock.advance(1);
    world.store.advance_alerts(&world.term().await, now, CorrelationId::new(Uuid::nil()), 64).await.unwrap();
    until("all four have it", || async { world.store.deliveries(None, 10).await.unwrap().len() == 4 }).await;
    let log = world.store.deliveries(None, 10).await.unwrap();
    assert!(log.iter().all(|one| one.outcome == DeliveryOutcome::Delivered), "{log:?}");

    let title = "[critical] box7: RECORDS_BROKEN (critical)";
    let (mail, more) = tokio::task::spawn_blocking(move || (mails.next_mail(), mails.stop())).await.unwrap();
    assert!(more.is_empty(), "{more:?}");
    assert_eq!((&mail["tls"], &mail["user"]), (&"TLSv1.3".into(), &"holdfast".into()));
    assert_eq!(mail["headers"]["subject"], title);
    assert!(mail["text"].as_str().unwrap().contains("no write succeeds"), "{mail}");
    let seen = seen.lock().unwrap().clone();
    let at = |path: &str| seen.iter().find(|(found, _, _)| found == path).unwrap();
    let (_, _, ntfy) = at("/");
    assert_eq!(
        (&ntfy["topic"], &ntfy["title"], &ntfy["priority"]),
        (&"t0p1c".into(), &title.into(), &5.into())
    );
    let (_, headers, gotify) = at("/message");
    assert_eq!((&headers["x-gotify-key"], &gotify["title"]), (&"Ak3y".parse().unwrap(), &title.into()));
    let (_, _, slack) = at("/services/T1/B1/s3cret");
    assert!(slack["text"].as_str().unwrap().contains("no write succeeds"), "{slack}");
}
