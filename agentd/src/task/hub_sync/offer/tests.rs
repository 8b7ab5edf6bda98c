//! Tests of refused documents.

use super::*;
use holdfast_protocol::code::ErrorCode;

fn document(generation: u64, poll: u32) -> String {
    format!(
        r#"{{"schema":"holdfast.desired/v1","generation":{generation},"poll_interval_s":{poll},"guests":[]}}"#
    )
}

#[tokio::test]
async fn every_bad_document_is_refused_by_its_code_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let store = Store::open(dir.path(), now).unwrap();
    assert_eq!(offer(&store, &document(7, 30), now).await.unwrap(), Verdict::Taken);
    assert_eq!(offer(&store, &document(7, 30), now).await.unwrap(), Verdict::NotTaken);
    assert!(store.desired_section().await.unwrap().refused.is_none(), "the same again is no refusal");
    let before = store.desired_section().await.unwrap();

    let cases = [
        (document(6, 30), Some(6), ErrorCode::StaleGeneration),
        (document(7, 31), Some(7), ErrorCode::GenerationConflict),
        (document(1008, 30), Some(1008), ErrorCode::GenerationJump),
        (document(8, 30).replace("\"guests\"", "\"force\":1,\"guests\""), Some(8), ErrorCode::UnknownField),
        (document(8, 30).replace("/v1", "/v2"), Some(8), ErrorCode::Version),
        ("{".to_owned(), None, ErrorCode::Syntax),
    ];
    for (text, generation, code) in cases {
        assert_eq!(offer(&store, &text, now).await.unwrap(), Verdict::NotTaken);
        let section = store.desired_section().await.unwrap();
        assert_eq!((section.held, &section.content), (before.held, &before.content), "{text}");
        let refused = section.refused.unwrap();
        assert_eq!(refused.generation.map(Generation::number), generation, "{text}");
        assert_eq!(refused.problem.code, code, "{text}");
    }
    assert_eq!(offer(&store, &document(8, 30), now).await.unwrap(), Verdict::Taken);
    assert!(store.desired_section().await.unwrap().refused.is_none(), "the next good one ends the refusal");
}

/// A good document with two guests.
fn good(generation: u64) -> serde_json::Value {
    let guest = |n: u32| {
        serde_json::json!({
            "uid": format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}"), "name": format!("web-{n}"), "customer": "acme",
            "vmid": 100 + n, "run": "running", "golden": "2026.11.1",
            "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
            "network": { "bridge": "vmbr0", "address": format!("10.66.0.{n}/24"), "gateway": "10.66.0.254" },
            "volumes": [{ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" }]
        })
    };
    serde_json::json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30,
        "guests": [guest(1), guest(2)] })
}

/// A value put at a place of the good document.
fn with(generation: u64, pointer: &str, value: &serde_json::Value) -> String {
    let mut bad = good(generation);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match bad.pointer_mut(parent).unwrap() {
        serde_json::Value::Object(map) => drop(map.insert(key.to_owned(), value.clone())),
        other => panic!("{parent} is {other}"),
    }
    bad.to_string()
}

/// Names that would splice into a property list, a path, a shell or a screen.
const SPLICES: [&str; 22] = [
    "",
    "a b",
    "a,b",
    "a=b",
    "a;b",
    "a|b",
    "a$(id)",
    "a`id`",
    "a/b",
    "..",
    "../a",
    "a\nb",
    "a\tb",
    "a\u{0}b",
    "a\u{202e}b",
    "\u{1f600}",
    "A",
    "-a",
    "a'b",
    "a\"b",
    "a%2fb",
    "ａ",
];

