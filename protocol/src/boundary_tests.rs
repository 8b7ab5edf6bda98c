//! Tests of the last accepted and first refused value of each bound.

use std::str::FromStr;

use serde_json::{Value, json};

use crate::audit::{self, AuditLine, ChainError, Fields, Verifier};
use crate::desired::{self, Desired, DesiredDocument};
use crate::enrol;
use crate::escrow;
use crate::generation::{ContentHash, Generation};
use crate::id::{
    BridgeName, GoldenVersion, GuestName, GuestUid, HostName, IdempotencyKey, KeyFingerprint, MountPath,
    NodeName, SnapshotName, StorageName, Vmid,
};
use crate::job::act::LetGo;
use crate::job::{self, HostEpoch, JobState, Payload, SignedJob, TargetKind, UtcSecond, envelope};
use crate::json;
use crate::net::Ipv4Cidr;
use crate::pin::{Pin, PinKind, PinSet};
use crate::storage;

/// These numbers are published to other programs: a change of one changes the wire format.
#[test]
fn bounds_are_what_was_published() {
    for (bound, published) in [
        (audit::LINE_BYTES_MAX, 262_144),
        (desired::DOCUMENT_BYTES_MAX, 1_048_576),
        (enrol::CSR_BYTES_MAX, 8_192),
        (enrol::INVITE_CHARS_MAX, 1_024),
        (escrow::PUT_BYTES_MAX, 16_384),
        (escrow::form::FILE_BYTES_MAX, 4_096),
        (job::BYTES_MAX, 65_536),
        (envelope::SIGNED_BYTES_MAX, 120_152),
    ] {
        assert_eq!(bound, published);
    }
    assert_eq!(job::LIFE_MAX_S, 86_400);
}

/// Whether `text`, with spaces behind it, is taken at its bound and not beyond.
fn held_to(text: &str, bound: usize, taken: impl Fn(&str) -> bool) {
    let long = |length: usize| format!("{text}{}", " ".repeat(length - text.len()));
    assert!(taken(text) && taken(&long(bound)), "not taken at {bound}");
    assert!(!taken(&long(bound + 1)), "taken beyond {bound}");
}

#[test]
fn documents_are_as_long_as_they_may_be_and_no_longer() {
    held_to(&document(1).to_string(), 1_048_576, |text| Desired::parse(text.as_bytes()).is_ok());
    held_to(PAYLOAD, 65_536, |text| Payload::parse(text.as_bytes()).is_ok());
    let job = SignedJob { payload: PAYLOAD.into(), signatures: vec!["one".to_owned()], consents: Vec::new() };
    held_to(&job.to_json().unwrap(), 120_152, |text| SignedJob::parse(text.as_bytes()).is_ok());
    held_to("{}", 7, |text| json::parse::<Value>("it", text.as_bytes(), 7).is_ok());
    // The largest that a signed job can be by its parts.
    let full = SignedJob {
        payload: vec![b'x'; 65_536],
        signatures: vec!["s".repeat(2_000); 8],
        consents: vec!["s".repeat(1_000); 16],
    };
    assert_eq!(SignedJob::parse(full.to_json().unwrap().as_bytes()).unwrap(), full);
}

#[test]
fn a_line_of_the_audit_is_as_long_as_it_may_be() {
    let line = |length: usize| {
        let of = |detail: String| {
            let fields = Fields {
                number: 1,
                at_us: 7,
                action: "a",
                guest: None,
                operation: Some("o"),
                detail: &detail,
            };
            let chain = audit::hex(&audit::chain(&[], fields));
            let (action, operation) = ("a".to_owned(), Some("o".to_owned()));
            AuditLine { number: 1, at_us: 7, action, guest: None, operation, detail, chain }
        };
        let empty = serde_json::to_string(&of(String::new())).unwrap().len();
        serde_json::to_string(&of("x".repeat(length - empty))).unwrap()
    };
    let export = |length| format!("{{\"schema\":\"holdfast.audit/v1\",\"lines\":1}}\n{}", line(length));
    let held = audit::verify(&export(262_144), Verifier::default()).unwrap();
    assert_eq!((held.lines, held.head.len()), (1, 64));
    let longer = audit::verify(&export(262_145), Verifier::default());
    assert!(matches!(longer, Err(ChainError::Form { number: 2, .. })), "{longer:?}");
    assert_eq!(audit::hex(&[0, 0x0a, 0xff]), "000aff");
}

