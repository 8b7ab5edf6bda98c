//! `POST /v1/claim`: the bootstrap token exchanged for a token.
//!
//! Once, within ten minutes, only from the guest's own address. An attempt from elsewhere uses nothing up and learns
//! nothing. A second redeemer freezes both, since it cannot be known which of them is the guest.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_protocol::bootstrap::{Bootstrap, BootstrapSchema};
use holdfast_protocol::local::ClaimRequest;
use holdfast_protocol::secret::Secret;
use zeroize::Zeroizing;

use super::envelope::Data;
use super::error::ApiError;
use super::{Local, Peer, body};
use crate::port::store::access::{Redeemed, Redemption};

pub(super) async fn claim(
    State(local): State<Arc<Local>>,
    Extension(peer): Extension<Peer>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Data<Bootstrap>, ApiError> {
    if query.is_some() {
        return Err(ApiError::NoQuery);
    }
    let ask: ClaimRequest = body::read("the claim", body).await?;
    let hash = ask.claim.hash();
    let guest = local.store.guest_by_claim(hash).await?.ok_or(ApiError::ClaimRefused)?;
    if local.address_of(guest).await? != Some(peer.from.to_canonical()) {
        tracing::error!(%guest, from = %peer.from, "a guest's claim was shown from another address: who read it?");
        return Err(ApiError::ClaimRefused);
    }
    let token = fresh_token()?;
    let attempt =
        Redemption { claim: hash, redeemer: ask.redeemer.map(|proof| proof.hash()), token: token.hash() };
    match local.store.redeem_claim(attempt, local.clock.now()).await? {
        Redeemed::Granted { guest, customer, token_generation } => Ok(Data(Bootstrap {
            schema: BootstrapSchema::V1,
            customer,
            guest,
            hub: local.settings.hub.clone(),
            endpoint: format!("https://{}", peer.to),
            pin: local.settings.pin,
            token,
            token_generation,
        })),
        Redeemed::Refused => Err(ApiError::ClaimRefused),
        Redeemed::Twice { guest } => {
            tracing::error!(%guest, "a claim was redeemed twice: the guest is frozen until an operator looks");
            Err(ApiError::ClaimTwice)
        }
    }
}

/// 256 random bits.
pub(super) fn fresh_token() -> Result<Secret, ApiError> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    getrandom::fill(bytes.as_mut_slice()).map_err(ApiError::Randomness)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes.as_slice())))
}