fn vectors() -> Vec<(String, ErrorCode)> {
    use ErrorCode::{Missing, Range, Size, Syntax, UnknownField, Version};
    use serde_json::json;
    let text = good(8).to_string();
    let mut all: Vec<(String, ErrorCode)> = vec![
        (String::new(), Syntax),
        ("x".to_owned(), Syntax),
        (format!("\u{feff}{text}"), Syntax),
        (format!("{text}\0"), Syntax),
        (format!("{text}{text}"), Syntax),
        (format!("[{text}]"), Range),
        (format!("{text:?}"), Range),
        (" ".repeat(holdfast_protocol::desired::DOCUMENT_BYTES_MAX + 1), Size),
        (text.replacen("\"generation\"", "\"generation\":8,\"generation\"", 1), ErrorCode::DuplicateKey),
        (
            text.replacen("\"generation\"", "\"\\u0067eneration\":8,\"generation\"", 1),
            ErrorCode::DuplicateKey,
        ),
        (text.replacen("\"cores\"", "\"cores\":1,\"cores\"", 1), ErrorCode::DuplicateKey),
    ];
    for cut in 1..20 {
        all.push((text[..cut * text.len() / 20].to_owned(), Syntax));
    }
    for name in SPLICES {
        for field in ["name", "customer", "golden"] {
            all.push((with(8, &format!("/guests/0/{field}"), &json!(name)), Range));
        }
        // Proxmox has bridges with capital letters.
        if name != "A" {
            all.push((with(8, "/guests/0/network/bridge", &json!(name)), Range));
        }
        all.push((
            with(
                8,
                "/guests/0/volumes",
                &json!([{ "name": name, "mount": "/srv/x", "size_gib": 1, "kind": "hot" }]),
            ),
            Range,
        ));
    }
    for mount in
        ["", "/", "srv", "/srv/../etc", "/srv/./x", "//srv", "/srv/", "/srv,ro=1", "/srv\n", "/proc/self"]
    {
        let volume = json!([{ "name": "x", "mount": mount, "size_gib": 1, "kind": "hot" }]);
        if !matches!(mount, "/proc/self") {
            all.push((with(8, "/guests/0/volumes", &volume), Range));
        }
    }
    // Fields that no schema of ours has, so that they cannot be smuggled in.
    for field in [
        "scratch",
        "args",
        "hookscript",
        "lxc.mount.entry",
        "cicustom",
        "hostpci0",
        "mp0",
        "dev0",
        "features",
        "unprivileged",
        "protection",
        "template",
        "force",
        "purge",
        "skiplock",
        "tags",
        "nameserver",
        "onboot",
    ] {
        for place in ["/guests/0", "/guests/0/size", "/guests/0/network", ""] {
            all.push((with(8, &format!("{place}/{field}"), &json!("x")), UnknownField));
        }
    }
    for (pointer, value, code) in [
        ("/schema", json!("holdfast.desired/v2"), Version),
        ("/guests/0/run", json!("paused"), Version),
        ("/guests/0/size/cores", json!(0), Range),
        ("/guests/0/size/cores", json!(1_000_000), Range),
        ("/guests/0/size/cores", json!(1.5), Range),
        ("/guests/0/size/memory_mib", json!(0), Range),
        ("/guests/0/size/memory_mib", json!(u64::MAX), Range),
        ("/guests/0/size/swap_mib", json!(-1), Range),
        ("/guests/0/size/rootfs_gib", json!(0), Range),
        ("/guests/0/vmid", json!(99), Range),
        ("/guests/0/vmid", json!(1_000_000_000), Range),
        ("/guests/0/vmid", json!("104 "), Range),
        ("/guests/0/uid", json!("web-1"), Range),
        ("/guests/0/network/address", json!("10.66.0.1"), Range),
        ("/guests/0/network/address", json!("10.66.0.1/33"), Range),
        ("/guests/0/network/address", json!("010.66.0.1/24"), Range),
        ("/guests/0/network/gateway", json!("10.67.0.1"), Range),
        ("/guests", json!(null), Range),
        ("/guests", json!({}), Range),
        ("/generation", json!(-1), Range),
        ("/generation", json!("8"), Range),
        ("/generation", json!(6), ErrorCode::StaleGeneration),
        ("/generation", json!(0), ErrorCode::StaleGeneration),
        ("/generation", json!(1_008), ErrorCode::GenerationJump),
        ("/generation", json!(i64::MAX), ErrorCode::GenerationJump),
        ("/poll_interval_s", json!(0), Range),
    ] {
        all.push((with(8, pointer, &value), code));
    }
    all.push((with(7, "/poll_interval_s", &json!(31)), ErrorCode::GenerationConflict));
    for (pointer, key, code) in [
        ("/guests/1", "uid", ErrorCode::DuplicateGuest),
        ("/guests/1", "name", ErrorCode::DuplicateName),
        ("/guests/1", "vmid", ErrorCode::DuplicateVmid),
        ("/guests/1/network", "address", ErrorCode::DuplicateAddress),
    ] {
        let same = good(8).pointer(&format!("{}/{key}", pointer.replace('1', "0"))).unwrap().clone();
        all.push((with(8, &format!("{pointer}/{key}"), &same), code));
    }
    for field in ["schema", "generation", "poll_interval_s", "guests"] {
        let mut less = good(8);
        less.as_object_mut().unwrap().remove(field);
        all.push((less.to_string(), Missing));
    }
    for field in ["uid", "name", "customer", "run", "golden", "size", "network"] {
        let mut less = good(8);
        less["guests"][0].as_object_mut().unwrap().remove(field);
        all.push((less.to_string(), Missing));
    }
    all
}

#[tokio::test]
async fn a_refusal_is_one_line_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let store = Store::open(dir.path(), now).unwrap();
    assert_eq!(offer(&store, &good(7).to_string(), now).await.unwrap(), Verdict::Taken);
    let vectors = vectors();
    assert!(vectors.len() > 200, "{}", vectors.len());
    let held = store.desired_section().await.unwrap();
    let (mut last, mut wrong): (Option<RefusedDocument>, Vec<String>) = (None, Vec::new());
    for (text, code) in vectors {
        let name: String = text.chars().take(900).collect();
        now += jiff::SignedDuration::from_secs(60);
        let before = store.audit(u32::MAX).await.unwrap().len();
        for _ in 0..2 {
            assert_eq!(offer(&store, &text, now).await.unwrap(), Verdict::NotTaken, "{name}");
        }
        let section = store.desired_section().await.unwrap();
        assert_eq!((section.held, &section.content), (held.held, &held.content), "{name}");
        let refused = section.refused.unwrap();
        if refused.problem.code != code {
            wrong.push(format!("{code} expected, {}: {name}", refused.problem));
        }
        let lines = store.audit(u32::MAX).await.unwrap();
        let news = usize::from(last.as_ref() != Some(&refused));
        assert_eq!(lines.len(), before + news, "one line, and the same again is none: {name}");
        let line = lines.last().unwrap();
        assert!(
            line.action == "document_refused" && line.detail.contains(refused.problem.code.as_str()),
            "{line:?}"
        );
        last = Some(refused);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(offer(&store, &good(8).to_string(), now).await.unwrap(), Verdict::Taken);
    assert!(store.desired_section().await.unwrap().refused.is_none());
}
