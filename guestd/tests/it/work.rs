//! Tests of `guestd snapshot`, `rollback` and `backup`.

use holdfast_protocol::code::ErrorCode;

use crate::fake_agent::{FakeAgent, OnRequest, TOKEN};
use crate::guest::Guest;

async fn guest() -> (FakeAgent, Guest) {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    guest.keep(&agent.bootstrap(TOKEN));
    (agent, guest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_asked_for_and_followed_to_its_end() {
    let (agent, guest) = guest().await;
    let output = guest.ask("backup", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "backup is done\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is queued"));
    assert_eq!(agent.read(|script| (script.requests.len(), script.looks)), (1, 2));
    let listed = guest.ask("backup", &["--list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("5 MiB on backup2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_retried_under_the_same_key() {
    let (agent, guest) = guest().await;
    agent.script.lock().unwrap().on_request = [OnRequest::Lose].into();
    let output = guest.ask("snapshot", &["before-update", "--keep-hours", "2", "--no-wait"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 before it"));
    agent.read(|script| {
        assert_eq!(script.requests.len(), 2);
        assert_eq!(script.requests[0], script.requests[1], "one request");
        let asked = serde_json::json!({ "name": "before-update", "keep_s": 7200 });
        assert_eq!((script.requests[0].0.as_str(), &script.requests[0].2), ("/v1/snapshots", &asked));
        assert_eq!(script.looks, 0);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_work_exits_with_the_reason() {
    let (_agent, guest) = guest().await;
    let output = guest.ask("rollback", &["before-update", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(view["problem"]["code"], "NEEDS_SIGNATURE");
    let bad = guest.ask("rollback", &["../before"]);
    assert_eq!(bad.status.code(), Some(2), "refused before anything is asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_and_missing_agents_have_their_own_exit_codes() {
    let (agent, guest) = guest().await;
    agent.script.lock().unwrap().on_request = [OnRequest::Refuse(ErrorCode::Busy)].into();
    let output = guest.ask("backup", &[]);
    assert_eq!(output.status.code(), Some(75));
    assert!(String::from_utf8_lossy(&output.stderr).contains("BUSY"));
    assert_eq!(agent.read(|script| script.requests.len()), 1, "it is not asked again at once");
    assert_eq!(Guest::new().ask("backup", &[]).status.code(), Some(4));
}
