//! Stories of alerts over the API.

use alerts::Rules;
use alerts::incident::{IncidentId, Scope};
use holdfast_protocol::alert::{
    ExplanationView, IncidentDetail, IncidentPhase, IncidentView, LogKindView, LogView, MaintenanceView,
    MuteReason, ReceiverView, SilenceView, TestQueued,
};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Severity, Subject};
use holdfast_protocol::id::{CorrelationId, GuestUid, HostId, ReceiverName};
use holdfast_protocol::operator::{HostState, HostView, Page, Role};
use holdfast_protocol::report::{GuestReport, Sections};
use holdfast_protocol::secret::Secret;
use hubd::clock::Clock as _;
use hubd::settings::AlertSettings;
use hubd::task::delivery::Receiver;
use jiff::SignedDuration;
use notify::channel::Webhook;
use notify::url::SecretUrl;
use notify::{Channel, EgressPolicy};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::operators::operator;
use crate::world::{Client, Host, Options, World};

/// It has no grace.
const BROKEN: ConditionCode = ConditionCode::RecordsBroken;

/// A hub with a receiver that no notice reaches: nothing listens there.
async fn world() -> World {
    let name: ReceiverName = "ops".parse().unwrap();
    let url = SecretUrl::try_from(Secret::new("http://127.0.0.1:9/hook".to_owned())).unwrap();
    let key = Secret::new("k".repeat(32)).try_into().unwrap();
    let alerts = AlertSettings {
        rules: Rules::default().resolve(std::slice::from_ref(&name)).unwrap(),
        receivers: vec![Receiver {
            name,
            channel: Channel::Webhook(Webhook { url, key, former_key: None, ca: None }),
        }],
        reach: EgressPolicy::Loopback,
        watcher: None,
        backup: None,
        files: hubd::api::SettingsFiles::default(),
    };
    World::with(Options { alerts, ..Options::default() }).await
}

/// A check-in that says that exactly these are wrong with the host itself.
async fn reports(world: &World, host: &Host, sequence: u64, codes: &[ConditionCode]) {
    let since = world.clock.now();
    let wrong = codes.iter().map(|code| ReportedCondition::new(*code, Subject::Host {}, since, "as it is"));
    let sections = Sections { conditions: Some(ConditionSet::collect(wrong)), ..Sections::default() };
    let request = match sequence {
        1 => {
            let full = host.full(1, 0);
            let sections = Sections { conditions: sections.conditions, ..full.sections.clone() };
            holdfast_protocol::checkin::CheckinRequest { sections, ..full }
        }
        later => host.changed(later, 0, sections),
    };
    host.check_in(&request, "0s").await.data(StatusCode::OK);
}

/// Lets the engine do what is due after some seconds.
async fn later(world: &World, seconds: i64) {
    let now = world.clock.advance(seconds);
    world.store.advance_alerts(&world.term().await, now, CorrelationId::new(Uuid::nil()), 64).await.unwrap();
}

async fn list(client: &Client, query: &str) -> Vec<IncidentView> {
    client.get::<Page<IncidentView>>(&format!("/v1/alerts{query}")).await.data(StatusCode::OK).items
}

async fn post<T: serde::de::DeserializeOwned>(client: &Client, path: &str, body: Value) -> T {
    client.send(Method::POST, path, &body).await.data(StatusCode::OK)
}

fn in_hours(world: &World, hours: i64) -> String {
    (world.clock.now() + SignedDuration::from_hours(hours)).to_string()
}

/// A host with one incident that fires and that was put into the outbox.
async fn one_alert(world: &World) -> (Host, String) {
    let host = world.enrol("box7").await;
    let id = one_alert_of(world, &host).await;
    (host, id)
}