const PAYLOAD: &str = r#"{"schema":"holdfast.job/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02","host_epoch":41,"target":{"kind":"host"},"verb":"release_brake","args":{"generation":7,"changes":[{"guest":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a03","name":"web-1","operation":"stop"}]},"not_before":"2026-11-21T14:00:00Z","expires_at":"2026-11-21T15:00:00Z","nonce":"00112233445566778899aabbccddeeff","reason":"the customer left"}"#;

fn guest(n: usize) -> Value {
    json!({
        "uid": format!("018f3c1e-6b1f-7c1d-9d0a-{n:012x}"), "name": format!("web-{n}"), "customer": "acme",
        "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.{}.{}/16", n / 250, 1 + n % 250) }
    })
}

fn document(guests: usize) -> Value {
    let guests: Vec<Value> = (1..=guests).map(guest).collect();
    json!({ "schema": "holdfast.desired/v1", "generation": 3, "poll_interval_s": 30, "guests": guests })
}

fn checked(document: Value) -> Result<Desired, desired::DesiredError> {
    Desired::check(serde_json::from_value::<DesiredDocument>(document).unwrap())
}

#[test]
fn a_document_names_as_many_as_it_may() {
    assert_eq!(checked(document(10_000)).unwrap().guests().len(), 10_000);
    let error = checked(document(10_001)).unwrap_err();
    assert!(matches!(error, desired::DesiredError::TooMany { count: 10_001, max: 10_000, .. }), "{error:?}");
    let volumes = |count: usize| {
        let volume =
            |n| json!({ "name": format!("v{n}"), "mount": format!("/v/{n}"), "size_gib": 1, "kind": "hot" });
        let mut document = document(1);
        document["guests"][0]["volumes"] = (0..count).map(volume).collect();
        checked(document)
    };
    assert!(volumes(16).is_ok());
    let error = volumes(17).unwrap_err();
    assert!(matches!(error, desired::DesiredError::TooMany { count: 17, max: 16, .. }), "{error:?}");
    let policies = |count: usize| {
        let policy = |n| {
            json!({ "name": format!("p{n}"), "tiers": { "snapshot": {
                "schedule": { "at": ["daily"], "zone": "UTC", "jitter_min": 0, "window_min": 60 },
                "retention": "keep_all"
            } } })
        };
        let mut document = document(1);
        document["policies"] = (0..count).map(policy).collect();
        checked(document)
    };
    let full = policies(64).unwrap();
    let names: Vec<&str> = full.policies().iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!((names.len(), names[0], names[63]), (64, "p0", "p63"));
    assert_eq!(full.document().policies, full.policies());
    assert!(policies(65).is_err());
    let targets = |count: usize| {
        let target = |n| {
            let backend = json!({ "nfs": { "server": "nas.example", "export": format!("/srv/{n}") } });
            json!({ "name": format!("nas{n}"), "backend": backend, "class": "slow", "role": "bulk-data",
                "state": "attached", "label": "the blue one", "default": false, "schedulable": true })
        };
        let mut document = document(1);
        document["storage"] = (0..count).map(target).collect();
        checked(document)
    };
    let (max, full) = (storage::TARGETS_MAX, targets(storage::TARGETS_MAX).unwrap());
    assert_eq!(
        (full.storage().len(), full.storage()[max - 1].name.as_str()),
        (max, &*format!("nas{}", max - 1))
    );
    assert!(targets(max + 1).is_err());
    // Where it is refused.
    let mut twice = document(3);
    twice["guests"][2]["name"] = json!("web-1");
    assert_eq!(checked(twice).unwrap_err().path(), Some("guests[2].name"));
    assert_eq!(checked(document(10_001)).unwrap_err().path(), None);
}

