//! Notices to receivers of customers, on their way through the whole hub.

use alerts::Rules;
use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::id::{CorrelationId, GuestUid, ReceiverName};
use holdfast_protocol::report::Sections;
use holdfast_protocol::secret::Secret;
use hubd::clock::Clock as _;
use hubd::settings::AlertSettings;
use hubd::task::delivery::Receiver;
use notify::channel::Webhook;
use notify::{Channel, EgressPolicy};
use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::notices::Server;
use crate::world::{Host, Options, World, until};

const RULES: &str = r#"
group_wait_s = 0
group_by = []
[[receiver]]
name = "acme"
customer = "acme"
[[route]]
name = "acme"
matchers = ["customer=acme"]
receivers = ["acme"]
continue = true
[[route]]
name = "careless"
receivers = ["acme", "ops"]
"#;

/// A guest, by number, name and customer.
type Guest = (u128, &'static str, &'static str);

/// A check-in of a host of which everything is wrong.
async fn reports(world: &World, host: &Host, guests: &[Guest]) {
    let since = world.clock.now();
    let uid = |number| GuestUid::new(Uuid::from_u128(number));
    let texts = guests.iter().map(|(number, name, customer)| {
        json!({ "uid": uid(*number), "name": name, "customer": customer, "vmid": 100 + number,
            "status": "managed", "run": "running" })
    });
    let broken = guests.iter().map(|(number, name, _)| {
        let subject = Subject::Guest { uid: uid(*number) };
        ReportedCondition::new(ConditionCode::GuestBroken, subject, since, &format!("{name} does not start"))
    });
    let names: Vec<&str> = guests.iter().map(|(_, name, _)| *name).collect();
    let message = format!("no room for {}", names.join(", "));
    let full = ReportedCondition::new(ConditionCode::RecordsBroken, Subject::Host {}, since, &message);
    let request = host.full(1, 0);
    let sections = Sections {
        guests: serde_json::from_value(texts.collect()).unwrap(),
        conditions: Some(ConditionSet::collect(broken.chain([full]))),
        ..request.sections.clone()
    };
    host.check_in(&CheckinRequest { sections, ..request }, "0s").await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customers_receiver_is_never_sent_anothers_guest() {
    let (acme, ops) = (Server::default(), Server::default());
    let mut receivers = Vec::new();
    for (name, server) in [("acme", &acme), ("ops", &ops)] {
        let key = Secret::new("k".repeat(32)).try_into().unwrap();
        let channel =
            Channel::Webhook(Webhook { url: server.start().await, key, former_key: None, ca: None });
        receivers.push(Receiver { name: name.parse().unwrap(), channel });
    }
    let names: Vec<ReceiverName> = receivers.iter().map(|one| one.name.clone()).collect();
    let rules = toml::from_str::<Rules>(RULES).unwrap().resolve(&names).unwrap();
    let alerts =
        AlertSettings { rules, receivers, reach: EgressPolicy::Loopback, ..AlertSettings::default() };
    let world = World::with(Options { alerts, ..Options::default() }).await;
    let shared = world.enrol("shared").await;
    reports(&world, &shared, &[(1, "web", "acme"), (2, "payroll", "beta")]).await;
    let own = world.enrol("own").await;
    reports(&world, &own, &[(3, "shop", "acme")]).await;
    let other = world.enrol("other").await;
    reports(&world, &other, &[(4, "books", "beta")]).await;
    let now = world.clock.advance(60);
    world.store.advance_alerts(&world.term().await, now, CorrelationId::new(Uuid::nil()), 64).await.unwrap();
    let texts = |server: &Server| -> Vec<String> {
        let seen = server.seen.lock().unwrap();
        let alerts = seen.iter().flat_map(|(_, _, body)| body["alerts"].as_array().unwrap().clone());
        alerts.map(|alert| alert["text"].as_str().unwrap().to_owned()).collect()
    };
    let has = |texts: &[String], part: &str| texts.iter().any(|text| text.contains(part));
    until("all is sent", || async {
        let (ops, acme) = (texts(&ops), texts(&acme));
        ["payroll does not", "web does not", "books does not", "shop does not"]
            .iter()
            .all(|one| has(&ops, one))
            && ["web does not", "shop does not", "no room for shop"].iter().all(|one| has(&acme, one))
            && world.store.queues().await.unwrap().is_empty()
    })
    .await;
    let acme = texts(&acme);
    for never in ["payroll", "books", "beta", "shared: RECORDS", "other"] {
        assert!(!has(&acme, never), "{never}: {acme:?}");
    }
    assert!(has(&texts(&ops), "no room for web, payroll"), "the operators hear of the shared host");
}
