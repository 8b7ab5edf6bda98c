//! Rollouts over the hub's API, with hosts that report over theirs.

use alerts::incident::Scope;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::operator::{HostView, Page, Role};
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{RolloutHostState, RolloutState, RolloutView};
use holdfast_protocol::release::stored::{ReleaseOffer, WithdrawalReason, WithdrawnRelease};
use holdfast_protocol::report::{AgentBuilds, AgentSection, FailedRelease};
use hubd::store::IncidentFilter;
use hubd::task::alerts::AlertTimer;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::operators::operator;
use crate::releases::{program, release};
use crate::world::{Answered, Client, Host, World, until};

const VERSION: VersionNumber = VersionNumber::new(2026, 11, 1);

async fn act(client: &Client, action: &str) -> Answered<RolloutView> {
    client.send(Method::POST, &format!("/v1/rollouts/1/{action}"), &json!({})).await
}

async fn look(client: &Client) -> RolloutView {
    client.get("/v1/rollouts/1").await.data(StatusCode::OK)
}

async fn is_offered(host: &Host) -> bool {
    let offer: ReleaseOffer = host.client.get("/v1/agent/release-offer").await.data(StatusCode::OK);
    offer.release.is_some_and(|release| release.version == VERSION)
}

async fn report(host: &Host, sequence: u64, builds: AgentBuilds) {
    let full = host.full(sequence, 0);
    let agent = full.sections.agent.clone().map(|agent| AgentSection { builds: Some(builds), ..agent });
    let request = holdfast_protocol::checkin::CheckinRequest {
        sections: holdfast_protocol::report::Sections { agent, ..full.sections.clone() },
        ..full
    };
    host.check_in(&request, "0s").await.data(StatusCode::OK);
}

fn took() -> AgentBuilds {
    AgentBuilds { confirmed: Some(VERSION), ..AgentBuilds::default() }
}

fn fell_back(manifest: &Sha256Text) -> AgentBuilds {
    let (manifest_sha256, why) = (manifest.clone(), "the process ended three times".to_owned());
    let failed = FailedRelease { version: VERSION, manifest_sha256, why, way_back: None, at: None };
    AgentBuilds { failed: Some(failed), ..AgentBuilds::default() }
}

fn tries() -> AgentBuilds {
    AgentBuilds { trial: Some(VERSION), ..AgentBuilds::default() }
}

fn withdrew(manifest: &Sha256Text) -> AgentBuilds {
    let (manifest_sha256, why) = (manifest.clone(), "its offer was withdrawn".to_owned());
    let withdrawn = FailedRelease { version: VERSION, manifest_sha256, why, way_back: None, at: None };
    AgentBuilds { withdrawn: Some(withdrawn), ..AgentBuilds::default() }
}

/// What the hub says of the release that the host has on trial.
async fn stopped(host: &Host) -> Option<WithdrawnRelease> {
    let offer: ReleaseOffer = host.client.get("/v1/agent/release-offer").await.data(StatusCode::OK);
    offer.withdrawn
}

/// A hub with a release, and so many hosts.
async fn fleet(count: usize) -> (World, Vec<Host>, Sha256Text) {
    let world = World::start().await;
    let (admin, agentd) = (world.admin(), program(1_000));
    let signed = release(1, 1, &[("agentd", &agentd)]);
    admin.put_release(1, &signed).await.data(StatusCode::OK);
    admin.put_file(&agentd, 0, agentd.len()).await.data(StatusCode::OK);
    let mut hosts = Vec::new();
    for number in 1..=count {
        hosts.push(world.enrol(&format!("box{number:03}")).await);
    }
    (world, hosts, Sha256Text::of(&signed.manifest))
}

fn wave(hosts: Value, max_failures: u32) -> Value {
    json!({ "hosts": hosts, "max_failures": max_failures, "soak_s": 0, "timeout_s": 3_600 })
}