#[test]
fn a_reason_is_as_long_as_it_may_be() {
    let read = |text: String| desired::Reason::try_from(text);
    for length in [3, 200] {
        let text = "ä".repeat(length);
        let reason = read(text.clone()).unwrap();
        assert_eq!(reason.as_str(), text);
        assert_eq!(String::from(reason), text);
    }
    for bad in ["ä".repeat(2), "ä".repeat(201), "two\nlines".to_owned(), "a\u{7f}b".to_owned()] {
        assert!(read(bad.clone()).is_err(), "{bad:?}");
    }
}

/// Each of a kind that is a name, and each that is not quite one.
#[test]
fn names_have_their_form() {
    fn held<T: FromStr + ToString>(good: &[&str], bad: &[&str])
    where
        T::Err: std::fmt::Display,
    {
        for text in good {
            let read = text.parse::<T>().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(read.to_string(), *text);
        }
        for text in bad {
            let Err(error) = text.parse::<T>() else { panic!("{text:?} is taken") };
            let start: String = text.chars().take(64).collect();
            assert!(error.to_string().starts_with(&format!("{start:?} is not a ")), "{error}");
        }
    }
    let long = |length: usize| "a".repeat(length);
    held::<BridgeName>(&["vmbr0", "A-_9", &long(15)], &["0vmbr", "-a", "a.b", "ä", "", &long(16)]);
    held::<GuestName>(&["a", "0", "a-b", &long(63)], &["-a", "a-", "a_b", "A", "a.b", "é", &long(64)]);
    held::<HostName>(&["box7"], &["Box7", "box7-", "-", "--"]);
    held::<NodeName>(&["PVE-1", "a"], &["-pve", "pve-", "pve_1", "pve.1", ""]);
    held::<StorageName>(&["a", "Tank.1-b_2"], &["1tank", ".a", "-a", "a/b", "a b"]);
    held::<SnapshotName>(
        &["ab", "A_-9", "currents", &long(40)],
        &["a", "1a", "_a", "a.b", "CURRENT", "pending", "vzdump", &long(41)],
    );
    held::<IdempotencyKey>(&["a", "A_.:-9", "...", &long(128)], &["", ".", "..", "a b", "a/b", &long(129)]);
    held::<GoldenVersion>(
        &["2026.11.1", "0000.00.0000"],
        &[
            "2026.11.12345",
            "20260.1.1",
            "2026.1.1",
            "2026.11.",
            "2026.11.x",
            "2026.x1.1",
            "x026.11.1",
            "2026.11",
        ],
    );
    held::<MountPath>(
        &["/a", "/a/...", "/A-_.9/b"],
        &["a", "/", "//a", "/a/", "/.", "/..", "/a/./b", "/a/../b", "/a b", "/ä"],
    );
    let bytes = |count: usize, one: &str| vec![one; count].join(":");
    held::<KeyFingerprint>(
        &[&bytes(32, "0a"), &bytes(32, "f9")],
        &[
            &bytes(31, "0a"),
            &bytes(33, "0a"),
            &bytes(32, "0A"),
            &bytes(32, "0g"),
            &bytes(32, "g0"),
            &format!("{}:0", bytes(31, "0a")),
            &format!("{}:", bytes(31, "0a")),
            &format!("{}:00a", bytes(31, "0a")),
        ],
    );
    held::<Vmid>(&["100", "999999999"], &["99", "1000000000", "0100", "+100", " 100"]);
    assert_eq!(u32::from(Vmid::try_from(345).unwrap()), 345);
    let uid = "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55";
    held::<GuestUid>(&[uid], &[&uid.to_uppercase(), &uid.replace('-', ""), &uid[1..], "self"]);
}

