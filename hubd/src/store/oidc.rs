//! Links of operators with persons of a provider, and sign-ins by them.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::oidc::{ProviderLink, ProviderPerson};

use super::idempotency::By;
use super::{NewSession, SessionRecord, SignInChange, StoreError, WriteError};
use crate::domain::oidc::provider::GroupOutcome;

/// Who signed in at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderIdentity {
    pub issuer: String,
    pub subject: String,
    /// The claim that the settings name, where the provider vouches for it.
    pub person: Option<String>,
}

/// A sign-in that the provider vouches for.
#[derive(Clone, Debug)]
pub struct NewOidcSignIn {
    pub identity: ProviderIdentity,
    pub groups: GroupOutcome,
    /// What the provider is called.
    pub provider: String,
    /// Without its operator, whom the link names.
    pub session: NewSession,
    pub correlation: CorrelationId,
}

/// A link to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProviderLink {
    pub operator: OperatorName,
    pub issuer: String,
    pub person: ProviderPerson,
}

/// Why somebody is not signed in by the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidcSignInError {
    #[error(
        "no operator of this hub is linked with you: ask an admin for `hubd operator link-oidc NAME --subject '{subject}'`"
    )]
    Unlinked { subject: String },
    #[error("{name} was removed from this hub: ask an admin of it")]
    Removed { name: OperatorName },
    #[error("{name} is in no group any more that may use this hub: ask who keeps the groups of the provider")]
    NoGroup { name: OperatorName },
    #[error(
        "your group may use this hub, and the provider gives you no name that an operator can have: ask an admin to set oidc.name_claim"
    )]
    Unnamed,
    #[error(
        "{name} is an operator of this hub already, and not linked with you: ask an admin for `hubd operator link-oidc {name} --subject '{subject}'`"
    )]
    Taken { name: OperatorName, subject: String },
}

/// Why no link is made or ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderLinkError {
    #[error("there is no operator {name}: `holdfast operator list` shows who there is")]
    Unknown { name: OperatorName },
    #[error("{name} has no link with the provider, and nothing was changed")]
    NoLink { name: OperatorName },
    #[error(
        "{name} is linked with this person of the provider, and nothing was changed: end that link first (DELETE /v1/operators/{name}/oidc)"
    )]
    Taken { name: OperatorName },
    #[error(
        "{name} was made by a group of the provider, which says what they may do, and nothing was changed"
    )]
    OfGroup { name: OperatorName },
}

/// Sign-ins by a provider.
#[async_trait]
pub trait ProviderLinks: Send + Sync {
    /// Finds or makes the operator of a person, and opens a session.
    ///
    /// # Errors
    /// [`OidcSignInError`].
    async fn sign_in_by_provider(
        &self,
        new: NewOidcSignIn,
    ) -> Result<SessionRecord, WriteError<OidcSignInError>>;

    /// Links an operator: an admin does. A link before is replaced.
    ///
    /// # Errors
    /// [`ProviderLinkError`].
    async fn link_provider(
        &self,
        by: By,
        new: NewProviderLink,
    ) -> Result<ProviderLink, WriteError<ProviderLinkError>>;

    /// The same by the machine's own administrator.
    ///
    /// # Errors
    /// [`ProviderLinkError`].
    async fn add_provider_link(
        &self,
        by: SignInChange,
        new: NewProviderLink,
    ) -> Result<ProviderLink, WriteError<ProviderLinkError>>;

    /// Ends a link, and the sessions of its operator.
    ///
    /// # Errors
    /// [`ProviderLinkError`].
    async fn unlink_provider(
        &self,
        by: By,
        name: OperatorName,
    ) -> Result<ProviderLink, WriteError<ProviderLinkError>>;

    /// The link of an operator who was not removed.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn provider_link(&self, name: OperatorName) -> Result<Option<ProviderLink>, StoreError>;
}
