//! Stories of the state of hosts, and of kept snapshots of it.

use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::state::{StateScope, StateTail};
use hubd::domain::desired::IfMatch;
use hubd::domain::host::HostRef;
use hubd::snapshots::{KeptState, LiveState};
use hubd::store::{Checkin, KeepOutcome, NewStateSnapshot, Put, SectionTexts};
use hubd::task::state_snapshots::keep;
use jiff::civil::Date;
use serde_json::json;

use super::fixture::{Fixture, at, by, checkin, fresh_key, host_id, named};

const UID: &str = "018f3c1e-6b1f-7c1d-9d0b-000000000001";

fn put(host: HostRef) -> Put {
    let guest = json!({ "uid": UID, "name": "web-1", "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": "10.0.0.5/24", "gateway": "10.0.0.1" } });
    let text =
        json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "guests": [guest] });
    let text = text.to_string();
    let desired = Desired::parse(text.as_bytes()).unwrap();
    let reason = "because".to_owned().try_into().unwrap();
    Put { host, seen: IfMatch(Generation::NONE), reason, desired, text }
}

async fn reports(fixture: &Fixture, (number, sequence): (u128, u64), guests: serde_json::Value) {
    let sections = SectionTexts { guests: Some(guests.to_string()), ..SectionTexts::default() };
    let said = Checkin { sections, ..checkin(host_id(number), 1, sequence) };
    fixture.store.check_in(said).await.unwrap().unwrap();
}

/// Two hosts with a guest each, and one that was let go.
async fn fleet(fixture: &Fixture) {
    for (number, name) in [(1, "box1"), (2, "box2"), (3, "box3")] {
        fixture.enrol(name, host_id(number), &fresh_key()).await;
    }
    fixture.store.put_desired(by(2), put(named("box1"))).await.ok().unwrap().unwrap();
    let guest = |uid: &str, customer: &str| {
        json!([{ "uid": uid, "name": format!("of-{customer}"), "customer": customer,
        "vmid": 5001, "status": "managed", "run": "running" }])
    };
    reports(fixture, (1, 1), guest(UID, "acme")).await;
    reports(fixture, (2, 1), guest("018f3c1e-6b1f-7c1d-9d0b-000000000002", "beta")).await;
    fixture.store.revoke_host(by(6), named("box3")).await.unwrap();
}

async fn live(fixture: &Fixture, second: i64) -> (String, StateTail) {
    let mut live = LiveState::new(fixture.store.clone(), StateScope::default(), at(second));
    let mut text = String::new();
    while let Some(lines) = live.next_lines().await.unwrap() {
        text.push_str(&lines);
    }
    (text, live.tail().unwrap().clone())
}

pub async fn the_state_of_all_hosts_is_one_document(fixture: Fixture) {
    fleet(&fixture).await;
    let sources = fixture.store.state_sources(None, 10, at(9)).await.unwrap();
    let names: Vec<&str> = sources.iter().map(|source| source.view.name.as_str()).collect();
    assert_eq!(names, ["box1", "box2"]);
    assert!(sources[0].desired.is_some() && sources[1].desired.is_none());
    let after = Some((sources[0].view.name.clone(), sources[0].number));
    assert_eq!(fixture.store.state_sources(after, 10, at(9)).await.unwrap().len(), 1);
    let (text, tail) = live(&fixture, 9).await;
    assert_eq!((tail.hosts, tail.guests, text.lines().count()), (2, 2, 4));
    let (later, tail_later) = live(&fixture, 10).await;
    assert_ne!(text, later);
    assert_eq!(tail.content, tail_later.content, "nothing changed but the time");
    reports(&fixture, (2, 2), json!([])).await;
    assert_ne!(live(&fixture, 11).await.1.content, tail.content);
}

pub async fn a_snapshot_is_kept_once_for_each_day(fixture: Fixture) {
    fleet(&fixture).await;
    let store = &fixture.store;
    let day: Date = "2026-11-27".parse().unwrap();
    assert!(!store.has_state_snapshot(day).await.unwrap());
    let max = 1 << 20;
    assert_eq!(keep(store, day, at(9), max).await.unwrap(), KeepOutcome::Kept);
    // Another hub, or this one after a restart.
    assert_eq!(keep(store, day, at(99), max).await.unwrap(), KeepOutcome::Known);
    assert!(store.has_state_snapshot(day).await.unwrap());
    let kept = store.state_snapshots(None, 10).await.unwrap();
    assert_eq!((kept.len(), kept[0].day, kept[0].taken_at), (1, day, at(9)));
    assert_eq!((kept[0].hosts, kept[0].guests), (2, 2));
    let (text, tail) = live(&fixture, 9).await;
    assert_eq!((&kept[0].content, kept[0].bytes), (&tail.content, text.len() as u64));
    assert!(kept[0].stored_bytes < kept[0].bytes);
    let number = i64::try_from(kept[0].number).unwrap();
    let packed = store.state_snapshot(number).await.unwrap().unwrap();
    let read = |customer: Option<&str>| {
        let customer = customer.map(|customer| customer.parse().unwrap());
        let mut state = KeptState::new(packed.clone(), customer).unwrap();
        let mut text = String::new();
        while let Some(lines) = state.next_lines().unwrap() {
            text.push_str(&lines);
        }
        text
    };
    assert_eq!(read(None), text);
    let acme = read(Some("acme"));
    assert!(acme.contains("of-acme") && !acme.contains("beta") && !acme.contains("box2"), "{acme}");
    assert!(store.state_snapshot(number + 1).await.unwrap().is_none());
    let damaged = [&packed[..packed.len() / 2], &[0; 8]].concat();
    let mut damaged = KeptState::new(damaged, None).unwrap();
    assert!((0..3).any(|_| damaged.next_lines().is_err()));
}

pub async fn kept_snapshots_are_thinned_and_bounded(fixture: Fixture) {
    let store = &fixture.store;
    let begin: Date = "2026-01-01".parse().unwrap();
    let digest = |n: u8| holdfast_protocol::job::act::Sha256Text::of(&[n]);
    let new = |n: i64, bytes_max| NewStateSnapshot {
        day: begin.checked_add(jiff::Span::new().days(n)).unwrap(),
        taken_at: at(n),
        tail: StateTail { hosts: 1, guests: 1, content: digest(1), document: digest(2) },
        bytes: 100,
        body: vec![0; 10],
        bytes_max,
    };
    for n in 0..120 {
        assert_eq!(store.keep_state_snapshot(new(n, 1_000)).await.unwrap(), KeepOutcome::Kept);
    }
    let kept = store.state_snapshots(None, 500).await.unwrap();
    // 14 days, the weeks before them, and the ends of January to March.
    assert_eq!((kept.len(), kept[0].day.to_string()), (22, "2026-04-30".to_owned()), "{kept:#?}");
    assert_eq!(kept.last().unwrap().day.to_string(), "2026-01-31");
    let page = store.state_snapshots(Some(i64::try_from(kept[1].number).unwrap()), 2).await.unwrap();
    assert_eq!(page, kept[2..4]);
    store.keep_state_snapshot(new(120, 50)).await.unwrap();
    assert_eq!(store.state_snapshots(None, 500).await.unwrap().len(), 5);
}