/// What travels as a text reads back, and is written, in the one way.
#[test]
fn texts_on_the_wire_have_one_spelling() {
    fn same<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
        text: &str,
    ) -> T {
        let value: T = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        value
    }
    let leaf = format!("leaf/sha256:{}", "ab".repeat(32));
    let pin: Pin = same(&format!("{leaf:?}"));
    assert_eq!((pin.kind(), pin.to_string()), (PinKind::Leaf, leaf.clone()));
    let spki = format!("spki/sha256:{}", "cd".repeat(32));
    let set: PinSet = same(&format!("[{leaf:?},{spki:?}]"));
    assert_eq!(set.iter().map(ToString::to_string).collect::<Vec<_>>(), [leaf, spki]);
    assert!(serde_json::from_str::<PinSet>("[]").is_err());
    let cidr: Ipv4Cidr = same(r#""10.66.0.91/24""#);
    assert_eq!((cidr.address().to_string(), cidr.prefix()), ("10.66.0.91".to_owned(), 24));
    let at: UtcSecond = same(r#""2026-11-21T14:00:01Z""#);
    assert_eq!((at.second(), at.to_string()), (1_795_269_601, "2026-11-21T14:00:01Z".to_owned()));
    assert_eq!(at.at().as_second(), 1_795_269_601);
    for bad in [
        "12026-11-21T14:00:01Z",
        "2026-11-21T14:00:01.5Z",
        "2026-11-21T15:00:01+01:00",
        "-000001-01-01T00:00:00Z",
    ] {
        assert!(UtcSecond::try_from(bad.to_owned()).is_err(), "{bad}");
    }
    let epoch: HostEpoch = same("41");
    assert_eq!((epoch.number(), epoch.to_string()), (41, "41".to_owned()));
    let generation: Generation = same("7");
    assert_eq!((generation.number(), generation.next().number()), (7, 8));
    assert_eq!(generation.to_string(), "7");
    let hash = ContentHash::of(b"");
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(hash.to_string(), empty);
    assert!(format!("{hash:?}").contains(&empty[..8]), "{hash:?}");
    for kind in [TargetKind::Guest, TargetKind::Host] {
        assert_eq!(kind.as_str(), format!("{kind:?}").to_lowercase());
    }
    for way in [LetGo::Disconnected, LetGo::Decommissioned] {
        assert_eq!(same::<LetGo>(&format!("{:?}", way.as_str())), way);
    }
    for (state, end) in [
        (JobState::Refused, true),
        (JobState::Waiting, false),
        (JobState::UnderWay, false),
        (JobState::Done, true),
        (JobState::Failed, true),
        (JobState::Cancelled, true),
    ] {
        assert_eq!(state.is_end(), end);
        assert_eq!(same::<JobState>(&format!("{:?}", state.as_str())), state);
    }
    assert_eq!(Payload::parse(PAYLOAD.as_bytes()).unwrap().host_epoch.number(), 41);
}

#[test]
fn a_network_reaches_its_own() {
    let reaches = |cidr: &str, other: &str| cidr.parse::<Ipv4Cidr>().unwrap().reaches(other.parse().unwrap());
    for (cidr, inside, outside) in [
        ("10.66.0.91/32", "10.66.0.91", "10.66.0.90"),
        ("10.66.0.91/31", "10.66.0.90", "10.66.0.92"),
        ("10.66.0.91/24", "10.66.0.254", "10.66.1.91"),
        ("10.66.0.91/17", "10.66.127.255", "10.66.128.0"),
        ("10.66.0.91/8", "10.255.255.255", "11.66.0.91"),
        ("10.66.0.91/1", "127.255.255.255", "128.0.0.0"),
    ] {
        assert!(reaches(cidr, inside) && !reaches(cidr, outside), "{cidr}");
    }
}

#[test]
fn a_refusal_says_where_and_why() {
    let error = json::parse::<DesiredDocument>("the document", br#"{"generation":-1}"#, 100).unwrap_err();
    assert_eq!(error.path(), Some("generation"));
    let text = json::chain(&error);
    assert!(text.starts_with("the document is refused at generation: ") && text.len() > 45, "{text}");
    let none = json::parse::<DesiredDocument>("the document", b"{", 100).unwrap_err();
    assert_eq!(none.path(), None);
}
