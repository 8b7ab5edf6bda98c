//! Tests of refused claims, tokens and files.

use std::fs;

use holdfast_protocol::bootstrap::Mode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::pin::{Pin, PinKind};

use crate::fake_agent::{FakeAgent, OnClaim, TOKEN};
use crate::guest::Guest;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_it_stays_in_set_up_mode_with_a_reason() {
    for (value, words) in [
        (None, "no bootstrap token"),
        (Some(""), "no bootstrap token"),
        (Some("pending"), "restored and is not ready yet"),
        (Some("{{claim}}"), "not base64url"),
        (Some("e30"), "does not hold a bootstrap token"),
    ] {
        let guest = Guest::new();
        if let Some(value) = value {
            guest.set_variable(value);
        }
        let running = guest.run();
        guest.fault("set_up", words).await;
        assert_eq!(guest.status("table").status.code(), Some(4));
        let (status, log) = running.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains(words), "{log}");
        assert!(!guest.has_bootstrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_pin_sends_nothing() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    let mut bootstrap_token = agent.bootstrap_token(Mode::Serve);
    bootstrap_token.pin = Pin::of(PinKind::Leaf, b"another leaf");
    guest.set_bootstrap_token(&bootstrap_token);
    let running = guest.run();
    guest.fault("claiming", "PIN_MISMATCH").await;
    running.stop();
    assert!(!guest.has_bootstrap());
    assert_eq!(agent.read(|script| script.claims.len()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_claim_is_not_sent_twice_even_after_a_restart() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    agent.plan(&[OnClaim::Refuse(ErrorCode::ClaimTwice)]);
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
    for _ in 0..2 {
        let running = guest.run();
        guest.fault("set_up", "CLAIM_TWICE").await;
        running.stop();
        fs::remove_file(guest.path("run/holdfast/guestd.json")).unwrap();
    }
    assert_eq!(agent.read(|script| script.claims.len()), 1);
    assert!(!guest.has_bootstrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_untrusted_bootstrap_file_is_left_alone() {
    let agent = FakeAgent::start().await;
    let good = serde_json::to_string(&agent.bootstrap(TOKEN)).unwrap();
    let cases = [
        ("{", 0o600, "malformed"),
        ("", 0o600, "malformed"),
        ("{\"schema\":\"holdfast.bootstrap/v2\"}", 0o600, "malformed"),
        (good.as_str(), 0o644, "mode 0644"),
        (good.as_str(), 0o640, "mode 0640"),
    ];
    for (text, mode, words) in cases {
        let guest = Guest::new();
        guest.keep_text(text, mode);
        guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
        let running = guest.run();
        guest.fault("set_up", words).await;
        running.stop();
        assert_eq!(fs::read_to_string(guest.path("var/lib/holdfast/bootstrap.json")).unwrap(), text);
    }
    assert_eq!(agent.read(|script| (script.claims.len(), script.hellos.len())), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_token_stays_without_a_bootstrap_token() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    guest.keep(&agent.bootstrap("token-that-nobody-knows-any-more"));
    let running = guest.run();
    guest.fault("serving", "UNAUTHENTICATED").await;
    assert_eq!(guest.status("table").status.code(), Some(69));
    running.stop();
    assert_eq!(
        guest.bootstrap_file("bootstrap.json").unwrap().0.token.expose(),
        "token-that-nobody-knows-any-more"
    );
    assert!(guest.bootstrap_file("bootstrap.json.old").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_controller_is_refused() {
    let guest = Guest::new();
    let first = guest.run();
    guest.fault("set_up", "no bootstrap token").await;
    let (status, log) = guest.run().end();
    assert_eq!(status.code(), Some(5), "{log}");
    assert!(log.contains("another guestd runs"), "{log}");
    assert_eq!(first.stop().0.code(), Some(0));
}
