//! Tests of the API of scratch guests.

use holdfast_protocol::local::restore_test::{Reported, TestReport};

use super::*;
use crate::port::store::test_access::TestHolder;

pub const AT: [u8; 4] = [10, 254, 254, 2];

impl World {
    /// A claim for the scratch guest that a backup of `web` is restored into.
    async fn try_a_backup(&self) -> (OperationId, Secret) {
        self.provision(0).await;
        let operation = OperationId::new(Uuid::now_v7());
        let claim = Secret::new(format!("claim of {operation}"));
        let until = self.clock.now() + jiff::SignedDuration::from_secs(600);
        let test = TestHolder { operation, guest: WEB.parse().unwrap() };
        self.store.mint_test_claim(test, claim.hash(), until).await.unwrap();
        (operation, claim)
    }

    async fn ask_test_listener(
        &self,
        from: [u8; 4],
        (method, path): (&str, &str),
        token: &str,
        body: String,
    ) -> Answer {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
        Self::sent(&self.tests, from, request.body(Body::from(body)).unwrap()).await
    }

    async fn claim_at_test_listener(&self, from: [u8; 4], claim: &Secret, redeemer: &str) -> Answer {
        let body = json!({"claim": claim.expose(), "redeemer": redeemer}).to_string();
        self.ask_test_listener(from, ("POST", "/v1/claim"), "none", body).await
    }
}

fn report(why: &str) -> String {
    json!({"stacks": [{"stack": "shop", "health": {"is": "unhealthy", "why": why}, "took_ms": 5}]})
        .to_string()
}

#[tokio::test]
async fn a_scratch_guest_claims_says_hello_learns_its_mounts_and_reports_once() {
    let world = World::new().await;
    let (operation, claim) = world.try_a_backup().await;
    let bootstrap: Bootstrap = world.claim_at_test_listener(AT, &claim, "one").await.data();
    // The bootstrap does not say which guest it is a copy of, only which customer's.
    assert_eq!((bootstrap.guest.uuid(), bootstrap.customer.as_str()), (operation.uuid(), "acme"));
    let token = bootstrap.token.expose();
    let hello = json!({"version": "0.1.0", "health": "well", "boot_id": "b-1"}).to_string();
    let answer = world.ask_test_listener(AT, ("POST", "/v1/hello"), token, hello).await;
    assert_eq!(answer.data::<HelloAnswer>().again_in_s, 60);
    let storage: StorageView =
        world.ask_test_listener(AT, ("GET", "/v1/storage"), token, String::new()).await.data();
    assert_eq!(storage.volumes[0].mount.as_str(), "/data");
    for words in ["first", "second"] {
        let answer =
            world.ask_test_listener(AT, ("POST", "/v1/restore-tests/report"), token, report(words)).await;
        answer.data::<Reported>();
    }
    let said = world.store.test_speech(operation).await.unwrap();
    assert_eq!(said.hello.as_deref(), Some("0.1.0"));
    assert_eq!(said.report, Some(serde_json::from_str::<TestReport>(&report("first")).unwrap()));
    let guest = world.store.guest(WEB.parse().unwrap()).await.unwrap().unwrap();
    assert!(guest.hello.is_none(), "its guest said nothing");
}

