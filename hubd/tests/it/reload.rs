//! Rules and receivers that are read again.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use holdfast_protocol::alert::{DeliveryOutcome, IncidentView, ReceiverSettings, ReceiverView};
use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::operator::Page;
use hubd::settings::{AlertSettings, Given, Settings};
use hubd::task::delivery::ReceiverSet;
use hubd::task::reload::{AlertChannels, ReloadSource};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::notices::Server;
use crate::process::Process;
use crate::world::{Client, Options, World, client, until};

/// Writes a receiver's file, which only its user can read.
async fn receiver(folder: &Path, name: &str, server: &Server) -> PathBuf {
    let path = folder.join(format!("receiver-{name}.toml"));
    let url = server.start().await;
    let text = format!("kind = \"webhook\"\nurl = \"{}\"\nkey = \"{}\"\n", url.expose(), "k".repeat(32));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Writes `hub.toml` with these receivers.
fn settings(folder: &Path, receivers: &[(&str, &Path)], more: &str) {
    let mut text = format!("deliver_to = \"loopback\"\n{more}");
    for (name, path) in receivers {
        text.push_str(&format!("[[receiver]]\nname = \"{name}\"\nfile = \"{}\"\n", path.display()));
    }
    std::fs::write(folder.join("hub.toml"), text).unwrap();
}

async fn names(client: &Client) -> Vec<String> {
    let page: Page<ReceiverView> = client.get("/v1/receivers").await.data(StatusCode::OK);
    page.items.iter().map(|one| one.name.to_string()).collect()
}

async fn age(client: &Client) -> ReceiverSettings {
    let page: Page<ReceiverView> = client.get("/v1/receivers").await.data(StatusCode::OK);
    page.items[0].settings.unwrap()
}

async fn codes(client: &Client) -> Vec<ConditionCode> {
    let page: Page<IncidentView> = client.get("/v1/alerts?host=hub").await.data(StatusCode::OK);
    page.items.iter().map(|one| one.code).collect()
}

async fn test(client: &Client, name: &str) {
    client
        .send::<Value>(Method::POST, &format!("/v1/receivers/{name}/test"), &json!({}))
        .await
        .data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_receivers_are_taken_and_refused_settings_change_nothing_and_are_an_alert() {
    let folder = tempfile::tempdir().unwrap();
    let (ops, night) = (Server::default(), Server::default());
    let ops_file = receiver(folder.path(), "ops", &ops).await;
    let night_file = receiver(folder.path(), "night", &night).await;
    settings(folder.path(), &[("ops", &ops_file)], "");
    let given = Given { dir: folder.path().to_owned(), ..Given::default() };
    let load = move || Settings::load(given.clone()).map(|settings| settings.alerts);
    let alerts = load().unwrap();
    let read = move || {
        let AlertSettings { rules, receivers, reach, files, .. } = load()?;
        Ok(AlertChannels { rules, set: ReceiverSet::new(receivers, reach).with_files(files) })
    };
    let (reload, requests) = mpsc::channel(1);
    let source = ReloadSource { read: Box::new(read), requests };
    let world = World::with(Options { alerts, reload: Some(source), ..Options::default() }).await;
    let admin = world.admin();
    assert_eq!(names(&admin).await, ["ops"]);

    let in_force = age(&admin).await;
    assert_eq!(in_force.changed_at, None);
    settings(folder.path(), &[("ops", &ops_file), ("night", &night_file)], "");
    assert!(age(&admin).await.changed_at.is_some(), "the file is newer");
    world.clock.advance(5);
    reload.send(()).await.unwrap();
    until("the new receiver is there", || async { names(&admin).await == ["ops", "night"] }).await;
    let reloaded = age(&admin).await;
    assert!(reloaded.changed_at.is_none() && reloaded.since > in_force.since, "{reloaded:?}");
    test(&admin, "night").await;
    until("it is sent to", || async { night.seen.lock().unwrap().len() == 2 }).await;

    settings(
        folder.path(),
        &[("ops", &ops_file)],
        "alerts = { default_route = { receivers = [\"nite\"] } }\n",
    );
    reload.send(()).await.unwrap();
    until("the refusal is an alert", || async {
        // The hub looks what is wrong with itself once a minute.
        world.clock.advance(61);
        codes(&admin).await == [ConditionCode::HubSettingsRefused]
    })
    .await;
    let page: Page<IncidentView> = admin.get("/v1/alerts?host=hub").await.data(StatusCode::OK);
    assert!(page.items[0].message.as_str().contains("nite"), "{:?}", page.items[0].message);
    assert_eq!(names(&admin).await, ["ops", "night"]);

    // A notice that waits for a receiver which is taken out ends with its next try.
    night.seen.lock().unwrap().clear();
    settings(folder.path(), &[("ops", &ops_file)], "");
    reload.send(()).await.unwrap();
    until("it is gone", || async { names(&admin).await == ["ops"] }).await;
    let refused = admin.send::<Value>(Method::POST, "/v1/receivers/night/test", &json!({})).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    let log = world.store.deliveries(None, 50).await.unwrap();
    let to_night: Vec<_> = log.iter().filter(|one| one.receiver.as_str() == "night").collect();
    assert!(to_night.len() >= 2, "{to_night:?}");
    for one in to_night {
        assert!(matches!(one.outcome, DeliveryOutcome::Delivered | DeliveryOutcome::Refused), "{one:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reads_the_settings_again() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path();
    let server = Server::default();
    let file = receiver(folder, "ops", &server).await;
    settings(folder, &[], "");
    let process = Process::start(folder, "127.0.0.1:0").await;
    let token = std::fs::read_to_string(folder.join("admin-token")).unwrap();
    let ca_pem = std::fs::read_to_string(folder.join("ca.pem")).unwrap();
    let anyone = client(&ca_pem, &process.url, None);
    let admin = anyone.with("authorization", &format!("Bearer {}", token.trim()));
    assert_eq!(names(&admin).await, Vec::<String>::new());
    settings(folder, &[("ops", &file)], "");
    process.signal("-HUP").await;
    until("the receiver is there", || async { names(&admin).await == ["ops"] }).await;
    test(&admin, "ops").await;
    until("it is sent to", || async { server.seen.lock().unwrap().len() == 2 }).await;
    let (status, log) = process.stop().await;
    assert!(status.success(), "{log}");
    assert!(log.contains("\"reload\"") && !log.contains(&"k".repeat(32)), "{log}");
}
