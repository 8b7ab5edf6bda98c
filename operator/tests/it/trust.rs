//! Tests of `holdfast login`: trust and stored data.

use crate::fake_hub::{FakeHub, Reply, TOKEN, stderr, stdout, whoami};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_is_trusted_by_pin_or_ca_file_only() {
    let hub = FakeHub::start().await;
    hub.on("GET /v1/whoami", Reply::Data(whoami()));
    let other = FakeHub::start().await;
    let (own_file, other_file) = (hub.file("ca.pem", &hub.ca_pem), hub.file("other.pem", &other.ca_pem));

    let pinned_wrong = hub.login(&["--ca-pin", &other.ca_pin], TOKEN);
    assert_eq!(pinned_wrong.status.code(), Some(69));
    assert!(stderr(&pinned_wrong).contains("does not present the pinned CA"), "{}", stderr(&pinned_wrong));
    let filed_wrong = hub.login(&["--ca-file", other_file.to_str().unwrap()], TOKEN);
    assert_eq!(filed_wrong.status.code(), Some(69), "{}", stderr(&filed_wrong));
    assert!(hub.requests("GET /v1/whoami").is_empty(), "no token was sent to a stranger");
    assert!(!hub.is_logged_in());

    let none = hub.login(&[], TOKEN);
    assert_eq!(none.status.code(), Some(2), "a hub that is known by nothing is not asked");
    let strange = hub.login(&["--ca-pin", &hub.ca_pin], "another-token-0123456789");
    assert_eq!(strange.status.code(), Some(77), "{}", stderr(&strange));
    assert!(!hub.is_logged_in());

    for trust in [["--ca-pin", &hub.ca_pin], ["--ca-file", own_file.to_str().unwrap()]] {
        let output = hub.login(&trust, TOKEN);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("ada") && !stdout(&output).contains(TOKEN));
        assert_eq!(hub.holdfast(&["whoami"]).status.code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_login_nothing_is_sent() {
    let hub = FakeHub::start().await;
    let output = hub.holdfast(&["host", "list"]);
    assert_eq!(output.status.code(), Some(77));
    assert!(stderr(&output).contains("holdfast login"), "the next step is named: {}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_and_an_empty_token_are_refused() {
    let hub = FakeHub::start().await;
    let token = hub.file("token", TOKEN);
    let arguments =
        ["login", "http://127.0.0.1:1", "--ca-pin", &hub.ca_pin, "--token-file", token.to_str().unwrap()];
    assert!(stderr(&hub.holdfast(&arguments)).contains("not the URL of a hub"));
    let empty = hub.login(&["--ca-pin", &hub.ca_pin], "\n");
    assert_eq!(empty.status.code(), Some(1));
    assert!(stderr(&empty).contains("no token was given"));
    assert!(!hub.is_logged_in());
}