async fn one_alert_of(world: &World, host: &Host) -> String {
    reports(world, host, 1, &[BROKEN]).await;
    later(world, 1).await;
    later(world, 31).await;
    list(&world.admin(), "").await.remove(0).id.as_str().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reported_condition_is_listed_acknowledged_and_over() {
    let world = world().await;
    let (host, id) = one_alert(&world).await;
    let admin = world.admin();
    let detail: IncidentDetail = admin.get(&format!("/v1/alerts/{id}")).await.data(StatusCode::OK);
    let incident = &detail.incident;
    assert_eq!((incident.code, incident.severity), (BROKEN, Severity::Critical));
    assert_eq!((incident.phase, incident.subject.as_str()), (IncidentPhase::Firing, "host"));
    assert_eq!(incident.host.as_ref().unwrap().as_str(), "box7");
    assert_eq!(detail.receivers.len(), 1);
    let kinds: Vec<LogKindView> = detail.log.items.iter().rev().map(|one| one.kind).collect();
    assert_eq!(kinds, [LogKindView::Opened, LogKindView::Fired, LogKindView::Queued]);

    let until = in_hours(&world, 2);
    let path = format!("/v1/alerts/{id}/acknowledge");
    let known: IncidentView = post(&admin, &path, json!({ "until": until })).await;
    let given = known.acknowledged.unwrap();
    assert_eq!((given.by.as_str(), given.until.unwrap().to_string()), ("admin", until));
    let detail: IncidentDetail = admin.get(&format!("/v1/alerts/{id}")).await.data(StatusCode::OK);
    let muted = detail.receivers[0].muted.as_ref().unwrap();
    assert_eq!(muted.reason, MuteReason::Acknowledged);
    assert!(muted.text.starts_with("acknowledged by admin until "), "{}", muted.text);
    let open: IncidentView = post(&admin, &format!("/v1/alerts/{id}/unacknowledge"), json!({})).await;
    assert_eq!(open.acknowledged, None);

    reports(&world, &host, 2, &[]).await;
    later(&world, 121).await;
    assert_eq!(list(&admin, "").await, []);
    assert_eq!(list(&admin, "?filter=all").await[0].phase, IncidentPhase::Resolved);
    let late = admin.send::<Value>(Method::POST, &path, &json!({})).await;
    assert_eq!(late.code(), ErrorCode::IncidentOver);
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_come_in_pages_and_the_log_by_host_or_alert() {
    let world = world().await;
    for name in ["box7", "box8", "box9"] {
        let host = world.enrol(name).await;
        reports(&world, &host, 1, &[BROKEN]).await;
    }
    later(&world, 1).await;
    let admin = world.admin();
    let (mut query, mut hosts) = ("?limit=2".to_owned(), Vec::new());
    loop {
        let path = format!("/v1/alerts{query}");
        let page: Page<IncidentView> = admin.get(&path).await.data(StatusCode::OK);
        hosts.extend(page.items.iter().map(|one| one.host.clone().unwrap().to_string()));
        let Some(next) = page.next else { break };
        query = format!("?limit=2&cursor={next}");
    }
    hosts.sort();
    assert_eq!(hosts, ["box7", "box8", "box9"]);
    let log = |query: String| {
        let admin = world.admin();
        async move {
            let page = admin.get::<Page<LogView>>(&format!("/v1/alerts/log{query}")).await;
            page.data(StatusCode::OK).items
        }
    };
    let box8 = world.view("box8").await.id;
    let of_host = log(format!("?host={box8}")).await;
    let is_box8 = |one: &LogView| one.host.as_ref().unwrap().as_str() == "box8";
    assert!(!of_host.is_empty() && of_host.iter().all(is_box8), "{of_host:?}");
    let of_alert = log(format!("?alert={box8}-1")).await;
    assert!(of_alert.iter().all(|one| one.alert.as_ref().unwrap().as_str() == format!("{box8}-1")));
    assert!(log(String::new()).await.len() > of_host.len());
}

/// A guest `web` of customer `acme`.
fn web() -> Vec<GuestReport> {
    let uid = GuestUid::new(Uuid::from_u128(7));
    let web = json!([{ "uid": uid, "name": "web", "customer": "acme", "vmid": 101, "status": "managed",
        "run": "running" }]);
    serde_json::from_value(web).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_listed_by_host_guest_code_and_severity() {
    let world = world().await;
    let box7 = world.enrol("box7").await;
    reports(&world, &world.enrol("box8").await, 1, &[BROKEN, ConditionCode::ClockUnkept]).await;
    let since = world.clock.now();
    let uid = GuestUid::new(Uuid::from_u128(7));
    let wrong = [(ConditionCode::GuestBroken, Subject::Guest { uid }), (BROKEN, Subject::Host {})];
    let wrong = wrong.map(|(code, subject)| ReportedCondition::new(code, subject, since, "as it is"));
    let full = box7.full(1, 0);
    let conditions = Some(ConditionSet::collect(wrong));
    let sections = Sections { guests: Some(web()), conditions, ..full.sections.clone() };
    let request = holdfast_protocol::checkin::CheckinRequest { sections, ..full };
    box7.check_in(&request, "0s").await.data(StatusCode::OK);
    later(&world, 1).await;
    let admin = world.admin();
    let id = world.view("box7").await.id;
    for (query, count) in [
        ("host=box7".to_owned(), 2),
        (format!("host={id}&code=GUEST_BROKEN"), 1),
        ("guest=web".to_owned(), 1),
        ("guest=web&host=box8".to_owned(), 0),
        ("code=RECORDS_BROKEN".to_owned(), 2),
        ("host=box8&severity=critical".to_owned(), 1),
        ("host=box8&severity=info&limit=1".to_owned(), 1),
        ("host=hub".to_owned(), 0),
    ] {
        let found = list(&admin, &format!("?filter=all&{query}")).await;
        assert_eq!(found.len(), count, "{query}: {found:?}");
    }
    for (query, code) in [
        ("host=box9", ErrorCode::NotFound),
        ("guest=wbe", ErrorCode::NotFound),
        ("code=BROKEN", ErrorCode::Range),
        ("severity=high", ErrorCode::Range),
        ("planet=x", ErrorCode::Range),
    ] {
        assert_eq!(admin.get::<Value>(&format!("/v1/alerts?{query}")).await.code(), code, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silence_that_would_mute_nothing_is_refused_with_the_reason() {
    let world = world().await;
    let host = world.enrol("box7").await;
    let full = host.full(1, 0);
    let sections = Sections { guests: Some(web()), ..full.sections.clone() };
    let request = holdfast_protocol::checkin::CheckinRequest { sections, ..full };
    host.check_in(&request, "0s").await.data(StatusCode::OK);
    let admin = world.admin();
    let uid = GuestUid::new(Uuid::from_u128(7));
    let until = in_hours(&world, 1);
    for (matcher, says) in [
        ("host=box8", "no host is called \"box8\""),
        ("guest=wbe", "no host has a guest \"wbe\""),
        ("customer=acne", "no guest is of customer \"acne\""),
        ("planet=x", "code, severity, cause, kind, subject, host, guest, customer and policy are"),
        ("severity=high", "it is one of info, warning, critical"),
        ("code=GUEST_CRASH", "GUEST_CRASHED"),
    ] {
        let request = json!({ "matchers": ["severity!=info", matcher], "until": until, "comment": "a test" });
        let refused = admin.send::<Value>(Method::POST, "/v1/silences", &request).await;
        assert_eq!(refused.code(), ErrorCode::Range, "{matcher}");
        let message = refused.envelope.error.unwrap().message;
        assert!(message.contains(says), "{matcher}: {message}");
    }
    for matcher in ["host=box7", "guest=web", &format!("guest={uid}"), "customer=acme", "host!=box8"] {
        let request =
            json!({ "matchers": ["severity=critical", matcher], "until": until, "comment": "a test" });
        admin.send::<SilenceView>(Method::POST, "/v1/silences", &request).await.data(StatusCode::CREATED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silence_mutes_and_its_end_speaks() {
    let world = world().await;
    let admin = world.admin();
    let host = world.enrol("box7").await;
    let request =
        json!({ "matchers": ["host=box7"], "until": in_hours(&world, 2), "comment": "a disk comes" });
    let made = admin.with("idempotency-key", "k-1");
    let one: SilenceView = made.send(Method::POST, "/v1/silences", &request).await.data(StatusCode::CREATED);
    let two: SilenceView = made.send(Method::POST, "/v1/silences", &request).await.data(StatusCode::CREATED);
    assert_eq!(one, two, "a repeat is the same silence");
    let id = one_alert_of(&world, &host).await;
    let detail: IncidentDetail = admin.get(&format!("/v1/alerts/{id}")).await.data(StatusCode::OK);
    assert_eq!(detail.receivers[0].muted.as_ref().unwrap().reason, MuteReason::Silenced);
    let muted: Vec<&LogView> =
        detail.log.items.iter().filter(|one| one.kind == LogKindView::Suppressed).collect();
    assert!(muted[0].text.starts_with(&format!("not sent to ops: silenced by {}", one.id)), "{muted:?}");
    let ended: SilenceView = post(&admin, &format!("/v1/silences/{}/end", one.id), json!({})).await;
    assert_eq!(ended.id, one.id);
    let left: Page<SilenceView> = admin.get("/v1/silences").await.data(StatusCode::OK);
    assert_eq!(left.items, []);
    later(&world, 31).await;
    let receivers: Page<ReceiverView> = admin.get("/v1/receivers").await.data(StatusCode::OK);
    assert_eq!((receivers.items[0].name.as_str(), receivers.items[0].waiting), ("ops", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_shown_degraded_and_in_maintenance() {
    let world = world().await;
    let host = world.enrol("box7").await;
    reports(&world, &host, 1, &[BROKEN, ConditionCode::ClockUnkept]).await;
    let view = world.view("box7").await;
    let degraded = view.degraded.unwrap();
    assert_eq!((view.state, degraded.condition), (HostState::Degraded, Some(BROKEN)));
    assert_eq!(degraded.reason, "as it is");
    reports(&world, &host, 2, &[ConditionCode::ClockUnkept]).await;
    let view = world.view("box7").await;
    assert_eq!((view.state, view.degraded), (HostState::Online, None), "a warning is no degradation");

    let admin = world.admin();
    let until = world.clock.now() + SignedDuration::from_hours(2);
    let path = "/v1/hosts/box7/maintenance";
    let announced: MaintenanceView = post(&admin, path, json!({ "until": until })).await;
    assert_eq!((announced.host.as_str(), announced.windows.len()), ("box7", 1));
    let hosts: Page<HostView> = admin.get("/v1/hosts").await.data(StatusCode::OK);
    assert_eq!(hosts.items[0].maintenance_until, Some(until));
    let explained: ExplanationView =
        post(&admin, "/v1/alerts/explain", json!({ "code": "DISK_FULL", "host": "box7" })).await;
    assert_eq!(explained.receivers[0].fire_muted.as_ref().unwrap().reason, MuteReason::Maintenance);
    let ended: MaintenanceView = post(&admin, &format!("{path}/end"), json!({})).await;
    assert_eq!(ended.windows, []);
    assert_eq!(world.view("box7").await.maintenance_until, None);
    let _: HostView = post(&admin, "/v1/hosts/box7/revoke", json!({})).await;
    let revoked = format!("/v1/hosts/{}/maintenance", host.enrolled.host_id);
    let refused = admin.send::<Value>(Method::POST, &revoked, &json!({ "until": until })).await;
    assert_eq!(refused.code(), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_explanation_knows_the_guest_and_sends_nothing() {
    let world = world().await;
    let host = world.enrol("box7").await;
    let uid = GuestUid::new(Uuid::from_u128(7));
    let web = json!({ "uid": uid, "name": "web", "customer": "acme", "vmid": 101, "status": "managed", "run": "running" });
    let guests = serde_json::from_value(json!([web])).unwrap();
    let full = host.full(1, 0);
    let sections = Sections { guests: Some(guests), ..full.sections.clone() };
    let request = holdfast_protocol::checkin::CheckinRequest { sections, ..full };
    host.check_in(&request, "0s").await.data(StatusCode::OK);
    let viewer = world.with_token(&operator(&world, "vera", Role::Viewer).await);
    let explain = |body: Value| {
        let viewer = viewer.clone();
        async move { viewer.send::<ExplanationView>(Method::POST, "/v1/alerts/explain", &body).await }
    };
    let asked = json!({ "code": "GUEST_CRASHED", "host": "box7", "guest": "web", "severity": "critical" });
    let explained = explain(asked).await.data(StatusCode::OK);
    assert_eq!(explained.subject, format!("guest:{uid}"));
    assert_eq!((explained.severity, explained.fires_after_s), (Severity::Critical, 60));
    assert_eq!(explained.route.as_deref(), Some("default"));
    assert_eq!(explained.receivers[0].receiver.as_str(), "ops");
    assert!(explained.receivers[0].fire_muted.is_none());
    assert!(explained.inhibited_by.contains(&ConditionCode::HostOffline));
    let info = explain(json!({ "code": "HOST_LATE" })).await.data(StatusCode::OK);
    assert_eq!((info.route, info.receivers), (None, Vec::new()), "it is only in the log");
    let refused = [
        (json!({ "code": "GUEST_CRASHED", "host": "box7", "guest": "db" }), ErrorCode::NotFound),
        (json!({ "code": "GUEST_CRASHED", "guest": "web" }), ErrorCode::Range),
        (json!({ "code": "DISK_FULL", "host": "box7", "guest": "web" }), ErrorCode::Range),
        (json!({ "code": "HUB_DISK_FULL", "host": "box7" }), ErrorCode::Range),
        (json!({ "code": "DISK_FULL", "host": "box8" }), ErrorCode::NotFound),
    ];
    for (body, code) in refused {
        assert_eq!(explain(body.clone()).await.code(), code, "{body}");
    }
    assert_eq!(list(&viewer, "?filter=all").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_tried_once_at_a_time() {
    let world = world().await;
    let admin = world.admin().with("idempotency-key", "k-1");
    let one: TestQueued = post(&admin, "/v1/receivers/ops/test", json!({})).await;
    let two: TestQueued = post(&admin, "/v1/receivers/ops/test", json!({})).await;
    assert_eq!((one.notices.len(), &one), (2, &two), "a repeat is the same test");
    let more = world.admin().send::<Value>(Method::POST, "/v1/receivers/ops/test", &json!({})).await;
    assert_eq!(more.code(), ErrorCode::UnderWay);
    let unknown = world.admin().send::<Value>(Method::POST, "/v1/receivers/ada/test", &json!({})).await;
    assert_eq!(unknown.code(), ErrorCode::NotFound);
    crate::world::until("the failure is shown", || async {
        let receivers: Page<ReceiverView> = world.admin().get("/v1/receivers").await.data(StatusCode::OK);
        let ops = &receivers.items[0];
        ops.waiting == 2 && ops.failure.is_some() && ops.last.is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_reads_and_bad_input_changes_nothing() {
    let world = world().await;
    let (host, id) = one_alert(&world).await;
    let viewer = world.with_token(&operator(&world, "vera", Role::Viewer).await);
    let read = ["/v1/alerts", "/v1/alerts/log", "/v1/silences", "/v1/receivers", "/v1/deliveries"];
    for path in read.iter().map(|path| (*path).to_owned()).chain([format!("/v1/alerts/{id}")]) {
        assert_eq!(viewer.get::<Value>(&path).await.status, StatusCode::OK, "{path}");
    }
    let acknowledge = format!("/v1/alerts/{id}/acknowledge");
    let soon = in_hours(&world, 1);
    let silence = |matcher: &str| json!({ "matchers": [matcher], "until": soon, "comment": "a test" });
    let changes = [
        (acknowledge.clone(), json!({})),
        (format!("/v1/alerts/{id}/unacknowledge"), json!({})),
        ("/v1/silences".to_owned(), silence("host=box7")),
        ("/v1/silences/1/end".to_owned(), json!({})),
        ("/v1/hosts/box7/maintenance".to_owned(), json!({ "until": soon })),
        ("/v1/hosts/box7/maintenance/end".to_owned(), json!({})),
        ("/v1/receivers/ops/test".to_owned(), json!({})),
    ];
    for (path, body) in changes {
        assert_eq!(viewer.send::<Value>(Method::POST, &path, &body).await.code(), ErrorCode::Forbidden);
    }
    let (past, far) = (in_hours(&world, -1), in_hours(&world, 91 * 24));
    let elsewhere = IncidentId { scope: Scope::Host(HostId::new(Uuid::nil())), number: 1 };
    let maintenance = "/v1/hosts/box7/maintenance".to_owned();
    let silences = || "/v1/silences".to_owned();
    let bad = [
        (acknowledge.clone(), json!({ "until": past }), ErrorCode::Range),
        (acknowledge.clone(), json!({ "until": far }), ErrorCode::Range),
        (acknowledge, json!({ "untill": soon }), ErrorCode::UnknownField),
        (format!("/v1/alerts/{elsewhere}/acknowledge"), json!({}), ErrorCode::NotFound),
        ("/v1/alerts/box7/acknowledge".to_owned(), json!({}), ErrorCode::NotFound),
        (silences(), silence("host"), ErrorCode::Range),
        (silences(), silence("hots=box7"), ErrorCode::Range),
        (silences(), silence("host=~box.*"), ErrorCode::Range),
        (silences(), silence("code=DISK_FUL"), ErrorCode::Range),
        (silences(), silence("host!=box7"), ErrorCode::SilenceEverything),
        (silences(), json!({ "matchers": [], "until": soon, "comment": "x" }), ErrorCode::SilenceEverything),
        (silences(), json!({ "matchers": ["host=box7"], "until": past, "comment": "x" }), ErrorCode::Range),
        (silences(), json!({ "matchers": ["host=box7"], "until": soon }), ErrorCode::Missing),
        ("/v1/silences/9/end".to_owned(), json!({}), ErrorCode::NotFound),
        (maintenance.clone(), json!({ "until": far }), ErrorCode::Range),
        (maintenance, json!({}), ErrorCode::Missing),
        ("/v1/hosts/box9/maintenance".to_owned(), json!({ "until": soon }), ErrorCode::NotFound),
    ];
    let before = world.event_kinds().await.len();
    for (path, body, code) in bad {
        let refused = world.admin().send::<Value>(Method::POST, &path, &body).await;
        assert_eq!(refused.code(), code, "{path} {body}");
    }
    for query in ["?filter=none", "?cursor=x", "?limit=0", "?firing=true"] {
        let refused = world.admin().get::<Value>(&format!("/v1/alerts{query}")).await;
        assert_eq!(refused.code(), ErrorCode::Range, "{query}");
    }
    let both = format!("/v1/alerts/log?host={}&alert={id}", host.enrolled.host_id);
    assert_eq!(world.admin().get::<Value>(&both).await.code(), ErrorCode::Range);
    assert_eq!(world.event_kinds().await.len(), before);
    assert_eq!(list(&viewer, "").await[0].acknowledged, None);
}
