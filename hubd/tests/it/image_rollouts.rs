//! Rollouts of golden images over the hub's API.

use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{RolloutHostState, RolloutState, RolloutView};
use holdfast_protocol::release::stored::{ImageOffer, OfferedImage, ReleaseOffer};
use holdfast_protocol::report::Sections;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::releases::{program, release};
use crate::world::{Answered, Client, Host, World, until};

const VERSION: VersionNumber = VersionNumber::new(2026, 11, 1);
const ARCHIVE: &str = "vzdump-lxc-900001-2026_11_01-00_00_00.tar.zst";
const MANIFEST: &str = "golden-2026.11.1.json";

async fn act(client: &Client, action: &str) -> Answered<RolloutView> {
    client.send(Method::POST, &format!("/v1/rollouts/1/{action}"), &json!({})).await
}

async fn look(client: &Client) -> RolloutView {
    client.get("/v1/rollouts/1").await.data(StatusCode::OK)
}

async fn offered(host: &Host) -> Option<OfferedImage> {
    let offer: ImageOffer = host.client.get("/v1/agent/image-offer").await.data(StatusCode::OK);
    offer.image
}

fn states(view: &RolloutView) -> Vec<RolloutHostState> {
    view.waves.iter().flat_map(|wave| &wave.hosts).map(|host| host.state).collect()
}

/// An image as a host reports it: its bytes, and what they were built of.
fn image(sha256: &str, inputs: &str) -> Value {
    json!({ "version": "2026.11.1", "sha256": sha256, "status": "waiting", "build": {
        "built_at": "2026-11-02T02:00:00Z", "inputs_sha256": inputs.repeat(32), "size_bytes": 1, "origin": "received" } })
}

fn calm() -> Value {
    json!({ "conditions": [] })
}

async fn reports(host: &Host, sequence: u64, images: Value, conditions: Value) {
    let section = json!({ "node": "pve", "proxmox_version": "9.2.11", "cpus": 16, "memory_bytes": 1,
        "memory_used_bytes": 1, "storages": [], "goldens": images });
    let full = host.full(sequence, 0);
    let sections = Sections {
        host: Some(serde_json::from_value(section).unwrap()),
        conditions: Some(serde_json::from_value(conditions).unwrap()),
        ..full.sections.clone()
    };
    host.check_in(&CheckinRequest { sections, ..full }, "0s").await.data(StatusCode::OK);
}

/// A hub with an image, and so many hosts.
async fn fleet(count: usize) -> (World, Vec<Host>, String) {
    let world = World::start().await;
    let (admin, archive, manifest) = (world.admin(), program(1_000), program(10));
    let plan = json!({ "version": VERSION, "subject": "golden", "waves": [wave(json!("rest"), 0)] });
    let mut hosts = Vec::new();
    for number in 1..=count {
        hosts.push(world.enrol(&format!("box{number:03}")).await);
    }
    // Without its manifest it is no image that a host could take.
    admin.put_release(1, &release(1, 1, &[(ARCHIVE, &archive)])).await.data(StatusCode::OK);
    admin.put_file(&archive, 0, archive.len()).await.data(StatusCode::OK);
    let no_manifest: Answered<RolloutView> = admin.send(Method::POST, "/v1/rollouts", &plan).await;
    assert_eq!(no_manifest.code(), ErrorCode::PreconditionFailed);
    let whole = release(1, 2, &[(ARCHIVE, &archive), (MANIFEST, &manifest)]);
    admin.put_release(1, &whole).await.data(StatusCode::OK);
    let no_bytes: Answered<RolloutView> = admin.send(Method::POST, "/v1/rollouts", &plan).await;
    assert_eq!(no_bytes.code(), ErrorCode::PreconditionFailed);
    admin.put_file(&manifest, 0, manifest.len()).await.data(StatusCode::OK);
    (world, hosts, Sha256Text::of(&archive).as_str().to_owned())
}

