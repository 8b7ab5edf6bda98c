//! Rollouts of golden images.

use holdfast_protocol::id::HostId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{
    OnFailure, RolloutHostState, RolloutRequest, RolloutState, RolloutSubject, RolloutTimes, RolloutView,
    WaveHosts, WaveRequest,
};
use holdfast_protocol::release::stored::OfferedImage;
use hubd::domain::identity::Presented;
use hubd::domain::rollout::action::Action;
use hubd::store::{AskingHost, Checkin, PlanRolloutError, SectionTexts, WriteError};
use serde_json::{Value, json};

use super::fixture::{CORRELATION, Fixture, at, by, checkin, fresh_key, host_id};
use super::releases::new;
use crate::releases::program;

const VERSION: VersionNumber = VersionNumber::new(2026, 11, 1);
const ARCHIVE: &str = "vzdump-lxc-900001-2026_11_01-00_00_00.tar.zst";

fn request(on_failure: OnFailure) -> RolloutRequest {
    let wave = |hosts| WaveRequest { hosts, max_failures: 0, soak_s: 600, timeout_s: 3_600 };
    RolloutRequest {
        version: VERSION,
        subject: RolloutSubject::Golden,
        waves: vec![wave(WaveHosts::Count(2)), wave(WaveHosts::Rest)],
        times: RolloutTimes::default(),
        on_failure,
    }
}

/// An image as a host reports it.
fn image(sha256: &str) -> Value {
    json!({ "version": "2026.11.1", "sha256": sha256, "status": "waiting", "build": {
        "built_at": "2026-11-02T02:00:00Z", "inputs_sha256": "0a".repeat(32), "size_bytes": 1, "origin": "built" } })
}

async fn reports(fixture: &Fixture, host: HostId, sequence: u64, images: Value) {
    let text = json!({ "goldens": images }).to_string();
    let sections = SectionTexts { host: Some(text), ..SectionTexts::default() };
    let checkin = Checkin { sections, ..checkin(host, 1, sequence) };
    fixture.store.check_in(checkin).await.unwrap().unwrap();
}

fn asking(host: HostId, second: i64) -> AskingHost {
    AskingHost { presented: Presented { host, generation: 1 }, at: at(second), correlation: CORRELATION }
}

async fn offered(fixture: &Fixture, host: HostId, second: i64) -> Option<OfferedImage> {
    fixture.store.image_offered_to(asking(host, second)).await.ok().unwrap()
}

async fn look(fixture: &Fixture, second: i64) -> RolloutView {
    fixture.store.evaluate_rollouts(&fixture.term().await, at(second), CORRELATION).await.unwrap();
    fixture.store.rollout(1, at(second)).await.unwrap().unwrap()
}

pub async fn an_image_is_offered_to_hosts_without_it_and_builders_that_differ_hold_it(fixture: Fixture) {
    let (store, archive) = (&fixture.store, program(10));
    let sha256 = Sha256Text::of(&archive);
    let its = sha256.as_str();
    store.put_release(by(1), new(1, 1, &[(ARCHIVE, &archive)]), u64::MAX).await.ok().unwrap();
    let mut hosts = Vec::new();
    for number in 1..=3 {
        hosts.push(fixture.enrol(&format!("box{number}"), host_id(number), &fresh_key()).await.host);
        reports(&fixture, hosts[hosts.len() - 1], 1, json!([])).await;
    }
    let back = store.plan_rollout(by(2), request(OnFailure::RollBack(VersionNumber::new(2026, 11, 2)))).await;
    assert!(matches!(back, Err(WriteError::Refused(PlanRolloutError::ImagesGoBack))));
    let planned = store.plan_rollout(by(2), request(OnFailure::Hold)).await.ok().unwrap();
    assert_eq!((planned.number, planned.subject), (1, RolloutSubject::Golden));
    store.act_on_rollout(by(100), 1, Action::Start).await.ok().unwrap().unwrap();

    let offer = OfferedImage { release: VERSION, sha256: sha256.clone() };
    assert_eq!(offered(&fixture, hosts[0], 110).await, Some(offer));
    assert_eq!(offered(&fixture, hosts[2], 110).await, None, "its wave waits");
    let agent = store.release_offered_to(asking(hosts[0], 110)).await.ok().unwrap();
    assert_eq!((agent.release, agent.withdrawn), (None, None), "it is no agent");
    for host in &hosts[..2] {
        reports(&fixture, *host, 2, json!([image(its)])).await;
        assert_eq!(offered(&fixture, *host, 120).await, None, "it has it");
    }
    let view = look(&fixture, 200).await;
    assert_eq!(view.open.unwrap().settled_at, Some(at(200)));
    assert_eq!(look(&fixture, 900).await.open.unwrap().number, 2);
    // A person removes it from a host: it is not brought there again.
    reports(&fixture, hosts[0], 3, json!([])).await;
    assert_eq!(offered(&fixture, hosts[0], 910).await, None);
    assert!(offered(&fixture, hosts[2], 910).await.is_some());

    // The last host has other bytes of the same inputs.
    reports(&fixture, hosts[2], 2, json!([image(&"ee".repeat(32))])).await;
    let held = look(&fixture, 920).await;
    assert_eq!(held.state, RolloutState::Held);
    let reason = held.reason.unwrap();
    assert!(reason.contains("GOLDEN_DIFFERS") && reason.contains("box3"), "{reason}");
    let states: Vec<_> = held.waves.iter().flat_map(|wave| &wave.hosts).map(|host| host.state).collect();
    assert_eq!(states[..2], [RolloutHostState::Done; 2]);
    assert_eq!(offered(&fixture, hosts[2], 930).await, None, "nothing is offered any more");
}
