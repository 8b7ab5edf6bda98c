//! Desired documents: compare-and-set, generations, history.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::{DesiredVersion, Page};
use holdfast_protocol::report::Sections;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{World, document};

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_put_over_the_one_that_was_seen() {
    let world = World::start().await;
    world.enrol("box7").await;
    let admin = world.admin();
    assert_eq!(admin.get::<Value>("/v1/hosts/box7/desired").await.code(), ErrorCode::NotFound);
    let bare = admin.put_desired::<Value>("box7", None, document(1)).await;
    assert_eq!(bare.code(), ErrorCode::PreconditionRequired);
    let first = admin.put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1)).await;
    assert_eq!(first.headers["etag"], "\"1\"");
    let first = first.data(StatusCode::OK);
    assert_eq!((first.author.as_str(), first.document), ("admin", document(1)));
    let stale = admin.put_desired::<Value>("box7", Some("\"0\""), document(2)).await;
    assert_eq!(stale.code(), ErrorCode::PreconditionFailed);
    assert_eq!(stale.envelope.error.unwrap().details["current"], "1");
    let read = admin.get::<DesiredVersion>("/v1/hosts/box7/desired").await;
    assert_eq!(read.headers["etag"], "\"1\"");
    assert_eq!(read.data(StatusCode::OK).generation.number(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_only_grow_and_a_refusal_changes_nothing() {
    let world = World::start().await;
    world.enrol("box7").await;
    let admin = world.admin();
    admin.put_desired::<DesiredVersion>("box7", Some("\"0\""), document(5)).await.data(StatusCode::OK);
    let other = document(5).replace("30", "31");
    let cases = [
        (document(4), ErrorCode::StaleGeneration),
        (other, ErrorCode::GenerationConflict),
        (document(5000), ErrorCode::GenerationJump),
        (document(6).replace("guests", "gests"), ErrorCode::UnknownField),
        (document(6).replace("30", "0"), ErrorCode::Range),
        (document(6).replace("/v1", "/v9"), ErrorCode::Version),
        ("{".to_owned(), ErrorCode::Syntax),
    ];
    for (text, code) in cases {
        let refused = admin.put_desired::<Value>("box7", Some("\"5\""), text.clone()).await;
        assert_eq!(refused.code(), code, "{text}");
    }
    // The same document again is no change, however it is spaced.
    let same = admin.put_desired::<DesiredVersion>("box7", Some("\"5\""), document(5).replace(':', ": "));
    assert_eq!(same.await.data(StatusCode::OK).document, document(5));
    let page: Page<DesiredVersion> = admin.get("/v1/hosts/box7/desired/history").await.data(StatusCode::OK);
    assert_eq!(page.items.len(), 1);
}

/// What its host last said of a guest decides whether it was made, and what its image takes.
#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_carries_out_is_refused_with_its_path() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let admin = world.admin();
    let text = |generation: u64, golden: &str, customer: &str, n: u32| {
        let guest = json!({
            "uid": format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}"), "name": format!("web-{n}"), "customer": customer, "run": "running",
            "golden": golden, "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 2 },
            "network": { "bridge": "vmbr0", "address": "10.66.0.1/24" }
        });
        json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30, "guests": [guest] }).to_string()
    };
    let first = text(1, "2026.11.1", "acme", 1);
    admin.put_desired::<DesiredVersion>("box7", Some("\"0\""), first).await.data(StatusCode::OK);
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let guests = json!([{ "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "web-1", "vmid": 300, "status": "managed",
        "run": "running", "golden": "2026.11.1" }]);
    let about = json!({ "node": "pve1", "proxmox_version": "9", "cpus": 1, "memory_bytes": 1, "memory_used_bytes": 1,
        "storages": [], "goldens": [{ "version": "2026.11.1", "status": "approved", "rootfs_bytes": 3_u64 << 30 }] });
    let sections = Sections {
        guests: serde_json::from_value(guests).unwrap(),
        host: serde_json::from_value(about).unwrap(),
        ..Sections::default()
    };
    host.check_in(&host.changed(2, 0, sections), "0s").await.data(StatusCode::OK);
    let cases = [
        (text(2, "2026.11.1", "umbrella", 1), ErrorCode::Unsupported, "guests[0].customer"),
        (text(2, "2026.12.1", "acme", 1), ErrorCode::Unsupported, "guests[0].golden"),
        (text(2, "2026.11.1", "acme", 2), ErrorCode::Range, "guests[0].size.rootfs_gib"),
    ];
    for (offered, code, path) in cases {
        let refused = admin.put_desired::<Value>("box7", Some("\"1\""), offered).await;
        assert_eq!(
            (refused.code(), refused.envelope.error.unwrap().details["path"].clone()),
            (code, path.into())
        );
    }
    // The guest that is there needs no room for its image any more.
    let same = text(2, "2026.11.1", "acme", 1);
    admin.put_desired::<DesiredVersion>("box7", Some("\"1\""), same).await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_saw_the_same_one_writes() {
    let world = World::start().await;
    world.enrol("box7").await;
    let mut writers = tokio::task::JoinSet::new();
    for poll in 10..30 {
        let (admin, text) = (world.admin(), document(1).replace("30", &poll.to_string()));
        writers.spawn(async move { admin.put_desired::<Value>("box7", Some("\"0\""), text).await.status });
    }
    let mut statuses = writers.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], StatusCode::OK);
    assert!(statuses[1..].iter().all(|status| *status == StatusCode::PRECONDITION_FAILED), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_pages_backwards_with_who_and_why() {
    let world = World::start().await;
    world.enrol("box7").await;
    let admin = world.admin();
    for generation in 1..=5_u64 {
        let seen = format!("\"{}\"", generation - 1);
        admin
            .put_desired::<DesiredVersion>("box7", Some(&seen), document(generation))
            .await
            .data(StatusCode::OK);
    }
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let cursor_part = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let path = format!("/v1/hosts/box7/desired/history?limit=2{cursor_part}");
        let page: Page<DesiredVersion> = admin.get(&path).await.data(StatusCode::OK);
        assert!(page.items.iter().all(|version| version.reason.as_str().starts_with("because")));
        seen.extend(page.items.iter().map(|version| version.generation.number()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
    for bad in ["limit=0", "limit=9999", "cursor=!!", "cursor=YWJj", "what=1"] {
        let answer = admin.get::<Value>(&format!("/v1/hosts/box7/desired/history?{bad}")).await;
        assert_eq!(answer.code(), ErrorCode::Range, "{bad}");
    }
}
