//! Tests of the hub client against small real servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::post;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::pin::PinKind;
use holdfast_protocol::secret::Secret;
use tokio::net::TcpListener;

#[path = "../../../../tests/support/small_hub.rs"]
mod small_hub;

use self::small_hub::{Ca, ca, identity, serve, tls};
use super::*;

fn ask() -> InviteRedemption {
    InviteRedemption { secret: Secret::new("0123456789abcdef".to_owned()), csr_pem: "csr".to_owned() }
}

fn pin(ca: &Ca) -> Pin {
    Pin::of(PinKind::Leaf, ca.der())
}

const REFUSAL: &str = r#"{"schema_version":"holdfast.envelope/v1","request_id":"018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55",
    "correlation_id":"018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55","data":null,
    "error":{"code":"INVITE_USED","message":"ask for a new one"},"metadata":{"timestamp":"2026-11-21T12:00:00Z"}}"#;

fn counting(hits: &Arc<AtomicU32>) -> Router {
    let hits = Arc::clone(hits);
    Router::new().route(
        "/v1/enroll",
        post(move || async move {
            hits.fetch_add(1, Ordering::SeqCst);
            (StatusCode::FORBIDDEN, REFUSAL)
        }),
    )
}

#[tokio::test]
async fn the_pinned_hub_is_asked_and_its_refusal_is_read() {
    let (ca, hits) = (ca(), Arc::default());
    let base = serve(tls(&ca, &ca, None), counting(&hits)).await;
    let error = Hub::first_contact(&base, pin(&ca)).unwrap().enroll(&ask()).await.unwrap_err();
    assert!(matches!(error, HubError::Refused { status: 403, .. }), "{error:?}");
    assert_eq!((error.code(), error.remedy()), (ErrorCode::InviteUsed, Remedy::Operator));
    assert_eq!(hits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nothing_is_sent_to_a_server_that_is_not_the_pinned_hub() {
    let (real, other, hits) = (ca(), ca(), Arc::default());
    let stranger = serve(tls(&other, &other, None), counting(&hits)).await;
    let error = Hub::first_contact(&stranger, pin(&real)).unwrap().enroll(&ask()).await.unwrap_err();
    assert!(matches!(error, HubError::NotTheHub { .. }), "{error:?}");
    // Any server can show the CA; only its owner has a certificate made by it.
    let parrot = serve(tls(&other, &real, None), counting(&hits)).await;
    let error = Hub::first_contact(&parrot, pin(&real)).unwrap().enroll(&ask()).await.unwrap_err();
    assert!(matches!(error, HubError::Certificate { .. }), "{error:?}");
    assert_eq!(error.code(), ErrorCode::PinMismatch);
    assert_eq!(hits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn strange_answers_are_errors_of_their_own() {
    let ca = ca();
    let long = "x".repeat(ANSWER_BYTES_MAX + 1);
    let router = Router::new()
        .route(
            "/redirect/v1/enroll",
            post(|| async { (StatusCode::FOUND, [(header::LOCATION, "https://127.0.0.1:1/")]) }),
        )
        .route("/long/v1/enroll", post(move || async move { long }))
        .route("/html/v1/enroll", post(|| async { "<html>" }))
        .route(
            "/both/v1/enroll",
            post(|| async { (StatusCode::OK, REFUSAL.replace("\"error\":{", "\"error\":null,\"data2\":{")) }),
        )
        .route(
            "/lie/v1/enroll",
            post(|| async {
                REFUSAL.replace(
                    "\"error\":{\"code\":\"INVITE_USED\",\"message\":\"ask for a new one\"}",
                    "\"error\":null",
                )
            }),
        );
    let base = serve(tls(&ca, &ca, None), router).await;
    let mut kinds = Vec::new();
    for path in ["redirect", "long", "html", "both", "lie"] {
        let hub = Hub::first_contact(&format!("{base}/{path}"), pin(&ca)).unwrap();
        kinds.push(match hub.enroll(&ask()).await.unwrap_err() {
            HubError::Redirect { status: 302, .. } => "redirect",
            HubError::TooLong { .. } => "long",
            HubError::Answer { .. } => "answer",
            HubError::Contradiction { status: 200 } => "frame",
            other => panic!("{path}: {other:?}"),
        });
    }
    assert_eq!(kinds, ["redirect", "long", "answer", "answer", "frame"]);
}

#[tokio::test]
async fn a_hub_that_is_away_is_worth_waiting_for() {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let base = format!("https://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = Hub::first_contact(&base, pin(&ca())).unwrap().enroll(&ask()).await.unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error:?}");
    assert_eq!(error.remedy(), Remedy::Wait);
}

#[tokio::test]
async fn the_agents_certificate_is_shown_and_a_foreign_one_is_refused() {
    let (ca, foreign) = (ca(), ca());
    let router = Router::new().route("/v1/renew", post(|| async { (StatusCode::UNAUTHORIZED, REFUSAL) }));
    let base = serve(tls(&ca, &ca, Some(&ca)), router).await;
    let ask = RenewRequest { csr_pem: "csr".to_owned() };
    let error = Hub::enrolled(&identity(&base, &ca, &ca)).unwrap().renew(&ask).await.unwrap_err();
    assert!(matches!(error, HubError::Refused { status: 401, .. }), "{error:?}");
    let error = Hub::enrolled(&identity(&base, &ca, &foreign)).unwrap().renew(&ask).await.unwrap_err();
    assert!(matches!(error, HubError::OwnCertificate { .. }), "{error:?}");
}
