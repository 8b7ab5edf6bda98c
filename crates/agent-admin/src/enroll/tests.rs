//! Enrollment against a small hub on loopback.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::pin::PinKind;
use rcgen::{CertificateSigningRequestParams, PublicKeyData};
use serde_json::{Value, json};

#[path = "../../../../tests/support/small_hub.rs"]
mod small_hub;

use self::small_hub::{Ca, ca, identity, serve, tls};
use super::*;

/// Answers from a script, and keeps the key of every request.
struct FakeHub {
    ca: Arc<Ca>,
    script: Mutex<Vec<HubReply>>,
    keys: Mutex<Vec<Vec<u8>>>,
}

#[derive(Clone, Copy)]
enum HubReply {
    Busy,
    Pending,
    Refused,
    Welcome,
}

async fn answer(State(hub): State<Arc<FakeHub>>, Json(ask): Json<Value>) -> (StatusCode, Json<Value>) {
    let csr = CertificateSigningRequestParams::from_pem(ask["csr_pem"].as_str().unwrap()).unwrap();
    hub.keys.lock().unwrap().push(csr.public_key.subject_public_key_info());
    let problem = |code: ErrorCode| (None, Some(json!({"code": code, "message": "as the script says"})));
    let is_request = ask.get("claimed_name").is_some();
    let says = hub.script.lock().unwrap().remove(0);
    let (status, (data, error)) = match says {
        HubReply::Busy => (503, problem(ErrorCode::Busy)),
        HubReply::Refused => (403, problem(ErrorCode::Refused)),
        HubReply::Pending => {
            let pin = Pin::of(PinKind::Spki, b"key");
            let request = uuid::Uuid::nil();
            (
                200,
                (
                    Some(json!({"pending": {"request": request, "fingerprint": pin, "retry_after_s": 0}})),
                    None,
                ),
            )
        }
        HubReply::Welcome => {
            let enrolled = Enrolled {
                certificate_pem: csr.signed_by(&*hub.ca).unwrap().pem(),
                ..identity("https://hub", &hub.ca, &hub.ca).enrolled
            };
            let data = serde_json::to_value(enrolled).unwrap();
            (200, (Some(if is_request { json!({"approved": data}) } else { data }), None))
        }
    };
    let id = uuid::Uuid::now_v7();
    let frame = json!({"schema_version": "holdfast.envelope/v1", "request_id": id, "correlation_id": id, "data": data,
        "error": error, "metadata": {"timestamp": "2026-11-21T12:00:00Z"}});
    (StatusCode::from_u16(status).unwrap(), Json(frame))
}

struct World {
    hub: Arc<FakeHub>,
    base: String,
    dir: tempfile::TempDir,
}

impl World {
    async fn new(script: &[HubReply]) -> Self {
        let ca = Arc::new(ca());
        let hub = Arc::new(FakeHub {
            ca: Arc::clone(&ca),
            script: Mutex::new(script.to_vec()),
            keys: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/enroll", post(answer))
            .route("/v1/enrollment-requests", post(answer))
            .with_state(Arc::clone(&hub));
        let base = serve(tls(&ca, &ca, None), router).await;
        Self { hub, base, dir: tempfile::tempdir().unwrap() }
    }

    /// As a command that is started anew.
    fn folder(&self) -> IdentityFolder {
        IdentityFolder::open(self.dir.path()).unwrap()
    }

    fn pin(&self) -> Pin {
        Pin::of(PinKind::Leaf, self.hub.ca.der())
    }

    fn invite(&self) -> Invite {
        let secret = Secret::new("0123456789abcdef".to_owned());
        Invite { hub: self.base.clone(), ca: self.pin(), secret, order: None }
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.hub.keys.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn an_invite_is_shown_again_with_the_same_key() {
    let world = World::new(&[HubReply::Busy, HubReply::Refused, HubReply::Welcome]).await;
    // Busy is waited out within one command; a refusal ends it, and leaves the key for the next.
    let error = redeem(&world.folder(), world.invite()).await.unwrap_err();
    assert!(matches!(error, EnrollError::Hub(HubError::Refused { status: 403, .. })), "{error:?}");
    assert_eq!(error.exit_code(), 69);
    assert!(world.folder().read().unwrap().is_none());
    let identity = redeem(&world.folder(), world.invite()).await.unwrap();
    assert_eq!(identity.hub, world.base);
    let keys = world.keys();
    assert_eq!((keys.len(), &keys[0], &keys[1]), (3, &keys[1], &keys[2]));
    assert!(world.folder().read().unwrap().is_some());
}

#[tokio::test]
async fn a_request_is_repeated_until_it_is_approved() {
    let world = World::new(&[HubReply::Pending, HubReply::Pending, HubReply::Welcome]).await;
    let claimed_name = "pve1".parse().unwrap();
    let identity =
        request_enrollment(&world.folder(), &world.base, world.pin(), claimed_name, None).await.unwrap();
    assert_eq!(identity.enrolled.host_name.as_str(), "box7");
    assert_eq!(world.keys().len(), 3);
}

#[tokio::test]
async fn a_request_that_is_refused_for_good_ends() {
    let world = World::new(&[HubReply::Pending, HubReply::Refused]).await;
    let claimed_name = "pve1".parse().unwrap();
    let error =
        request_enrollment(&world.folder(), &world.base, world.pin(), claimed_name, None).await.unwrap_err();
    assert!(matches!(error, EnrollError::Hub(HubError::Refused { .. })), "{error:?}");
}

/// Key and epoch are made before the request, and are those that the agent starts with.
#[test]
fn a_request_names_what_a_first_order_is_sealed_and_signed_for() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let first = sealing(dir.path(), &runtime).unwrap();
    assert_eq!(sealing(dir.path(), &runtime), Some(first.clone()), "asked again, it is the same");
    assert_eq!(first.recipient, host_key::open(dir.path()).unwrap().recipient().unwrap());
    let store = Store::open(dir.path(), RealClock::start().now()).unwrap();
    assert_eq!(runtime.block_on(store.trust_section()).unwrap().epoch, first.epoch);
    // An agent that runs holds its records: the request goes without.
    assert_eq!(sealing(dir.path(), &runtime), None);
}