fn wave(hosts: Value, max_failures: u32) -> Value {
    json!({ "hosts": hosts, "max_failures": max_failures, "soak_s": 0, "timeout_s": 3_600 })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_goes_to_the_hosts_that_do_not_have_it_wave_by_wave() {
    let (world, hosts, sha256) = fleet(4).await;
    let admin = world.admin();
    let waves = json!([wave(json!({ "count": 2 }), 0), wave(json!("rest"), 0)]);
    let back = json!({ "version": VERSION, "subject": "golden", "waves": waves, "on_failure": { "roll_back": "2026.11.2" } });
    let refused: Answered<RolloutView> = admin.send(Method::POST, "/v1/rollouts", &back).await;
    assert_eq!(refused.code(), ErrorCode::PreconditionFailed);
    let plan = json!({ "version": VERSION, "subject": "golden", "waves": waves });
    admin.send::<RolloutView>(Method::POST, "/v1/rollouts", &plan).await.data(StatusCode::OK);
    assert_eq!(offered(&hosts[0]).await, None, "a plan offers nothing");

    // One has built it itself: it is done before it has its turn.
    reports(&hosts[1], 1, json!([image(&sha256, "0a")]), calm()).await;
    reports(&hosts[0], 1, json!([image(&"ee".repeat(32), "0b")]), calm()).await;
    let started = act(&admin, "start").await.data(StatusCode::OK);
    assert_eq!(states(&started)[..2], [RolloutHostState::Waiting, RolloutHostState::Done]);
    assert_eq!(started.waves[0].hosts[1].offered_at, None);
    let offer = offered(&hosts[0]).await.unwrap();
    assert_eq!((offer.release, offer.sha256.as_str()), (VERSION, sha256.as_str()));
    assert_eq!(offered(&hosts[1]).await, None, "it has it");
    assert_eq!(offered(&hosts[2]).await, None, "its wave waits");
    let agents: ReleaseOffer = hosts[0].client.get("/v1/agent/release-offer").await.data(StatusCode::OK);
    assert_eq!(agents.release, None, "it is no agent");

    act(&admin, "pause").await.data(StatusCode::OK);
    assert_eq!(offered(&hosts[0]).await, None, "it is withdrawn");
    act(&admin, "resume").await.data(StatusCode::OK);
    assert!(offered(&hosts[0]).await.is_some());
    reports(&hosts[0], 2, json!([image(&sha256, "0a")]), calm()).await;
    until("the second wave opened", async || look(&admin).await.open.unwrap().number == 2).await;
    assert_eq!(offered(&hosts[0]).await, None);
    // A person removes it from a host: it is not brought there again.
    reports(&hosts[0], 3, json!([]), calm()).await;
    assert_eq!(offered(&hosts[0]).await, None);
    assert!(offered(&hosts[2]).await.is_some() && offered(&hosts[3]).await.is_some());
    for host in &hosts[2..] {
        reports(host, 1, json!([image(&sha256, "0a")]), calm()).await;
    }
    until("it is finished", async || look(&admin).await.state == RolloutState::Finished).await;
    assert_eq!(states(&look(&admin).await), [RolloutHostState::Done; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn builders_that_differ_and_full_disks_hold_it() {
    let (world, hosts, sha256) = fleet(3).await;
    let admin = world.admin();
    let plan = json!({ "version": VERSION, "subject": "golden", "waves": [wave(json!({ "count": 2 }), 0), wave(json!("rest"), 0)] });
    admin.send::<RolloutView>(Method::POST, "/v1/rollouts", &plan).await.data(StatusCode::OK);
    act(&admin, "start").await.data(StatusCode::OK);
    assert!(offered(&hosts[0]).await.is_some());

    // A host that is in no open wave has other bytes of the same inputs than one that took it.
    reports(&hosts[0], 1, json!([image(&sha256, "0a")]), calm()).await;
    reports(&hosts[2], 1, json!([image(&"ee".repeat(32), "0a")]), calm()).await;
    until("it is held", async || look(&admin).await.state == RolloutState::Held).await;
    let reason = look(&admin).await.reason.unwrap();
    assert!(reason.contains("GOLDEN_DIFFERS") && reason.contains("box003"), "{reason}");
    assert_eq!(offered(&hosts[1]).await, None, "nothing is offered any more");
    // While they differ it cannot go on.
    act(&admin, "resume").await.data(StatusCode::OK);
    until("it is held again", async || look(&admin).await.state == RolloutState::Held).await;
    reports(&hosts[2], 2, json!([]), calm()).await;
    act(&admin, "resume").await.data(StatusCode::OK);
    assert!(offered(&hosts[1]).await.is_some());

    let now = hubd::clock::Clock::now(world.clock.as_ref());
    let full = json!({ "conditions": [{ "code": "ROOT_DISK_FULL", "subject": { "kind": "host" }, "since": now,
        "severity": "warning", "message": "97 % of / are used", "remedy": "Free room." }] });
    reports(&hosts[1], 1, json!([]), full).await;
    until("it is held by the disk", async || look(&admin).await.state == RolloutState::Held).await;
    let held = look(&admin).await;
    let reason = held.reason.clone().unwrap();
    assert!(reason.contains("box002") && reason.contains("ROOT_DISK_FULL"), "{reason}");
    assert_eq!(states(&held)[..2], [RolloutHostState::Done, RolloutHostState::Failed]);
    assert_eq!(act(&admin, "abort").await.data(StatusCode::OK).state, RolloutState::Aborted);
    assert_eq!(offered(&hosts[1]).await, None);
}
