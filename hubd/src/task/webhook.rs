//! Forwarding of events to the webhook, in order.
//!
//! The queue is the table of events and a mark in it, so a restart loses nothing and a receiver that is down costs no
//! memory. An event may arrive twice (the receiver's answer may be lost); the number in `x-holdfast-event` shows it.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use jiff::SignedDuration;
use tokio::sync::watch;

use super::http_post::{Post, WebhookError, WebhookSettings};
use super::{Rest, rest};
use crate::clock::Clock;
use crate::domain::retry::{AfterFailure, after};
use crate::store::{Outgoing, SharedStore, StoreError};

/// Events older than this are dropped, so that newer ones do not wait behind them for ever.
const TRIED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// How often the queue is polled without a notification (another process may have written to it).
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The number of the event.
pub const EVENT_HEADER: &str = "x-holdfast-event";
pub struct Forwarder {
    post: Post,
    settings: WebhookSettings,
    store: SharedStore,
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
        store: SharedStore,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WebhookError> {
        let post = Post::new([&settings], provider)?;
        Ok(Self { post, settings, store, clock })
    }

    /// Forwards until `stop`.
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
                match after(*failures, at, self.clock.now(), TRIED_FOR) {
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
        let number = (EVENT_HEADER, outgoing.event.number);
        self.post.send(&self.settings, number, outgoing.correlation, body).await
    }
}

enum Step {
    Next,
    Pause(Duration),
    Empty,
}
