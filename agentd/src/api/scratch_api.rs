//! The API of scratch guests, on a listener of its own.
//!
//! In: calls from the one address of the bridge on which backups are tried. Out: a token for the test under way, and
//! what its guest reports, recorded for that test. A restored guest still holds the token of the guest it is a copy of.
//! On this listener that token is unknown, so the copy neither acts for its guest nor freezes it. Deliberately absent:
//! every call that requests work.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::routing::{get, post};
use holdfast_protocol::bootstrap::{Bootstrap, BootstrapSchema};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::restore_test::{Reported, TestReport};
use holdfast_protocol::local::window::CANARIES_MAX;
use holdfast_protocol::local::{ClaimRequest, HelloAnswer, StorageView};

use super::auth::bearer;
use super::calls::{Call, healthz, openapi};
use super::claim::fresh_token;
use super::envelope::Data;
use super::error::ApiError;
use super::guest::{mounts, read_hello};
use super::{Local, Peer, body};
use crate::port::store::access::Redemption;
use crate::port::store::test_access::TestHolder;

/// A test takes minutes: its controller says hello once, and once more when it takes longer.
const HELLO_AGAIN_S: u32 = 60;
/// As many as a guest may have.
const STACKS_MAX: usize = 32;
/// The number of addresses that a controller tries, and some more.
const REACHED_MAX: usize = 8;

/// Every call that this listener serves.
#[must_use]
pub fn table() -> Vec<Call> {
    vec![
        ("/healthz", get(healthz)),
        ("/v1/openapi.json", get(openapi)),
        ("/v1/claim", post(claim)),
        ("/v1/hello", post(hello)),
        ("/v1/storage", get(storage)),
        ("/v1/restore-tests/report", post(report)),
    ]
}

/// Proof that the scratch guest of a test under way calls.
#[derive(Debug)]
pub struct TestScope(TestHolder);

impl FromRequestParts<Arc<Local>> for TestScope {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, local: &Arc<Local>) -> Result<Self, ApiError> {
        let peer = *parts.extensions.get::<Peer>().ok_or(ApiError::Unauthenticated)?;
        let token = bearer(&parts.headers).ok_or(ApiError::Unauthenticated)?;
        let holder = local.store.test_holder(token).await?.ok_or(ApiError::Unauthenticated)?;
        if !local.is_of_a_test(peer.from) {
            tracing::error!(test = %holder.operation, from = %peer.from, "a scratch guest's token was shown from elsewhere");
            return Err(ApiError::Unauthenticated);
        }
        if parts.uri.query().is_some() {
            return Err(ApiError::NoQuery);
        }
        Ok(Self(holder))
    }
}

impl TestScope {
    /// Its uid in its own bootstrap: that of its test, and never that of the guest it is a copy of.
    fn uid(&self) -> GuestUid {
        own_uid(&self.0)
    }
}

fn own_uid(holder: &TestHolder) -> GuestUid {
    GuestUid::new(holder.operation.uuid())
}

async fn claim(
    State(local): State<Arc<Local>>,
    Extension(peer): Extension<Peer>,
    body: Body,
) -> Result<Data<Bootstrap>, ApiError> {
    let ask: ClaimRequest = body::read("the claim", body).await?;
    if !local.is_of_a_test(peer.from) {
        return Err(ApiError::ClaimRefused);
    }
    let token = fresh_token()?;
    let attempt = Redemption {
        claim: ask.claim.hash(),
        redeemer: ask.redeemer.map(|proof| proof.hash()),
        token: token.hash(),
    };
    let granted = local.store.redeem_test_claim(attempt, local.clock.now()).await?;
    let granted = granted.ok_or(ApiError::ClaimRefused)?;
    Ok(Data(Bootstrap {
        schema: BootstrapSchema::V1,
        customer: granted.customer,
        guest: GuestUid::new(granted.operation.uuid()),
        hub: local.settings.hub.clone(),
        endpoint: format!("https://{}", peer.to),
        pin: local.settings.pin,
        token,
        token_generation: granted.token_generation,
    }))
}

async fn hello(
    State(local): State<Arc<Local>>,
    scope: TestScope,
    body: Body,
) -> Result<Data<HelloAnswer>, ApiError> {
    let hello = read_hello(body).await?;
    local.store.record_test_hello(scope.0.operation, hello.version, local.clock.now()).await?;
    Ok(Data(HelloAnswer { again_in_s: HELLO_AGAIN_S }))
}

/// The mounts of the guest it is a copy of.
async fn storage(State(local): State<Arc<Local>>, scope: TestScope) -> Result<Data<StorageView>, ApiError> {
    let guest = local.wanted.guest(scope.0.guest).await?.ok_or(ApiError::Unmanaged)?;
    // No request names volumes attached to the copy, so they are not looked at.
    Ok(Data(mounts(guest, None)))
}

async fn report(
    State(local): State<Arc<Local>>,
    scope: TestScope,
    body: Body,
) -> Result<Data<Reported>, ApiError> {
    let report: TestReport = body::read("the report", body).await?;
    if report.guest.is_some_and(|guest| guest != scope.uid()) {
        return Err(ApiError::NotYours);
    }
    for (what, rule, count, most) in [
        ("stacks", "at most 32", report.stacks.len(), STACKS_MAX),
        ("canaries", "at most 17", report.canaries.len(), CANARIES_MAX),
        ("reached", "at most 8", report.reached.len(), REACHED_MAX),
    ] {
        if count > most {
            return Err(ApiError::Part { what, rule });
        }
    }
    local.store.record_test_report(scope.0.operation, report, local.clock.now()).await?;
    Ok(Data(Reported {}))
}
