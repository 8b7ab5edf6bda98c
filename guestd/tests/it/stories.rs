//! Tests of claims, tokens and hellos.

use holdfast_protocol::bootstrap::Mode;
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::report::Health;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::fake_agent::{CLAIM, FakeAgent, NEW_TOKEN, OnClaim, TOKEN, bootstrap};
use crate::guest::{Guest, until};

async fn hellos(agent: &FakeAgent, count: usize) {
    until(&format!("{count} hellos"), || agent.read(|b| b.hellos.len() >= count), String::new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bootstrap_token_is_exchanged_once_and_hellos_follow() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
    let running = guest.run();
    hellos(&agent, 2).await;
    let (bootstrap_file, mode) = guest.bootstrap_file("bootstrap.json").unwrap();
    assert_eq!((bootstrap_file.token.expose(), mode), (TOKEN, 0o600));
    agent.read(|script| {
        assert_eq!(script.hellos[0].version, env!("CARGO_PKG_VERSION"));
        assert_eq!((script.hellos[0].health, script.hellos[0].boot_id.len()), (Health::Well, 36));
        assert!(script.peers.iter().all(|peer| peer.to_string() == "127.0.7.9"), "{:?}", script.peers);
    });

    let table = guest.status("table");
    let text = String::from_utf8(table.stdout).unwrap();
    assert_eq!(table.status.code(), Some(0), "{text}");
    for words in [
        "running",
        "serving",
        "web-1",
        "acme",
        "10.66.0.91/24",
        "db on /srv/db, 4 GiB, hot",
        "built 2026-11-01, 20 days old",
    ] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
    let json: Value = serde_json::from_slice(&guest.status("json").stdout).unwrap();
    assert_eq!(json["agent"]["answered"]["this"]["name"], "web-1");
    assert_eq!(
        (json["controller"].clone(), json["state"]["mode"].clone()),
        ("running".into(), "serving".into())
    );

    let (status, log) = running.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let state = guest.state().to_string();
    for secret in [CLAIM, TOKEN, guest_variable(&agent).as_str()] {
        assert!(!log.contains(secret) && !state.contains(secret) && !text.contains(secret));
    }
    assert_eq!(guest.status("table").status.code(), Some(1), "the agent answers, but no controller runs");

    let again = guest.run();
    let before = agent.read(|script| script.hellos.len());
    hellos(&agent, before + 1).await;
    assert_eq!(again.stop().0.code(), Some(0));
    assert_eq!(agent.read(|script| script.claims.len()), 1, "the second start traded nothing");
}

fn guest_variable(agent: &FakeAgent) -> String {
    agent.bootstrap_token(Mode::Serve).seal().unwrap().expose().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_agent_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let guest = Guest::new();
    // Bound but not served: the handshake hangs. Then it is closed and refuses. Then it is back.
    let agent = FakeAgent::start_on(listener);
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
    drop(agent);
    let running = guest.run();
    guest.fault("claiming", "does not answer").await;
    assert!(!guest.has_bootstrap());
    let agent = FakeAgent::start_on(TcpListener::bind(address).await.unwrap());
    guest.fault("claiming", "PIN_MISMATCH").await;
    assert_eq!(agent.read(|script| script.claims.len()), 0, "another leaf: nothing is sent to it");
    running.stop();
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
    let running = guest.run();
    hellos(&agent, 1).await;
    drop(agent);
    guest.fault("serving", "does not answer").await;
    assert_eq!(guest.status("json").status.code(), Some(69));
    assert_eq!(running.stop().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_retried_with_the_same_proof_over_a_kill() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    agent.plan(&[OnClaim::Lose; 100]);
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
    drop(guest_after_claims(&agent, &guest, 2).await);
    agent.plan(&[OnClaim::Lose]);
    let before = agent.read(|script| script.claims.len());
    let running = guest_after_claims(&agent, &guest, before + 2).await;
    hellos(&agent, 1).await;
    drop(running);
    agent.read(|script| {
        assert!(
            script.claims.iter().all(|proof| proof.len() == 64 && *proof == script.claims[0]),
            "{:?}",
            script.claims
        )
    });
}

async fn guest_after_claims(agent: &FakeAgent, guest: &Guest, count: usize) -> crate::guest::Running {
    let running = guest.run();
    until("claims", || agent.read(|script| script.claims.len() >= count), || guest.state().to_string()).await;
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_token_is_exchanged_and_the_old_file_is_kept() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    agent.script.lock().unwrap().tokens = vec![NEW_TOKEN.to_owned()];
    guest.keep(&agent.bootstrap(TOKEN));
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
    let running = guest.run();
    hellos(&agent, 1).await;
    running.stop();
    assert_eq!(guest.bootstrap_file("bootstrap.json").unwrap().0.token.expose(), NEW_TOKEN);
    let (old, mode) = guest.bootstrap_file("bootstrap.json.old").unwrap();
    assert_eq!((old.token.expose(), mode), (TOKEN, 0o600));
    assert_eq!(agent.read(|script| (script.strangers, script.claims.len())), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_restored_on_another_host_finds_its_new_agent() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    guest.keep(&bootstrap("https://127.0.0.1:1", Pin::of(PinKind::Leaf, b"gone"), "token-of-the-old-box"));
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::Serve));
    let running = guest.run();
    hellos(&agent, 1).await;
    running.stop();
    assert_eq!(guest.bootstrap_file("bootstrap.json").unwrap().0.token.expose(), TOKEN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_test_never_uses_the_token_of_the_backup() {
    let (agent, guest) = (FakeAgent::start().await, Guest::new());
    agent.script.lock().unwrap().tokens = vec![TOKEN.to_owned(), NEW_TOKEN.to_owned()];
    guest.keep(&agent.bootstrap(TOKEN));
    agent.plan(&[OnClaim::Lose]);
    guest.set_bootstrap_token(&agent.bootstrap_token(Mode::RestoreTest));
    let running = guest.run();
    hellos(&agent, 1).await;
    running.stop();
    assert_eq!(guest.bootstrap_file("bootstrap.json").unwrap().0.token.expose(), NEW_TOKEN);
    assert_eq!(agent.read(|script| script.claims.len()), 2);
}