async fn is_firing(world: &World) -> bool {
    let all = world.store.incidents(IncidentFilter::Firing.into(), None, 500).await.unwrap();
    let held = |code, scope| code == ConditionCode::RolloutHeld && scope == Scope::Hub;
    all.iter().any(|one| held(one.incident.code, one.incident.id.scope))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_hosts_a_defect_in_the_second_wave_and_a_restart_in_its_middle() {
    let (world, mut hosts, manifest) = fleet(200).await;
    let admin = world.admin();
    let waves = [wave(json!({ "count": 5 }), 0), wave(json!({ "count": 45 }), 2), wave(json!("rest"), 10)];
    let plan = json!({ "version": VERSION, "waves": waves });
    let planned: RolloutView = admin.send(Method::POST, "/v1/rollouts", &plan).await.data(StatusCode::OK);
    let sizes: Vec<usize> = planned.waves.iter().map(|wave| wave.hosts.len()).collect();
    assert_eq!((planned.number, planned.state, sizes), (1, RolloutState::Planned, vec![5, 45, 150]));
    let second: Answered<RolloutView> = admin.send(Method::POST, "/v1/rollouts", &plan).await;
    assert_eq!(second.code(), ErrorCode::PreconditionFailed, "one is not over");
    assert!(!is_offered(&hosts[0]).await, "a plan offers nothing");
    let viewer = world.with_token(&operator(&world, "vera", Role::Viewer).await);
    assert_eq!(act(&viewer, "start").await.code(), ErrorCode::Forbidden);

    assert_eq!(act(&admin, "start").await.data(StatusCode::OK).state, RolloutState::Running);
    assert!(is_offered(&hosts[4]).await);
    assert!(!is_offered(&hosts[5]).await, "the second wave waits");
    for host in &hosts[..5] {
        report(host, 1, took()).await;
    }
    until("the second wave opened", async || look(&admin).await.open.unwrap().number == 2).await;
    assert!(is_offered(&hosts[49]).await && !is_offered(&hosts[50]).await);
    for host in &hosts[5..25] {
        report(host, 1, took()).await;
    }

    // The hub ends in the middle of the wave, and another process opens its folder.
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    let admin = world.admin();
    for host in &mut hosts {
        host.client.url.clone_from(&world.url);
    }
    let kept = look(&admin).await;
    assert_eq!((kept.state, kept.open.unwrap().number), (RolloutState::Running, 2));
    assert!(is_offered(&hosts[30]).await && !is_offered(&hosts[60]).await);
    for host in &hosts[25..45] {
        report(host, 1, took()).await;
    }
    for host in &hosts[45..47] {
        report(host, 1, tries()).await;
        assert_eq!(stopped(host).await, None, "it is offered, so its trial goes on");
    }
    assert!(!is_firing(&world).await);
    for host in &hosts[47..50] {
        report(host, 1, fell_back(&manifest)).await;
    }
    until("it is held", async || look(&admin).await.state == RolloutState::Held).await;

    let held = look(&admin).await;
    let reason = held.reason.clone().unwrap();
    for part in ["wave 2", "3 failed", "2 may", "box048", "box050", "the process ended three times"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let count = |wave: usize, state| held.waves[wave].hosts.iter().filter(|host| host.state == state).count();
    assert_eq!((count(1, RolloutHostState::Failed), count(1, RolloutHostState::Done)), (3, 40));
    assert_eq!(count(2, RolloutHostState::Waiting), 150);
    for place in [0, 30, 48, 60, 199] {
        assert!(!is_offered(&hosts[place]).await, "nothing is offered any more: {place}");
    }
    // Who has it on trial is told that it was stopped; who confirmed it, failed or never had it is not.
    let stop =
        |reason| Some(WithdrawnRelease { version: VERSION, manifest_sha256: manifest.clone(), reason });
    for place in [45, 46] {
        assert_eq!(stopped(&hosts[place]).await, stop(WithdrawalReason::Held), "{place}");
    }
    report(&hosts[60], 1, tries()).await;
    for place in [0, 30, 48, 60, 199] {
        assert_eq!(stopped(&hosts[place]).await, None, "{place}");
    }
    // It went back, says so, and counts neither as failed nor as done.
    report(&hosts[45], 2, withdrew(&manifest)).await;
    assert_eq!(stopped(&hosts[45]).await, None);
    let states = look(&admin).await.waves[1].hosts.clone();
    let of = |name: &str| states.iter().find(|host| host.host.as_str() == name).unwrap().state;
    assert_eq!((of("box046"), of("box048")), (RolloutHostState::Withdrawn, RolloutHostState::Failed));
    // The event at once, the alert with the next look of the hub at itself.
    assert!(world.event_kinds().await.contains(&"rollout_held".to_owned()));
    world.clock.advance(61);
    until("the alert fires", async || is_firing(&world).await).await;

    assert_eq!(act(&admin, "abort").await.data(StatusCode::OK).state, RolloutState::Aborted);
    assert_eq!(act(&admin, "resume").await.code(), ErrorCode::PreconditionFailed);
    assert_eq!(stopped(&hosts[46]).await, stop(WithdrawalReason::Aborted));
    // What ended is over once it stayed so for a while.
    let mut timer =
        AlertTimer::new(world.store.clone(), world.leases.lease(), world.clock.clone(), world.folder.clone());
    for seconds in [61, 4_000] {
        world.clock.advance(seconds);
        timer.tick().await.unwrap();
    }
    assert!(!is_firing(&world).await);
    assert!(!is_offered(&hosts[60]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_labelled_selected_and_updated_in_their_windows() {
    let (world, hosts, _) = fleet(3).await;
    let admin = world.admin();
    let labels = async |host: &str, change: Value| -> Answered<HostView> {
        admin.send(Method::POST, &format!("/v1/hosts/{host}/labels"), &change).await
    };
    let windows = async |host: &str, windows: Value| -> Answered<HostView> {
        let path = format!("/v1/hosts/{host}/update-windows");
        admin.send(Method::PUT, &path, &json!({ "windows": windows })).await
    };
    let set = json!({ "set": { "tier": "canary", "site": "vienna" } });
    let labelled = labels("box002", set).await.data(StatusCode::OK);
    assert_eq!(labelled.labels.to_string(), "site=vienna, tier=canary");
    let changed = labels("box002", json!({ "remove": ["site"] })).await.data(StatusCode::OK);
    assert_eq!(changed.labels.to_string(), "tier=canary");
    let listed: Page<HostView> = admin.get("/v1/hosts").await.data(StatusCode::OK);
    assert_eq!(listed.items[1].labels, changed.labels);
    for (change, code) in [
        (json!({}), ErrorCode::Range),
        (json!({ "set": { "tier": "a" }, "remove": ["tier"] }), ErrorCode::Range),
        (json!({ "set": { "Tier": "a" } }), ErrorCode::Range),
        (json!({ "add": {} }), ErrorCode::UnknownField),
    ] {
        assert_eq!(labels("box002", change.clone()).await.code(), code, "{change}");
    }
    assert_eq!(labels("box009", json!({ "remove": ["a"] })).await.code(), ErrorCode::NotFound);
    let many: serde_json::Map<_, _> = (0..17).map(|number| (format!("k{number}"), json!("v"))).collect();
    assert_eq!(labels("box001", json!({ "set": many })).await.code(), ErrorCode::Range);

    assert_eq!(windows("box002", json!(["mon 20:00-20:30 UTC"])).await.code(), ErrorCode::Range);
    // Open on the day before yesterday alone, by the clock of the test.
    let now = hubd::clock::Clock::now(world.clock.as_ref()).to_zoned(jiff::tz::TimeZone::UTC);
    let day = now.date().checked_sub(jiff::ToSpan::days(2)).unwrap().strftime("%a").to_string();
    let closed = windows("box002", json!([format!("{day} 00:00-12:00 UTC")])).await.data(StatusCode::OK);
    assert!(!closed.update_windows.is_empty());

    let plan = json!({ "version": VERSION,
        "waves": [wave(json!({ "labelled": { "tier": "canary" } }), 0), wave(json!("rest"), 0)] });
    let planned: RolloutView = admin.send(Method::POST, "/v1/rollouts", &plan).await.data(StatusCode::OK);
    assert_eq!(planned.waves[0].hosts[0].host.as_str(), "box002");
    let started = act(&admin, "start").await.data(StatusCode::OK);
    let wait = serde_json::to_value(started.waves[0].hosts[0].wait).unwrap();
    assert_eq!(wait["why"], "host_window", "{wait}");
    assert!(!is_offered(&hosts[1]).await);
    windows("box002", json!([])).await.data(StatusCode::OK);
    let offered = async || look(&admin).await.waves[0].hosts[0].offered_at.is_some();
    until("it is offered the release", offered).await;
    assert!(is_offered(&hosts[1]).await);
    assert!(!is_offered(&hosts[0]).await, "the other wave waits");
    let kinds = world.event_kinds().await;
    for kind in ["host_labels_changed", "host_windows_changed"] {
        assert_eq!(kinds.iter().filter(|one| *one == kind).count(), 2, "{kind}");
    }
}

/// A pause alone ends no trial, and neither does a window that closes: somebody has to say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_trial_ends_where_a_person_stopped_the_release_and_not_where_its_window_closed() {
    let (world, hosts, manifest) = fleet(2).await;
    let admin = world.admin();
    let host = &hosts[0];
    let reason = async || stopped(host).await.map(|stop| (stop.manifest_sha256, stop.reason));
    let named = |reason| Some((manifest.clone(), reason));
    let plan = json!({ "version": VERSION, "waves": [wave(json!("rest"), 0)] });
    admin.send::<RolloutView>(Method::POST, "/v1/rollouts", &plan).await.data(StatusCode::OK);
    assert_eq!(act(&admin, "take-back").await.code(), ErrorCode::PreconditionFailed, "it was not started");
    act(&admin, "start").await.data(StatusCode::OK);
    report(host, 1, tries()).await;
    // Its window is another day's.
    let now = hubd::clock::Clock::now(world.clock.as_ref()).to_zoned(jiff::tz::TimeZone::UTC);
    let day = now.date().checked_sub(jiff::ToSpan::days(2)).unwrap().strftime("%a").to_string();
    let window = async |windows: Value| {
        let answer: Answered<HostView> =
            admin.send(Method::PUT, "/v1/hosts/box001/update-windows", &json!({ "windows": windows })).await;
        answer.data(StatusCode::OK)
    };
    window(json!([format!("{day} 00:00-12:00 UTC")])).await;
    assert!(!is_offered(host).await);
    assert_eq!(reason().await, None, "a window that closes stops nothing");
    window(json!([])).await;

    act(&admin, "pause").await.data(StatusCode::OK);
    assert!(!is_offered(host).await);
    assert_eq!(reason().await, None);
    for _ in 0..2 {
        assert_eq!(act(&admin, "take-back").await.data(StatusCode::OK).state, RolloutState::Paused);
        assert_eq!(reason().await, named(WithdrawalReason::Paused));
    }
    act(&admin, "resume").await.data(StatusCode::OK);
    assert_eq!(reason().await, None);
    act(&admin, "pause").await.data(StatusCode::OK);
    assert_eq!(reason().await, None, "what was said of the pause before is over");
    act(&admin, "take-back").await.data(StatusCode::OK);
    // Another offer of the same release is worth more than the end of this one.
    let offer = "/v1/hosts/box001/release-offer";
    admin.send::<Value>(Method::PUT, offer, &json!({ "version": VERSION })).await.data(StatusCode::OK);
    assert_eq!(reason().await, None);
    act(&admin, "abort").await.data(StatusCode::OK);
    assert_eq!(reason().await, None);
    admin.send::<Value>(Method::DELETE, offer, &json!({})).await.data(StatusCode::OK);
    assert_eq!(reason().await, named(WithdrawalReason::Aborted));

    // A host that no rollout offered it, and an operator did.
    let (world, hosts, manifest) = fleet(1).await;
    let (admin, host) = (world.admin(), &hosts[0]);
    admin.send::<Value>(Method::PUT, offer, &json!({ "version": VERSION })).await.data(StatusCode::OK);
    report(host, 1, tries()).await;
    assert_eq!(stopped(host).await, None);
    admin.send::<Value>(Method::DELETE, offer, &json!({})).await.data(StatusCode::OK);
    let stop = stopped(host).await.unwrap();
    assert_eq!((stop.manifest_sha256, stop.reason), (manifest, WithdrawalReason::Operator));
    admin.send::<Value>(Method::PUT, offer, &json!({ "version": VERSION })).await.data(StatusCode::OK);
    assert_eq!(stopped(host).await, None, "offered again");
}
