//! Releases that operators offer to single hosts.

use std::convert::Infallible;

use async_trait::async_trait;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::{HostOffer, OfferedImage, ReleaseOffer, WithdrawnOffer};

use super::WriteError;
use super::idempotency::By;
use super::releases::AskingHost;
use crate::domain::host::HostRef;
use crate::domain::identity::IdentityError;
use crate::domain::release_offer::OfferError;

/// Releases that operators offer to single hosts.
#[async_trait]
pub trait ReleaseOffers: Send + Sync {
    /// Offers a release that is kept, in the place of what was offered before. `None` when there is no such host.
    ///
    /// # Errors
    /// [`OfferError::Unknown`], [`OfferError::Revoked`].
    async fn offer_release(
        &self,
        by: By,
        host: HostRef,
        version: VersionNumber,
    ) -> Result<Option<HostOffer>, WriteError<OfferError>>;

    /// Takes an offer back; where there is none nothing changes. `None` when there is no such host.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn withdraw_release_offer(
        &self,
        by: By,
        host: HostRef,
    ) -> Result<Option<WithdrawnOffer>, WriteError<Infallible>>;

    /// What a host that asks is offered, and whether what it has on trial was stopped.
    ///
    /// # Errors
    /// [`IdentityError`].
    async fn release_offered_to(&self, host: AskingHost) -> Result<ReleaseOffer, WriteError<IdentityError>>;

    /// The image that a rollout brings to a host that asks. A host that reports it has it: it is offered it no more.
    ///
    /// # Errors
    /// [`IdentityError`].
    async fn image_offered_to(
        &self,
        host: AskingHost,
    ) -> Result<Option<OfferedImage>, WriteError<IdentityError>>;
}
