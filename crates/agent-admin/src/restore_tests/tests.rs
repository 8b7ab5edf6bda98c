//! Tests of the printed results, at a terminal's width.

use serde_json::json;

use super::*;

const NOW: &str = "2026-11-21T12:00:00Z";

fn guests() -> Vec<GuestReport> {
    let uid = |n: u8| format!("018f3c1e-6b1f-7c1d-9d0a-00000000000{n}");
    let last = |at: &str, verdict: &str| json!({ "at": at, "taken_at": "2026-11-20T01:30:00Z", "verdict": verdict, "why": "well" });
    let mut proved = last("2026-11-18T03:00:00Z", "proved");
    proved["took"] = json!({ "restore_s": 820, "up_s": 44 });
    let tested = json!([
        { "tier": "local", "last": proved, "trend": { "is": "slower", "took_s": 864, "usual_s": 480 } },
        { "tier": "off_site", "last": last("2026-11-21T11:30:00Z", "not_run"), "trend": { "is": "too_few", "tests": 2, "needed": 4 } }]);
    let guest = |n: u8, name: &str, protection: serde_json::Value| json!({ "uid": uid(n), "name": name, "status": "managed", "run": "running", "protection": protection });
    serde_json::from_value(json!([
        guest(3, "web-1", json!({ "tested": tested })),
        guest(2, "never-tried", json!({})),
        guest(1, "database-1", json!({ "tested": [
            { "tier": "local", "last": last("2026-11-09T03:00:00Z", "booted_only"), "trend": { "is": "steady", "took_s": 90, "usual_s": 80 } }] })),
    ]))
    .unwrap()
}

fn narrow(page: &str) {
    let widest = page
        .lines()
        .filter(|line| !line.starts_with("      "))
        .map(|line| line.trim_end().chars().count())
        .max();
    assert!(widest <= Some(80), "{widest:?}:\n{page}");
}

#[test]
fn each_tier_that_was_tried_has_a_line() {
    let guests = guests();
    let page = overview(&tried(&guests), NOW.parse().unwrap());
    narrow(&page);
    insta::assert_snapshot!(page);
    assert!(overview(&[], NOW.parse().unwrap()).starts_with("no backup was tried yet"));
}

#[test]
fn each_test_of_a_guest_has_its_line_and_its_reason_where_it_proved_nothing() {
    let op = "018f3c1e-0000-7000-8000-000000000001";
    let test = |at: &str, verdict: &str, why: &str, took: serde_json::Value| {
        json!({ "operation": op, "backup": op, "archive": "backup2:backup/a.tar.zst", "at": at, "tier": "local", "bytes": 7,
            "taken_at": "2026-11-20T01:30:00Z", "verdict": verdict, "why": why, "took": took })
    };
    let mut tests = vec![
        test(
            "2026-11-21T03:00:00Z",
            "proved",
            "stacks that are well by their own check: 2",
            json!({ "restore_s": 820, "up_s": 44 }),
        ),
        test(
            "2026-11-20T03:00:00Z",
            "failed",
            "shop: no answer",
            json!({ "restore_s": 40_820, "up_s": 1_799 }),
        ),
        test("2026-11-19T03:00:00Z", "not_run", "the host has 512 MiB of memory free", json!({})),
        test(
            "2026-11-12T03:00:00Z",
            "booted_only",
            "its controller did not speak",
            json!({ "restore_s": 20, "up_s": 300 }),
        ),
    ];
    // Of a storage that no tier names any more.
    tests[3]["tier"] = serde_json::Value::Null;
    tests[3].as_object_mut().unwrap().remove("tier");
    let guests = guests();
    let guest = GuestTests {
        uid: guests[0].uid.unwrap(),
        name: "web-1".to_owned(),
        tested: guests[0].protection.as_ref().unwrap().tested.clone(),
        tests: serde_json::from_value(json!(tests)).unwrap(),
    };
    let text = page(&guest);
    narrow(&text);
    insta::assert_snapshot!(text);
    assert!(page(&GuestTests { tests: Vec::new(), ..guest }).contains("no backup of it was tried yet"));
}
