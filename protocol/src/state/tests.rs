//! Tests of snapshots of state.

use super::*;
use crate::generation::Generation;
use crate::operator::HostState;
use serde_json::json;

fn guest(number: u32, customer: &str, run: &str) -> StateGuest {
    let uid = format!("018f3c1e-6b1f-7c1d-9d0b-{number:012}");
    let desired = json!({ "uid": uid, "name": format!("web-{number}"), "customer": customer, "run": "running",
        "golden": "2026.11.1", "policy": format!("of-{customer}"),
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": "10.0.0.5/24", "gateway": "10.0.0.1" } });
    let whole = json!({ "uid": uid, "name": format!("web-{number}"), "customer": customer, "desired": desired,
        "current": { "status": "managed", "run": run },
        "last_applied": [{ "field": "run", "desired": "running", "current": run }],
        "observed": { "hello_at": "2026-11-21T11:00:00Z", "posture_why": ["backup 26 hours old"] } });
    serde_json::from_value(whole).unwrap()
}

pub(super) fn host(name: &str, guests: Vec<StateGuest>) -> StateHost {
    let tier = json!({ "schedule": { "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 },
        "retention": { "keep": { "last": 3 } } });
    let policy = |name: &str| json!({ "name": name, "tiers": { "snapshot": tier } });
    let desired = json!({ "generation": 3, "content": "ab", "by": "ada", "reason": "more memory for beta",
        "put_at": "2026-11-20T11:00:00Z",
        "settings": { "poll_interval_s": 30, "policies": [policy("of-acme"), policy("of-beta")] } });
    StateHost {
        id: "018f3c1e-6b1f-7c1d-9d0a-000000000001".parse().unwrap(),
        name: name.parse().unwrap(),
        state: HostState::Online,
        labels: vec!["observed=yes".to_owned()],
        maintenance_until: None,
        desired: Some(serde_json::from_value(desired).unwrap()),
        held: Generation::new(3),
        refused: None,
        versions: HostVersions { agent: Some("0.1.0".to_owned()), proxmox: None },
        storages: Vec::new(),
        targets: Vec::new(),
        conditions: Vec::new(),
        conditions_left_out: 0,
        waiting: vec!["beta's volume would go".to_owned()],
        guests,
        observed: HostObserved { seen_at: "2026-11-21T12:00:00Z".parse().ok(), ..HostObserved::default() },
    }
}

fn head() -> StateHead {
    let taken_at = "2026-11-21T12:00:01Z".parse().unwrap();
    let (schema, hub_version) = (StateSchema::V1, "0.1.0".to_owned());
    StateHead { schema, taken_at, hub_version, scope: StateScope::default() }
}

fn written(hosts: Vec<StateHost>) -> (Vec<String>, StateTail) {
    let (mut writer, line) = StateWriter::begin(head()).unwrap();
    let mut lines = vec![line];
    lines.extend(hosts.into_iter().map(|host| writer.host(host).unwrap()));
    let end = writer.end().unwrap();
    lines.push(end.line);
    (lines, end.tail)
}

fn read(lines: &[String]) -> Result<Option<StateTail>, StateDocumentError> {
    let (mut reader, mut tail) = (StateReader::default(), None);
    for line in lines {
        if let Line::Tail(found) = reader.take(line.trim_end().as_bytes())? {
            tail = Some(found);
        }
    }
    reader.end().map(|()| tail)
}

#[test]
fn a_document_is_read_as_it_was_written_and_not_otherwise() {
    let hosts = vec![host("box1", vec![guest(1, "acme", "running")]), host("box2", Vec::new())];
    let (lines, tail) = written(hosts);
    assert_eq!((tail.hosts, tail.guests), (2, 1));
    assert_eq!(read(&lines).unwrap(), Some(tail));
    assert!(matches!(read(&lines[..3]), Err(StateDocumentError::CutOff)));
    assert!(matches!(read(&lines[1..]), Err(StateDocumentError::Place { line: 1 })));
    let mut more = lines.clone();
    more.push(lines[1].clone());
    assert!(matches!(read(&more), Err(StateDocumentError::Place { line: 5 })));
    let mut other = lines.clone();
    other[1] = other[1].replace("\"run\":\"running\"", "\"run\":\"stopped\"");
    assert!(matches!(read(&other), Err(StateDocumentError::Changed { what: "digest" })));
    let mut fewer = lines;
    fewer.remove(2);
    assert!(matches!(read(&fewer), Err(StateDocumentError::Changed { .. })));
}

#[test]
fn the_content_digest_covers_what_is_so_and_not_when_it_was_seen() {
    let before = host("box1", vec![guest(1, "acme", "running")]);
    let mut later = before.clone();
    later.observed.seen_at = "2026-11-21T13:00:00Z".parse().ok();
    later.guests[0].observed.hello_at = "2026-11-21T12:59:00Z".parse().ok();
    later.guests[0].observed.posture_why = vec!["backup 27 hours old".to_owned()];
    let content = |host: &StateHost| content_digest(host).unwrap();
    assert_eq!(content(&before), content(&later));
    assert_ne!(written(vec![before.clone()]).1.document, written(vec![later.clone()]).1.document);
    assert_eq!(written(vec![before.clone()]).1.content, written(vec![later]).1.content);
    // What Proxmox has of a field is no time, although the report calls it observed; and a label may have any name.
    let stopped = host("box1", vec![guest(1, "acme", "stopped")]);
    assert_ne!(content(&before), content(&stopped));
    let unlabelled = StateHost { labels: Vec::new(), ..before.clone() };
    assert_ne!(content(&before), content(&unlabelled));
    let drifted = |value: &str| {
        let mut host = before.clone();
        host.guests[0].last_applied[0].current = Some(value.to_owned());
        content(&host)
    };
    assert_ne!(drifted("stopped"), drifted("unknown"));
}

#[test]
fn canonical_json_has_its_members_by_name() {
    let text = canonical(&json!({ "b": 1, "a": { "d": [1, 2], "c": "ü\n" } })).unwrap();
    assert_eq!(text, "{\"a\":{\"c\":\"ü\\n\",\"d\":[1,2]},\"b\":1}");
}

#[test]
fn a_customer_sees_nothing_of_another() {
    let whole = host("box1", vec![guest(1, "acme", "running"), guest(2, "beta", "running")]);
    let acme = whole.clone().of_customer(&"acme".parse().unwrap()).unwrap();
    let text = canonical(&acme).unwrap();
    assert!(text.contains("web-1") && text.contains("of-acme"), "{text}");
    for never in ["beta", "web-2", "ada", "waiting", "more memory"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
    assert!(whole.of_customer(&"other".parse().unwrap()).is_none());
}
