//! Forwarding events: each once it is durable, in order, signed, again until it is taken.
//!
//! The queue is the table of events and a mark in it, so a restart loses nothing and a receiver that is down costs no
//! memory. An event may arrive twice (its taking may be lost); the number in `x-holdfast-event` tells. The signature is
//! `x-holdfast-signature: sha256=<hex>` of HMAC-SHA256 over the body.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::envelope::CORRELATION_ID_HEADER;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::strict::chain;
use reqwest::header::CONTENT_TYPE;
use ring::hmac;
use tokio::sync::watch;

use super::{Rest, rest};
use crate::clock::Clock;
use crate::domain::retry::{AfterFailure, after};
use crate::store::{Outgoing, Store, StoreError};

/// A receiver that takes longer is down.
const DELIVERY_WAIT: Duration = Duration::from_secs(10);

/// How often the queue is looked at when nobody says that something is in it (another process may have put it there).
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The number of the event.
pub const EVENT_HEADER: &str = "x-holdfast-event";
/// The signature of the body.
pub const SIGNATURE_HEADER: &str = "x-holdfast-signature";

/// Where events are forwarded to.
#[derive(Debug)]
pub struct WebhookSettings {
    /// The receiver.
    pub url: reqwest::Url,
    /// What its signatures are made with.
    pub secret: Secret,
}

/// Why there is no forwarding.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The system has no CA certificates.
    #[error("the system has no CA certificates to check the webhook's receiver by: install ca-certificates")]
    NoRoots,
    /// The TLS library refused.
    #[error("no TLS settings can be made for the webhook")]
    Tls(#[source] rustls::Error),
    /// The HTTP client cannot be made.
    #[error("no HTTP client can be made for the webhook")]
    Client(#[source] reqwest::Error),
}

/// What forwards.
pub struct Forwarder {
    client: reqwest::Client,
    settings: WebhookSettings,
    key: hmac::Key,
    store: Store,
    clock: Arc<dyn Clock>,
}

impl Forwarder {
    /// Makes one.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub fn new(
        settings: WebhookSettings,
        provider: Arc<rustls::crypto::CryptoProvider>,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WebhookError> {
        let mut roots = rustls::RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 && settings.url.scheme() == "https" {
            return Err(WebhookError::NoRoots);
        }
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::DEFAULT_VERSIONS)
            .map_err(WebhookError::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.resumption = rustls::client::Resumption::disabled();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(DELIVERY_WAIT)
            .build()
            .map_err(WebhookError::Client)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, settings.secret.expose().as_bytes());
        Ok(Self { client, settings, key, store, clock })
    }

    /// Forwards until told to stop.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut written = self.store.events_written();
        let mut failures = 0;
        loop {
            written.mark_unchanged();
            let pause = match self.forward_next(&mut failures).await {
                Ok(Step::Next) => continue,
                Ok(Step::Pause(pause)) => pause,
                Ok(Step::Empty) => {
                    tokio::select! {
                        // An error means that the store is closed; the stop follows.
                        _ = written.changed() => continue,
                        rested = rest(&mut stop, LOOK_EVERY) => match rested {
                            Rest::Over => continue,
                            Rest::Stop => return,
                        },
                    }
                }
                Err(error) => {
                    tracing::error!(action = "webhook", result = "failed", error = %chain(&error));
                    LOOK_EVERY
                }
            };
            if rest(&mut stop, pause).await == Rest::Stop {
                return;
            }
        }
    }

    async fn forward_next(&self, failures: &mut u32) -> Result<Step, StoreError> {
        let Some(outgoing) = self.store.next_outgoing().await? else { return Ok(Step::Empty) };
        let (number, at) = (outgoing.event.number, outgoing.event.at);
        match self.deliver(&outgoing).await {
            Ok(()) => {}
            Err(why) => {
                *failures = failures.saturating_add(1);
                tracing::warn!(action = "webhook", result = "failed", event = number, failures, why);
                match after(*failures, at, self.clock.now()) {
                    AfterFailure::Pause(pause) => return Ok(Step::Pause(pause)),
                    AfterFailure::GiveUp => {
                        tracing::error!(action = "webhook", result = "given_up", event = number);
                    }
                }
            }
        }
        *failures = 0;
        self.store.passed_on(number).await?;
        Ok(Step::Next)
    }

    async fn deliver(&self, outgoing: &Outgoing) -> Result<(), String> {
        let body = serde_json::to_vec(&outgoing.event).map_err(|error| chain(&error))?;
        let signature = hex::encode(hmac::sign(&self.key, &body));
        let sent = self
            .client
            .post(self.settings.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(EVENT_HEADER, outgoing.event.number)
            .header(CORRELATION_ID_HEADER, outgoing.correlation.to_string())
            .header(SIGNATURE_HEADER, format!("sha256={signature}"))
            .body(body)
            .send()
            .await;
        // The URL may hold a secret of the receiver's; it stays out of the log.
        let answer = sent.map_err(|error| chain(&error.without_url()))?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("the receiver answered {}", answer.status()))
        }
    }
}

enum Step {
    Next,
    Pause(Duration),
    Empty,
}
