//! Deliveries that must not reach their server, or not go on.

use notify::reason::Reason;
use notify::{DeliveryError, EgressPolicy, RetryDecision, Sender};
use serde_json::json;

use crate::fixtures::{KEY, channel, http_channels, message, now, outbox_id};
use crate::http_server::{Server, reply};

async fn deliver(policy: EgressPolicy, channel: &notify::Channel) -> Result<notify::Receipt, DeliveryError> {
    Sender::new(policy).deliver(channel, &message(), &outbox_id(), now()).await
}

#[tokio::test]
async fn a_policy_keeps_deliveries_from_this_machine() {
    let server = Server::start(|_, _| reply(204, ""));
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost"] {
        let hook = channel(json!({ "kind": "webhook", "url": format!("http://{host}:{port}/"), "key": KEY }));
        for policy in [EgressPolicy::Public, EgressPolicy::Private] {
            let error = deliver(policy, &hook).await.unwrap_err();
            assert!(matches!(error, DeliveryError::Egress(_)), "{error}");
            assert_eq!(error.retry(), RetryDecision::BackOff);
        }
        deliver(EgressPolicy::Loopback, &hook).await.unwrap();
    }
    assert_eq!(server.received().len(), 2, "the allowed ones alone");
}

/// No policy opens these. The URL is https, so that only the address can be the reason.
#[tokio::test]
async fn the_metadata_service_is_never_reached() {
    for host in [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "0.0.0.0",
        "2852039166",
        "0xa9fea9fe",
    ] {
        let hook =
            channel(json!({ "kind": "webhook", "url": format!("https://{host}/latest/"), "key": KEY }));
        let error = deliver(EgressPolicy::Loopback, &hook).await.unwrap_err();
        assert!(matches!(error, DeliveryError::Egress(_)), "{host}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let inner = Server::start(|_, _| reply(204, ""));
    let to = inner.url();
    let server = Server::start(move |_, _| (307, format!("location: {to}/\r\n"), String::new()));
    for channel in &http_channels(&server.url()) {
        let error = deliver(EgressPolicy::Loopback, channel).await.unwrap_err();
        assert!(
            matches!(error, DeliveryError::Refused { reason: Reason::Redirect, status: 307, .. }),
            "{error}"
        );
        assert_eq!(error.retry(), RetryDecision::Never);
    }
    assert_eq!(inner.received().len(), 0);
}

#[tokio::test]
async fn a_long_answer_is_not_read_to_its_end() {
    let server = Server::start(|_, _| reply(400, &"x".repeat(50_000_000)));
    let error = deliver(EgressPolicy::Loopback, &http_channels(&server.url())[2]).await.unwrap_err();
    let DeliveryError::Refused { reason: Reason::Request, said, .. } = error else { panic!("{error}") };
    assert_eq!(said.chars().count(), 200);
}

/// The clock of this test stands still but for the runtime's own jumps to the next timer.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let error = deliver(EgressPolicy::Loopback, &http_channels(&url)[2]).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Timeout { .. }), "{error}");
    assert_eq!(error.retry(), RetryDecision::BackOff);
}

#[tokio::test]
async fn a_server_that_is_away_is_asked_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = deliver(EgressPolicy::Loopback, &http_channels(&url)[2]).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Connection(_)), "{error}");
    assert_eq!(error.retry(), RetryDecision::BackOff);
}
