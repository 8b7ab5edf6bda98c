//! Forwarding of events to the webhook, in order.
//!
//! The queue is the table of events and a mark in it, so a restart loses nothing and a receiver that is down costs no
//! memory. An event may arrive twice (the receiver's answer may be lost, or the hub that sent it may have been replaced);
//! the number in `x-holdfast-event` shows it, and so does `idempotency-key`.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::json::chain;
use jiff::SignedDuration;
use tokio::sync::watch;

use super::http_post::{Post, WebhookError, WebhookSettings};
use super::{Rest, log_failure, rest};
use crate::clock::Clock;
use crate::domain::retry::{AfterFailure, after};
use crate::store::duty::Webhook;
use crate::store::{Lease, Outgoing, SharedStore, StoreError, Term};

/// Events older than this are dropped, so that newer ones do not wait behind them for ever.
const TRIED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// How often the queue is polled without a notification (another process may have written to it).
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How long to wait after the database failed.
const AFTER_ERROR: Duration = Duration::from_secs(5);

/// The number of the event.
pub const EVENT_HEADER: &str = "x-holdfast-event";
pub struct Forwarder {
    post: Post,
    settings: WebhookSettings,
    store: SharedStore,
    lease: Lease<Webhook>,
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
        (store, lease): (SharedStore, Lease<Webhook>),
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WebhookError> {
        let post = Post::new([&settings], provider)?;
        Ok(Self { post, settings, store, lease, clock })
    }

    /// Forwards until `stop`, where this hub has the duty.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let term = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                term = self.lease.taken() => term,
            };
            if self.serve(&term, &mut stop).await == Rest::Stop {
                return;
            }
        }
    }

    /// Forwards until the end of a term, or `stop`.
    async fn serve(&self, term: &Term<Webhook>, stop: &mut watch::Receiver<bool>) -> Rest {
        let mut written = self.store.events_written();
        let mut failures = 0;
        loop {
            written.mark_unchanged();
            // What is being sent when the term ends is cut off: another hub sends it again.
            let forwarded = tokio::select! {
                () = term.over() => return Rest::Over,
                forwarded = self.forward_next(term, &mut failures) => forwarded,
            };
            let pause = match forwarded {
                Ok(Step::Next) => continue,
                Ok(Step::Pause(pause)) => pause,
                Ok(Step::Empty) => {
                    tokio::select! {
                        // An error means that the store is closed; the stop follows.
                        _ = written.changed() => continue,
                        () = term.over() => return Rest::Over,
                        rested = rest(stop, LOOK_EVERY) => match rested {
                            Rest::Over => continue,
                            Rest::Stop => return Rest::Stop,
                        },
                    }
                }
                Err(error) => {
                    log_failure("webhook", &error);
                    AFTER_ERROR
                }
            };
            if rest(stop, pause).await == Rest::Stop {
                return Rest::Stop;
            }
        }
    }

    async fn forward_next(&self, term: &Term<Webhook>, failures: &mut u32) -> Result<Step, StoreError> {
        let Some(outgoing) = self.store.next_outgoing().await? else { return Ok(Step::Empty) };
        let (number, at) = (outgoing.event.number, outgoing.event.at);
        if !term.is_trusted() {
            return Ok(Step::Empty);
        }
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
        self.store.passed_on(term, number).await?;
        Ok(Step::Next)
    }

    async fn deliver(&self, outgoing: &Outgoing) -> Result<(), String> {
        let body = serde_json::to_vec(&outgoing.event).map_err(|error| chain(&error))?;
        let number = (EVENT_HEADER, outgoing.event.number);
        self.post.send(&self.settings, number, outgoing.correlation, body).await
    }
}

/// Passes over all events at the begin of each term, where no webhook is set: one that is set later must not receive them.
pub async fn pass_over(store: SharedStore, mut lease: Lease<Webhook>, mut stop: watch::Receiver<bool>) {
    loop {
        let passed = async {
            let term = lease.taken().await;
            match store.pass_over_all(&term).await {
                Ok(()) => term.over().await,
                Err(error) => {
                    log_failure("webhook", &error);
                    tokio::time::sleep(AFTER_ERROR).await;
                }
            }
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = passed => {}
        }
    }
}

enum Step {
    Next,
    Pause(Duration),
    Empty,
}
