//! Snapshots of state over the API.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::Page;
use holdfast_protocol::report::Sections;
use holdfast_protocol::state::{Line, StateHost, StateReader, StateSnapshotView, StateTail};
use hubd::task::state_snapshots::keep;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{Host, World};

/// What no snapshot may have in it.
const PLANTED: &[&str] = &["planted-payload", "plantedcredential"];

fn sealed() -> String {
    format!("YWdlLWVuY3J5cHRpb24ub3JnL3Yx{}==", "plantedcredential1".repeat(3))
}

fn guest(number: u32, customer: &str) -> Value {
    json!({ "uid": format!("018f3c1e-6b1f-7c1d-9d0b-{number:012}"), "name": format!("{customer}-{number}"),
        "customer": customer, "vmid": 5000 + number, "status": "managed", "run": "running" })
}

async fn reports(host: &Host, guests: Vec<Value>) {
    let waiting = json!([{ "effect": "beta-2 would go", "reason": "x", "payload": "planted-payload" }]);
    let request = host.full(1, 0);
    let sections = Sections {
        guests: serde_json::from_value(guests.into()).unwrap(),
        waiting: serde_json::from_value(waiting).unwrap(),
        ..request.sections.clone()
    };
    let request = holdfast_protocol::checkin::CheckinRequest { sections, ..request };
    host.check_in(&request, "0s").await.data(StatusCode::OK);
}

/// A host with a guest of each of two customers, and one of the other customer alone.
async fn world() -> World {
    let world = World::start().await;
    let shared = world.enrol("shared").await;
    let other = world.enrol("other").await;
    let targets = json!([{ "name": "nas", "class": "slow", "role": "local-backup", "state": "attached",
        "backend": { "cifs": { "server": "10.0.0.9", "share": "backup" } }, "label": "N1", "default": true,
        "schedulable": true, "creds": sealed() }]);
    let document = json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30,
        "storage": targets, "guests": [] });
    let put: Value =
        world.admin().put_desired("shared", Some("\"0\""), document.to_string()).await.data(StatusCode::OK);
    assert_eq!(put["generation"], 1);
    reports(&shared, vec![guest(1, "acme"), guest(2, "beta")]).await;
    reports(&other, vec![guest(3, "beta")]).await;
    world
}

fn read(text: &str) -> (Vec<StateHost>, StateTail) {
    let (mut reader, mut hosts, mut tail) = (StateReader::default(), Vec::new(), None);
    for line in text.lines() {
        match reader.take(line.as_bytes()).unwrap() {
            Line::Head(_) => {}
            Line::Host(host) => hosts.push(*host),
            Line::Tail(found) => tail = Some(found),
        }
    }
    reader.end().unwrap();
    (hosts, tail.unwrap())
}

fn names(hosts: &[StateHost]) -> Vec<String> {
    let guests = hosts.iter().flat_map(|host| host.guests.iter().map(move |guest| (host, guest)));
    guests.map(|(host, guest)| format!("{}/{}", host.name, guest.name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_gives_the_whole_state_and_nothing_secret() {
    let world = world().await;
    let text = world.admin().text("/v1/state").await;
    let (hosts, tail) = read(&text);
    assert_eq!(names(&hosts), ["other/beta-3", "shared/acme-1", "shared/beta-2"]);
    assert_eq!((tail.hosts, tail.guests), (2, 3));
    for planted in PLANTED {
        assert!(!text.contains(planted), "{planted}: {text}");
    }
    let target = &hosts[1].desired.as_ref().unwrap().settings.as_ref().unwrap().targets[0];
    assert!(target.credentials, "that there are some is no secret");
    world.clock.advance(5);
    let (_, later) = read(&world.admin().text("/v1/state").await);
    assert_eq!((&later.content, later.document == tail.document), (&tail.content, false));
    let answer = world.anyone().get::<Value>("/v1/state").await;
    assert_eq!(answer.code(), ErrorCode::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_and_a_filter_hold_for_now_and_for_kept_snapshots() {
    let world = world().await;
    let admin = world.admin();
    let acme = admin.text("/v1/state?customer=acme").await;
    assert_eq!(names(&read(&acme).0), ["shared/acme-1"]);
    assert!(!acme.contains("beta") && !acme.contains("nas") && !acme.contains("\"other\""), "{acme}");
    let beta = admin.text("/v1/state?filter=%40customer-beta%2C-%25-2").await;
    assert_eq!(names(&read(&beta).0), ["other/beta-3"]);
    let none = admin.text("/v1/state?customer=gamma").await;
    assert_eq!(read(&none).1.hosts, 0);
    let day = "2026-11-27".parse().unwrap();
    keep(&world.store, day, hubd::clock::Clock::now(world.clock.as_ref()), 1 << 20).await.unwrap();
    let kept: Page<StateSnapshotView> = admin.get("/v1/state-snapshots").await.data(StatusCode::OK);
    let number = kept.items[0].number;
    let whole = admin.text(&format!("/v1/state-snapshots/{number}")).await;
    assert_eq!(read(&whole).1.content, kept.items[0].content);
    let part = admin.text(&format!("/v1/state-snapshots/{number}?customer=acme")).await;
    assert_eq!(read(&part).0, read(&acme).0);
    assert!(!part.contains("beta"), "{part}");
    for odd in ["/v1/state-snapshots/99", "/v1/state-snapshots/x"] {
        assert_eq!(admin.get::<Value>(odd).await.code(), ErrorCode::NotFound, "{odd}");
    }
    let odd = admin.get::<Value>("/v1/state?filter=%40pool-x").await;
    assert_eq!(odd.code(), ErrorCode::Range);
}

#[tokio::test(flavor = "multi_thread")]
async fn few_read_at_once_and_a_reader_that_goes_frees_its_place() {
    let world = world().await;
    let admin = world.admin();
    let request = || admin.http.get(format!("{}/v1/state", admin.url)).headers(admin.headers.clone()).send();
    for _ in 0..20 {
        // The head of the answer is here, and its body is not read.
        drop(request().await.unwrap());
    }
    crate::world::until("all places are free again", || async {
        let answers = [request().await.unwrap(), request().await.unwrap(), request().await.unwrap()];
        answers.iter().all(|answer| answer.status() == StatusCode::OK)
    })
    .await;
}
