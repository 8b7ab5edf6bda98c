//! Tests of `holdfast audit verify`.

use holdfast_protocol::audit::{AuditLine, ExportHeader, ExportSchema, Fields, chain, hex};
use serde_json::{Value, json};

use crate::apply::detail;
use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

fn lines(count: i64) -> Vec<AuditLine> {
    let mut before = Vec::new();
    (1..=count)
        .map(|number| {
            let detail = format!("line {number}");
            let fields =
                Fields { number, at_us: number, action: "a", guest: None, operation: None, detail: &detail };
            let hash = chain(&before, fields);
            before = hash.to_vec();
            AuditLine {
                number,
                at_us: number,
                action: "a".to_owned(),
                guest: None,
                operation: None,
                detail,
                chain: hex(&hash),
            }
        })
        .collect()
}

fn export(lines: &[AuditLine]) -> String {
    let header = ExportHeader { schema: ExportSchema::V1, lines: lines.len() as u64, after: None };
    let header = serde_json::to_string(&header).unwrap();
    let rest: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    format!("{header}\n{rest}")
}

fn reports(number: u64, chain: &str) -> Reply {
    let trust = json!({ "epoch": 1, "policy_version": 0, "audit": { "number": number, "chain": chain } });
    Reply::Data(detail(1, json!({ "trust": trust })))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn truncated_changed_and_other_histories_are_detected() {
    let hub = FakeHub::logged_in().await;
    let all = lines(9);
    hub.on("GET /v1/hosts/box1", reports(7, &all[6].chain));
    hub.on("GET /v1/hosts/box2", reports(9, &"00".repeat(32)));
    hub.on("GET /v1/hosts/box3", Reply::Data(detail(1, json!({}))));
    // Its end is the one that was reported, and its past is not the one that was kept.
    hub.on("GET /v1/hosts/box4", reports(9, &all[8].chain));
    let at = "2026-11-26T12:00:00Z";
    let kept = |heads: &[(u64, &str)]| {
        let heads: Vec<Value> = heads
            .iter()
            .map(|(number, chain)| json!({ "number": number, "chain": chain, "at": at }))
            .collect();
        Reply::Data(json!({ "heads": heads, "breaks": [] }))
    };
    hub.on("GET /v1/hosts/box1/audit-heads", kept(&[(7, &all[6].chain), (3, &all[2].chain)]));
    hub.on("GET /v1/hosts/box2/audit-heads", kept(&[]));
    hub.on("GET /v1/hosts/box4/audit-heads", kept(&[(9, &all[8].chain), (3, &"00".repeat(32))]));
    let run = |text: &str, more: &[&str]| {
        let file = hub.file("audit.jsonl", text);
        hub.holdfast(&[&["audit", "verify", file.to_str().unwrap()], more].concat())
    };
    let whole = run(&export(&all), &["--output", "json"]);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    let told: Value = serde_json::from_str(&stdout(&whole)).unwrap();
    assert_eq!((told["lines"].clone(), told["head"].clone()), (9.into(), all[8].chain.clone().into()));
    let compared = run(&export(&all), &["--host", "box1"]);
    assert!(stdout(&compared).contains("so are 2 ends that the hub kept"), "{}", stdout(&compared));
    // A host that removed its oldest lines says where the rest begins, and so does this.
    let rest = export(&all[4..]).replacen(
        '}',
        &format!(r#","after":{{"number":4,"chain":"{}"}}}}"#, all[3].chain),
        1,
    );
    let removed = run(&rest, &[]);
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    assert!(stdout(&removed).contains("5 to 9; nothing is proved of the 4 before"), "{}", stdout(&removed));
    for (text, host, words) in [
        (export(&all[4..]), None, "at line 1"),
        (export(&all).replace("line 4", "line 5"), None, "at line 4"),
        (export(&[&all[..3], &all[4..]].concat()), None, "at line 4"),
        (export(&all[..5]), Some("box1"), "its end was cut off"),
        (export(&all), Some("box2"), "another history"),
        (export(&all), Some("box3"), "has not reported"),
        (export(&all), Some("box4"), "line 3 is not the one that was seen before"),
        ("no export".to_owned(), None, "line 1 of the file"),
    ] {
        let more: Vec<&str> = host.map_or_else(Vec::new, |host| vec!["--host", host]);
        let output = run(&text, &more);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
    }
}
