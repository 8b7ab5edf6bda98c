//! Check-ins: merged reports, answers, long polls.

use std::time::{Duration, Instant};

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::{DesiredVersion, HostDetail, HostState, HostView};
use holdfast_protocol::report::{DesiredSection, RefusedDocument, Sections, WaitingForSignature};
use hubd::clock::Clock as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, document};

fn waiting(effect: &str) -> Sections {
    let waiting = WaitingForSignature {
        guest: None,
        effect: effect.to_owned(),
        reason: "it would be gone".to_owned(),
        payload: "{}".to_owned(),
        last_backup: None,
        last_proof: None,
    };
    Sections { waiting: Some(vec![waiting]), ..Sections::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_sections_are_laid_over_the_full_report() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let early = host.check_in(&host.changed(1, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    assert_eq!((early.acknowledged, early.need), (0, Need::Full));
    let full = host.check_in(&host.full(2, 0), "0s").await.data(StatusCode::OK);
    assert_eq!((full.acknowledged, full.need, full.desired), (2, Need::Changed, None));
    host.check_in(&host.changed(3, 0, waiting("detach")), "0s").await.data(StatusCode::OK);
    let empty = host.check_in(&host.changed(4, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    assert_eq!(empty.acknowledged, 4);
    let detail: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!(detail.sections.agent, host.full(2, 0).sections.agent);
    assert_eq!(detail.sections.waiting, waiting("detach").waiting);
    assert_eq!(detail.host.agent_version.as_deref(), Some("1.2.3"));
    assert_eq!((detail.host.attention, detail.host.state), (1, HostState::Online));
    // A late copy changes nothing, and the answer says so.
    let late = host.check_in(&host.changed(3, 0, waiting("wipe")), "0s").await.data(StatusCode::OK);
    assert_eq!((late.acknowledged, late.need), (4, Need::Full));
    let after: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!(after.sections, detail.sections);
    // What a full report leaves out the agent has not looked at yet: it stays until it has.
    host.check_in(&host.full(5, 0), "0s").await.data(StatusCode::OK);
    let after: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!((after.sections.waiting, after.host.attention), (detail.sections.waiting, 1));
    let none = Sections { waiting: Some(Vec::new()), ..Sections::default() };
    host.check_in(&host.changed(6, 0, none), "0s").await.data(StatusCode::OK);
    let after: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!((after.sections.waiting, after.host.attention), (Some(Vec::new()), 0));
}

/// A return that takes longer is shown to operators as the agent reported it. It does not mark the host as needing a
/// person.
#[tokio::test(flavor = "multi_thread")]
async fn restore_test_results_reach_the_summary() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let last = json!({ "at": "2026-11-21T01:00:00Z", "taken_at": "2026-11-20T01:30:00Z", "verdict": "proved",
        "why": "stacks that are well by their own check: 2", "took": { "restore_s": 820, "up_s": 44 } });
    let guest = json!({ "name": "web-1", "status": "managed", "run": "running", "protection": {
        "posture": { "is": "protected", "why": ["a local backup of it was restored and checked"] },
        "tested": [{ "tier": "local", "last": last, "trend": { "is": "slower", "took_s": 864, "usual_s": 480 } }] } });
    let guests = Sections { guests: serde_json::from_value(json!([guest])).unwrap(), ..Sections::default() };
    host.check_in(&host.changed(2, 0, guests.clone()), "0s").await.data(StatusCode::OK);
    let detail: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!((detail.sections.guests, detail.host.attention), (guests.guests, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn hardware_is_kept_until_it_is_reported_anew() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let disk = json!({ "device": "/dev/sda", "reading": "read", "health": "failing", "faults": ["self_test_failed"] });
    let hardware = json!({ "read_at": "2026-11-21T01:00:00Z", "disks_read_at": "2026-11-21T00:40:00Z", "disks": [disk] });
    let reported = Sections { hardware: serde_json::from_value(hardware).unwrap(), ..Sections::default() };
    host.check_in(&host.changed(2, 0, reported.clone()), "0s").await.data(StatusCode::OK);
    host.check_in(&host.changed(3, 0, waiting("detach")), "0s").await.data(StatusCode::OK);
    let detail: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!(detail.sections.hardware, reported.hardware);
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_upgrades_are_kept_until_they_are_reported_anew() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let package = json!({ "name": "openssl", "installed": "3.0.19-1", "offered": "3.0.20-1", "origin": "debian", "kind": "security" });
    let pending =
        json!({ "debian": 1, "proxmox": 0, "other": 0, "security": 1, "removals": 0, "packages": [package] });
    let updates =
        json!({ "read_at": "2026-11-21T01:00:00Z", "pending": pending, "restart": ["newer_kernel"] });
    let reported = Sections { updates: serde_json::from_value(updates).unwrap(), ..Sections::default() };
    host.check_in(&host.changed(2, 0, reported.clone()), "0s").await.data(StatusCode::OK);
    host.check_in(&host.changed(3, 0, waiting("detach")), "0s").await.data(StatusCode::OK);
    let detail: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!(detail.sections.updates, reported.updates);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_check_in_is_answered_when_a_document_is_put() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let began = Instant::now();
    let request = host.changed(2, 0, Sections::default());
    let held = host.check_in(&request, "25s");
    let put = async {
        // The check-in is kept before it is held; then the document comes.
        crate::world::until("the check-in is kept", || async {
            world.view("box7").await.seen_at.is_some() && world.store.ready().await.is_ok()
        })
        .await;
        world
            .admin()
            .put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1))
            .await
            .data(StatusCode::OK)
    };
    let (answer, _) = tokio::join!(held, put);
    let answer = answer.data(StatusCode::OK);
    assert_eq!(answer.desired.as_deref(), Some(document(1).as_str()));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // A host with an older document is answered at once; a host with this document is held.
    let again = host.check_in(&host.changed(3, 0, Sections::default()), "25s").await.data(StatusCode::OK);
    assert_eq!(again.desired.as_deref(), Some(document(1).as_str()));
    let began = Instant::now();
    let nothing = host.check_in(&host.changed(4, 1, Sections::default()), "1s").await.data(StatusCode::OK);
    assert_eq!(nothing.desired, None);
    assert!(began.elapsed() >= Duration::from_millis(900));
    assert_eq!(world.view("box7").await.held, Generation::new(1));
}

/// A held check-in hears of it at once; one that knows it is held; one that says nothing new is told its end.
#[tokio::test(flavor = "multi_thread")]
async fn maintenance_is_passed_to_the_host_while_it_lasts() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let first = host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    assert_eq!(first.maintenance, None);
    let until = world.clock.now() + jiff::SignedDuration::from_hours(2);
    let began = Instant::now();
    let request = host.changed(2, 0, Sections::default());
    let held = host.check_in(&request, "25s");
    let announce = async {
        crate::world::until("the check-in is kept", || async {
            world.view("box7").await.seen_at.is_some() && world.store.ready().await.is_ok()
        })
        .await;
        let body = json!({ "until": until, "reason": "a new kernel" });
        let admin = world.admin();
        admin.send::<Value>(Method::POST, "/v1/hosts/box7/maintenance", &body).await.data(StatusCode::OK);
    };
    let (answer, ()) = tokio::join!(held, announce);
    assert_eq!(answer.data(StatusCode::OK).maintenance.unwrap().until, until);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // Also a check-in that says nothing new: a host in maintenance is never answered from memory.
    for sequence in [3, 4] {
        let began = Instant::now();
        let again = host.check_in(&host.changed(sequence, 0, Sections::default()), "1s").await;
        assert_eq!(again.data(StatusCode::OK).maintenance.unwrap().until, until);
        assert!(began.elapsed() >= Duration::from_millis(900), "it knows that already");
    }
    let admin = world.admin();
    admin
        .send::<Value>(Method::POST, "/v1/hosts/box7/maintenance/end", &json!({}))
        .await
        .data(StatusCode::OK);
    let ended = host.check_in(&host.changed(5, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    assert_eq!(ended.maintenance, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_document_does_not_make_hub_and_agent_spin() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    world
        .admin()
        .put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1))
        .await
        .data(StatusCode::OK);
    let mut request = host.full(1, 0);
    request.sections.desired = Some(DesiredSection {
        held: Generation::NONE,
        content: String::new(),
        refused: Some(RefusedDocument {
            generation: Some(Generation::new(1)),
            problem: ErrorBody::new(ErrorCode::GoldenUnapproved, "no"),
        }),
    });
    let began = Instant::now();
    let answer = host.check_in(&request, "1s").await.data(StatusCode::OK);
    assert!(began.elapsed() >= Duration::from_millis(900), "answered at once");
    assert_eq!(answer.desired.as_deref(), Some(document(1).as_str()));
    assert_eq!(world.view("box7").await.attention, 1);
    assert_eq!(world.event_kinds().await.iter().filter(|kind| *kind == "desired_refused").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_check_in_takes_the_place_of_the_first() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let (first, second) = (host.changed(2, 0, Sections::default()), host.changed(3, 0, Sections::default()));
    let began = Instant::now();
    let late = async {
        crate::world::until("the first is kept", || async { sequence(&world).await >= 2 }).await;
        host.check_in(&second, "0s").await
    };
    let (first, second) = tokio::join!(host.check_in(&first, "25s"), late);
    first.data(StatusCode::OK);
    second.data(StatusCode::OK);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// The newest stored report, read from the database without the hub.
async fn sequence(world: &World) -> i64 {
    let connection = rusqlite::Connection::open(world.folder.join("hub.db")).unwrap();
    connection.query_row("SELECT coalesce(sequence, 0) FROM hosts", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_ends_a_held_check_in() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let request = host.changed(2, 0, Sections::default());
    let revoke = async {
        crate::world::until("the check-in is kept", || async { sequence(&world).await >= 2 }).await;
        world.admin().send::<HostView>(Method::POST, "/v1/hosts/box7/revoke", &()).await
    };
    let (answer, _) = tokio::join!(host.check_in(&request, "25s"), revoke);
    assert_eq!(answer.code(), ErrorCode::Revoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_farewell_is_answered_at_once_and_recorded() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let mut farewell = host.changed(2, 0, Sections::default());
    farewell.coverage = Coverage::Farewell;
    let began = Instant::now();
    host.check_in(&farewell, "25s").await.data(StatusCode::OK);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(world.event_kinds().await.contains(&"agent_farewell".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_check_ins_each_have_their_code_and_change_nothing() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let good = serde_json::to_value(host.full(1, 0)).unwrap();
    let with = |key: &str, value: Value| {
        let mut bad = good.clone();
        bad[key] = value;
        serde_json::to_vec(&bad).unwrap()
    };
    let cases = [
        (b"{".to_vec(), ErrorCode::Syntax),
        (b"{}".to_vec(), ErrorCode::Missing),
        (with("host_id", json!("x")), ErrorCode::UnknownField),
        (with("schema", json!("holdfast.report/v2")), ErrorCode::Version),
        (with("sequence", json!(-1)), ErrorCode::Range),
        (with("sequence", json!(u64::MAX)), ErrorCode::Range),
        (with("held", json!(u64::MAX)), ErrorCode::Range),
        (with("sections", json!({ "guests": [{}] })), ErrorCode::Missing),
        (vec![b' '; 1024 * 1024 + 1], ErrorCode::Size),
    ];
    for (body, code) in cases {
        let answer = host.client.send_bytes::<Value>(Method::POST, "/v1/agent/checkin?wait=0s", body).await;
        assert_eq!(answer.code(), code);
    }
    for query in ["?wait=25", "?wait=56s", "?wait=-1s", "?wait=", "?weit=1s"] {
        let path = format!("/v1/agent/checkin{query}");
        let answer = host.client.send::<Value>(Method::POST, &path, &host.full(1, 0)).await;
        assert_eq!(answer.code(), ErrorCode::Range, "{query}");
    }
    assert_eq!(world.view("box7").await.state, HostState::New);
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_costs_its_own_host_alone() {
    let world = World::start().await;
    let (well, damaged) = (world.enrol("well").await, world.enrol("damaged").await);
    let connection = rusqlite::Connection::open(world.folder.join("hub.db")).unwrap();
    connection.execute("UPDATE hosts SET name = 'Not A Name' WHERE name = 'damaged'", []).unwrap();
    let mut tries = tokio::task::JoinSet::new();
    for sequence in 1..=40 {
        let host = if sequence % 2 == 0 { &well } else { &damaged };
        let (client, request) = (host.client.clone(), host.full(sequence, 0));
        tries.spawn(async move {
            client.send::<Value>(Method::POST, "/v1/agent/checkin?wait=0s", &request).await.status
        });
    }
    let statuses = tries.join_all().await;
    let of = |status| statuses.iter().filter(|given| **given == status).count();
    assert_eq!((of(StatusCode::OK), of(StatusCode::SERVICE_UNAVAILABLE)), (20, 20));
}
