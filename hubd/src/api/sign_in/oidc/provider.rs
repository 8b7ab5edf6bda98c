//! The provider over HTTP: its documents, and the exchange of codes.
//!
//! In: a code. Out: who signed in. Its discovery document and its keys are kept for an hour. Keys are fetched again when a
//! token names one that is not there, at most once a minute; after a failure nothing is asked for a few seconds.

use std::sync::Arc;

use holdfast_protocol::secret::Secret;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use url::Url;

use super::attempt::Attempt;
use super::fetch::{self, FetchError, ProviderClientError};
use crate::domain::oidc::claims::{self, Claims, ClaimsError, Expected};
use crate::domain::oidc::keys::{KeySet, KeySetError};
use crate::domain::oidc::metadata::{ClientProof, Metadata, MetadataError};
use crate::domain::oidc::provider::ProviderSettings;
use crate::domain::oidc::signature::{self, SignatureError};

/// How long documents of the provider are believed.
const DOCUMENTS_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// How often keys are fetched because a token names an unknown one.
const KEYS_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// For so long after a failure nobody asks again.
const FAILURE_REST: SignedDuration = SignedDuration::from_secs(5);

/// Sign-ins that wait for the provider at once.
const AT_ONCE: usize = 16;

/// Codes of providers have some hundred characters.
pub(super) const CODE_MAX: usize = 4096;