/// A restored guest has its guest's token in its files: this listener does not know it, and the guest continues
/// undisturbed.
#[tokio::test]
async fn each_listener_knows_its_own_tokens_and_claims_alone() {
    let world = World::new().await;
    let of_guest = world.token(0, WEB_AT).await;
    world.get(WEB_AT, "/v1/self", Some(&of_guest)).await.data::<SelfView>();
    let (_, claim) = world.provision(1).await;
    let (operation, test_claim) = {
        let operation = OperationId::new(Uuid::now_v7());
        let test_claim = Secret::new("claim of a test".to_owned());
        let until = world.clock.now() + jiff::SignedDuration::from_secs(600);
        let test = TestHolder { operation, guest: WEB.parse().unwrap() };
        world.store.mint_test_claim(test, test_claim.hash(), until).await.unwrap();
        (operation, test_claim)
    };
    for path in ["/v1/storage", "/v1/self"] {
        let answer = world.ask_test_listener(AT, ("GET", path), &of_guest, String::new()).await;
        let wanted = if path == "/v1/self" { ErrorCode::NotFound } else { ErrorCode::Unauthenticated };
        assert_eq!(answer.code(), Some(wanted), "{path}");
    }
    assert_eq!(world.claim_at_test_listener(AT, &claim, "one").await.code(), Some(ErrorCode::ClaimRefused));
    assert_eq!(world.claim(DB_AT, &test_claim, None).await.code(), Some(ErrorCode::ClaimRefused));
    let bootstrap: Bootstrap = world.claim_at_test_listener(AT, &test_claim, "one").await.data();
    for from in [WEB_AT, AT] {
        let answer = world.get(from, "/v1/self", Some(bootstrap.token.expose())).await;
        assert_eq!(answer.code(), Some(ErrorCode::Unauthenticated));
    }
    // Neither was frozen by any of it.
    world.get(WEB_AT, "/v1/self", Some(&of_guest)).await.data::<SelfView>();
    let request =
        Request::post("/v1/restore-tests/report").header("authorization", format!("Bearer {of_guest}"));
    let answer = world.send(WEB_AT, request.body(Body::from(report("x"))).unwrap()).await;
    assert_eq!(answer.code(), Some(ErrorCode::Forbidden));
    assert_eq!(world.store.test_speech(operation).await.unwrap().report, None);
}

#[tokio::test]
async fn a_tests_claim_serves_once_from_one_address_and_ends_with_its_test() {
    let world = World::new().await;
    let (operation, claim) = world.try_a_backup().await;
    let refused = Some(ErrorCode::ClaimRefused);
    assert_eq!(world.claim_at_test_listener(WEB_AT, &claim, "one").await.code(), refused, "from elsewhere");
    let first: Bootstrap = world.claim_at_test_listener(AT, &claim, "one").await.data();
    assert_eq!(world.claim_at_test_listener(AT, &claim, "two").await.code(), refused, "a second redeemer");
    // The answer was lost.
    let again: Bootstrap = world.claim_at_test_listener(AT, &claim, "one").await.data();
    let storage = |token: String| async {
        let token = token;
        world.ask_test_listener(AT, ("GET", "/v1/storage"), &token, String::new()).await.code()
    };
    let unknown = Some(ErrorCode::Unauthenticated);
    assert_eq!(storage(first.token.expose().to_owned()).await, unknown, "the unseen one");
    assert_eq!(storage(again.token.expose().to_owned()).await, None);
    let elsewhere =
        world.ask_test_listener(DB_AT, ("GET", "/v1/storage"), again.token.expose(), String::new()).await;
    assert_eq!(elsewhere.code(), unknown);
    world.store.forget_test_access(operation).await.unwrap();
    assert_eq!(storage(again.token.expose().to_owned()).await, unknown, "the test is over");
    assert_eq!(world.claim_at_test_listener(AT, &claim, "one").await.code(), refused);
}

#[tokio::test]
async fn a_report_that_is_none_changes_nothing() {
    let world = World::new().await;
    let (operation, claim) = world.try_a_backup().await;
    let bootstrap: Bootstrap = world.claim_at_test_listener(AT, &claim, "one").await.data();
    let many: Vec<_> =
        (0..33).map(|n| json!({"stack": format!("s{n}"), "health": {"is": "runs"}, "took_ms": 1})).collect();
    for (body, code) in [
        (json!({"stacks": many}), ErrorCode::Range),
        (json!({"stacks": [], "reached": [1, 2, 3, 4, 5, 6, 7, 8, 9]}), ErrorCode::Range),
        (json!({"stacks": [], "guest": WEB}), ErrorCode::NotYours),
        (json!({"stacks": [], "verdict": "proved"}), ErrorCode::UnknownField),
        (json!({}), ErrorCode::Missing),
    ] {
        let token = bootstrap.token.expose();
        let answer =
            world.ask_test_listener(AT, ("POST", "/v1/restore-tests/report"), token, body.to_string()).await;
        assert_eq!(answer.code(), Some(code), "{body}");
    }
    assert_eq!(world.store.test_speech(operation).await.unwrap().report, None);
}
