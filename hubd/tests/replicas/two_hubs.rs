//! Wakes, a killed hub and other keys, with two hubs.

use std::time::Duration;

use holdfast_protocol::operator::DesiredVersion;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

use crate::fleet::{Agent, Fleet, HELD_S};
use crate::hubs::{Site, hubd};
use crate::receiver::Receiver;
use crate::world::{document, until};

async fn agent(site: &mut Site, at: usize) -> Agent {
    let (name, host) = site.hosts.remove(0);
    let clients = site.clients(&host);
    Agent::new(name, host, clients, at)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_put_at_one_hub_reaches_an_agent_that_is_held_at_the_other() {
    let receiver = Receiver::default();
    let mut site = Site::start(2, 1, &receiver.start().await).await;
    let (fleet, mut agent) = (Fleet::default(), agent(&mut site, 0).await);
    agent.check_in(&fleet, false, 0).await.unwrap();
    let (name, admin) = (agent.name.clone(), site.admin(1));
    for generation in 1..=5_u64 {
        #[expect(clippy::disallowed_methods, reason = "the check-in is held meanwhile")]
        let held = tokio::spawn(async move {
            let answer = agent.check_in(&Fleet::default(), false, HELD_S).await;
            (agent, answer, Instant::now())
        });
        // Its own questions reach the hub before this one's answers come.
        for _ in 0..3 {
            site.admin(0).get::<Value>("/v1/hosts").await.data(StatusCode::OK);
        }
        assert!(!held.is_finished(), "nothing is new for it");
        let seen = format!("\"{}\"", generation - 1);
        admin
            .put_desired::<DesiredVersion>(&name, Some(&seen), document(generation))
            .await
            .data(StatusCode::OK);
        let put_at = Instant::now();
        let (back, answer, came_at) = held.await.unwrap();
        agent = back;
        let took = came_at.saturating_duration_since(put_at);
        println!("generation {generation}: held at hub0, put at hub1, there after {} ms", took.as_millis());
        assert_eq!(answer.unwrap().desired, Some(document(generation)));
        assert!(took < Duration::from_secs(HELD_S / 2), "it was not woken: {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_killed_is_replaced_and_no_alarm_is_lost_or_sent_twice() {
    let receiver = Receiver::default();
    let mut site = Site::start(2, 2, &receiver.start().await).await;
    let fleet = Fleet::default();
    let (mut one, mut two) = (agent(&mut site, 0).await, agent(&mut site, 1).await);
    let heard = || receiver.firing().len();
    one.check_in(&fleet, true, 0).await.unwrap();
    until("the first alarm is sent", || async { heard() == 1 }).await;
    // The first hub was there first, so it has the duties.
    site.hubs[0].kill().await;
    let killed_at = Instant::now();
    two.check_in(&fleet, true, 0).await.unwrap();
    until("the other hub sends the second alarm", || async { heard() == 2 }).await;
    println!("the second alarm came {} ms after its hub was killed", killed_at.elapsed().as_millis());
    site.hubs[0].restart().await;
    // It asked for the duties, and has none.
    until("both hubs know the same", || async {
        site.admin(0).get::<Value>("/v1/alerts").await.status == StatusCode::OK
    })
    .await;
    assert!(receiver.firing().values().all(|notices| notices.len() == 1), "{:?}", receiver.firing());
    assert!(site.hubs[1].log().contains("\"lease\""), "{}", site.hubs[1].log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_with_other_keys_does_not_start_on_the_database() {
    let receiver = Receiver::default();
    let site = Site::start(1, 0, &receiver.start().await).await;
    let folder = site.strange_folder();
    let said = async || {
        let output = hubd().args(["serve", "--listen", "127.0.0.1:0", "--dir"]).arg(&folder).output();
        let output = output.await.unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    // In an empty folder it makes no keys: there are hosts that would not know them.
    let text = said().await;
    assert!(text.contains("seed.key is missing"), "{text}");
    let alone = folder.parent().unwrap().join("alone");
    let mut made = hubd();
    made.args(["serve", "--listen", "0.0.0.0:0", "--dir"]).arg(&alone);
    made.output().await.unwrap();
    for key in ["seed.key", "ca.key", "ca.pem", "countersign.key"] {
        std::fs::copy(alone.join(key), folder.join(key)).unwrap();
    }
    let text = said().await;
    assert!(text.contains("copy seed.key, ca.key, ca.pem and countersign.key"), "{text}");
    assert_eq!(site.admin(0).send::<Value>(Method::GET, "/v1/whoami", &()).await.status, StatusCode::OK);
}