/// Why the provider vouches for nobody.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error(transparent)]
    Keys(#[from] KeySetError),
    #[error("the provider did not answer a moment ago, and was not asked again: try again in some seconds")]
    Rests,
    #[error("too many sign-ins wait for the provider: try again a little later")]
    Full,
    /// It was used, has ended, or is of another sign-in.
    #[error("the provider does not take the code of this sign-in ({0}): begin again")]
    Code(FetchError),
    #[error("the provider's answer to the code is not in the form of OpenID Connect")]
    Answer,
    #[error(transparent)]
    Signature(#[from] SignatureError),
    #[error(transparent)]
    Claims(#[from] ClaimsError),
}

/// A provider, with what is known of it.
pub struct Provider {
    pub(in crate::api::sign_in) settings: ProviderSettings,
    http: reqwest::Client,
    documents: Mutex<Documents>,
    turns: Semaphore,
}

#[derive(Default)]
struct Documents {
    metadata: Option<(Timestamp, Arc<Metadata>)>,
    keys: Option<(Timestamp, Arc<KeySet>)>,
    failed_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: Secret,
    access_token: Option<Secret>,
}

impl Provider {
    /// # Errors
    /// [`ProviderClientError`].
    pub fn new(
        settings: ProviderSettings,
        crypto: Arc<rustls::crypto::CryptoProvider>,
    ) -> Result<Self, ProviderClientError> {
        let http = fetch::client(&settings, crypto)?;
        Ok(Self { settings, http, documents: Mutex::default(), turns: Semaphore::new(AT_ONCE) })
    }

    /// A place among the sign-ins that wait for the provider.
    pub(super) fn turn(&self) -> Result<SemaphorePermit<'_>, ProviderError> {
        self.turns.try_acquire().map_err(|_| ProviderError::Full)
    }

    /// Where a browser is sent to sign in.
    pub(super) async fn entrance(
        &self,
        attempt: &Attempt,
        redirect: &str,
        now: Timestamp,
    ) -> Result<Url, ProviderError> {
        let mut url = self.metadata(now).await?.authorization.clone();
        let scopes = std::iter::once("openid").chain(self.settings.scopes.iter().map(String::as_str));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", redirect)
            .append_pair("scope", &scopes.collect::<Vec<_>>().join(" "))
            .append_pair("state", &attempt.state)
            .append_pair("nonce", &attempt.nonce)
            .append_pair("code_challenge", &attempt.challenge())
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Exchanges a code for who signed in.
    pub(super) async fn exchange(
        &self,
        code: &str,
        attempt: &Attempt,
        redirect: &str,
        now: Timestamp,
    ) -> Result<Claims, ProviderError> {
        let metadata = self.metadata(now).await?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", attempt.verifier.as_str()),
        ];
        let mut request = self.http.post(metadata.token.clone());
        let id = self.settings.client_id.as_str();
        match (&self.settings.client_secret, metadata.client_proof) {
            (Some(secret), ClientProof::Basic) => {
                request = request.basic_auth(encoded(id), Some(encoded(secret.expose())));
            }
            (Some(secret), ClientProof::Post) => {
                form.extend([("client_id", id), ("client_secret", secret.expose())]);
            }
            (None, ClientProof::Basic | ClientProof::Post) => form.push(("client_id", id)),
        }
        let answer = match fetch::bytes(request.form(&form)).await {
            Ok(answer) => answer,
            Err(error @ FetchError::Status { status: 400..=499, .. }) => {
                return Err(ProviderError::Code(error));
            }
            Err(error) => return Err(error.into()),
        };
        let answer: TokenAnswer = serde_json::from_slice(&answer).map_err(|_| ProviderError::Answer)?;
        let payload = self.payload(answer.id_token.expose(), now).await?;
        let expected = Expected { provider: &self.settings, nonce: &attempt.nonce, now };
        let claims = claims::check(&payload, expected)?;
        match (&metadata.userinfo, answer.access_token) {
            (Some(url), Some(token)) if !claims.has_all(&self.settings) => {
                let more = fetch::bytes(self.http.get(url.clone()).bearer_auth(token.expose())).await?;
                Ok(claims.with_userinfo(&more)?)
            }
            (Some(_) | None, _) => Ok(claims),
        }
    }

    /// The payload of a token, with keys fetched again where it names another one.
    async fn payload(&self, token: &str, now: Timestamp) -> Result<Vec<u8>, ProviderError> {
        let (fetched_at, keys) = self.keys(DOCUMENTS_LIFE, now).await?;
        match signature::payload(token, &keys) {
            Err(SignatureError::UnknownKey) if now.duration_since(fetched_at) >= KEYS_AGAIN => {
                let (_, keys) = self.keys(KEYS_AGAIN, now).await?;
                Ok(signature::payload(token, &keys)?)
            }
            outcome => Ok(outcome?),
        }
    }

    async fn metadata(&self, now: Timestamp) -> Result<Arc<Metadata>, ProviderError> {
        let mut documents = self.documents.lock().await;
        self.metadata_in(&mut documents, now).await
    }

    async fn metadata_in(
        &self,
        documents: &mut Documents,
        now: Timestamp,
    ) -> Result<Arc<Metadata>, ProviderError> {
        if let Some((at, metadata)) = &documents.metadata
            && is_within(*at, now, DOCUMENTS_LIFE)
        {
            return Ok(Arc::clone(metadata));
        }
        documents.check_rest(now)?;
        let fetched = fetch::bytes(self.http.get(self.settings.discovery_url())).await;
        let bytes = fetched.inspect_err(|_| documents.failed_at = Some(now))?;
        let parsed = Metadata::parse(&bytes, &self.settings.issuer);
        let metadata = Arc::new(parsed.inspect_err(|_| documents.failed_at = Some(now))?);
        documents.metadata = Some((now, Arc::clone(&metadata)));
        Ok(metadata)
    }

    /// Keys of at most this age, and when they were fetched. Of several that wait, one fetches.
    async fn keys(
        &self,
        age_max: SignedDuration,
        now: Timestamp,
    ) -> Result<(Timestamp, Arc<KeySet>), ProviderError> {
        let mut documents = self.documents.lock().await;
        if let Some((at, keys)) = &documents.keys
            && is_within(*at, now, age_max)
        {
            return Ok((*at, Arc::clone(keys)));
        }
        let metadata = self.metadata_in(&mut documents, now).await?;
        documents.check_rest(now)?;
        let fetched = fetch::bytes(self.http.get(metadata.keys.clone())).await;
        let bytes = fetched.inspect_err(|_| documents.failed_at = Some(now))?;
        let parsed = KeySet::parse(&bytes);
        let keys = Arc::new(parsed.inspect_err(|_| documents.failed_at = Some(now))?);
        documents.keys = Some((now, Arc::clone(&keys)));
        Ok((now, keys))
    }

    /// What the answer of the browser says of the issuer must fit (RFC 9207).
    pub(super) async fn is_own_answer(
        &self,
        issuer: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, ProviderError> {
        let names_issuer = self.metadata(now).await?.names_issuer;
        Ok(match issuer {
            Some(issuer) => issuer == self.settings.issuer,
            None => !names_issuer,
        })
    }
}

impl Documents {
    fn check_rest(&self, now: Timestamp) -> Result<(), ProviderError> {
        match self.failed_at {
            Some(at) if is_within(at, now, FAILURE_REST) => Err(ProviderError::Rests),
            Some(_) | None => Ok(()),
        }
    }
}

/// A clock that was set back makes nothing last longer.
fn is_within(at: Timestamp, now: Timestamp, life: SignedDuration) -> bool {
    at <= now && now.duration_since(at) < life
}

/// As RFC 6749 wants names and secrets in the header.
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
