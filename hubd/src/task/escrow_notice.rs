//! Delivery of escrow notices, retried for a week.
//!
//! The queue is a table that the read itself writes, so a restart loses none. Each customer has a place of their own: a
//! receiver that is down delays no other. A notice that was not delivered within a week becomes an event for operators.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::CustomerId;
use jiff::SignedDuration;
use tokio::sync::watch;
use tokio::time::Instant;

use super::http_post::{Post, WebhookError, WebhookSettings};
use super::{Rest, log_failure, rest};
use crate::clock::Clock;
use crate::domain::escrow_notice::Recipients;
use crate::domain::retry::{AfterFailure, after};
use crate::store::duty::EscrowNotices;
use crate::store::{Lease, NoticeEnd, NoticeSubject, OutgoingNotice, SharedStore, StoreError, Term};

/// How long a notice is tried. A read matters for longer than an event does.
const TRIED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How often the queue is polled without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The number of the notice.
pub const NOTICE_HEADER: &str = "x-holdfast-notice";

/// Addresses of customers.
#[derive(Debug, Default)]
pub struct NoticeSettings {
    /// These at addresses of their own.
    pub customers: BTreeMap<CustomerId, WebhookSettings>,
    /// All others here.
    pub others: Option<WebhookSettings>,
}

impl NoticeSettings {
    /// Who would be reached.
    #[must_use]
    pub fn reached(&self) -> Recipients {
        Recipients { customers: self.customers.keys().cloned().collect(), all_others: self.others.is_some() }
    }

    fn of(&self, customer: &CustomerId) -> Option<&WebhookSettings> {
        self.customers.get(customer).or(self.others.as_ref())
    }
}

/// The sender of notices.
pub struct Notifier {
    post: Post,
    settings: NoticeSettings,
    store: SharedStore,
    lease: Lease<EscrowNotices>,
    clock: Arc<dyn Clock>,
    failed: HashMap<CustomerId, Failed>,
}

/// A customer that could not be reached.
#[derive(Clone, Copy)]
struct Failed {
    times: u32,
    again: Instant,
}

impl Notifier {
    /// Makes one.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub fn new(
        settings: NoticeSettings,
        provider: Arc<rustls::crypto::CryptoProvider>,
        (store, lease): (SharedStore, Lease<EscrowNotices>),
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WebhookError> {
        let post = Post::new(settings.customers.values().chain(&settings.others), provider)?;
        Ok(Self { post, settings, store, lease, clock, failed: HashMap::new() })
    }

    /// Sends until `stop`, where this hub has the duty.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let term = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                term = self.lease.taken() => term,
            };
            // Another hub may have reached them since.
            self.failed.clear();
            if self.serve(&term, &mut stop).await == Rest::Stop {
                return;
            }
        }
    }

    /// Sends until the end of a term, or `stop`.
    async fn serve(&mut self, term: &Term<EscrowNotices>, stop: &mut watch::Receiver<bool>) -> Rest {
        let mut written = self.store.events_written();
        loop {
            written.mark_unchanged();
            // What is being sent when the term ends is cut off: another hub sends it again.
            let looked = tokio::select! {
                () = term.over() => return Rest::Over,
                looked = self.look(term) => looked,
            };
            if let Err(error) = looked {
                log_failure("notice", &error);
            }
            let next = self.failed.values().map(|failed| failed.again).min();
            let pause = next.map_or(LOOK_EVERY, |again| again.saturating_duration_since(Instant::now()));
            tokio::select! {
                // An error means that the store is closed; the stop follows.
                _ = written.changed() => {}
                () = term.over() => return Rest::Over,
                rested = rest(stop, pause.min(LOOK_EVERY)) => if rested == Rest::Stop { return Rest::Stop },
            }
        }
    }

    /// One attempt for every customer that is due.
    async fn look(&mut self, term: &Term<EscrowNotices>) -> Result<(), StoreError> {
        let open = self.store.open_notices().await?;
        self.failed.retain(|customer, _| open.iter().any(|notice| notice.customer == *customer));
        for notice in open {
            let is_due =
                self.failed.get(&notice.customer).is_none_or(|failed| failed.again <= Instant::now());
            if is_due && term.is_trusted() {
                self.notify(term, &notice).await?;
            }
        }
        Ok(())
    }

    async fn notify(
        &mut self,
        term: &Term<EscrowNotices>,
        notice: &OutgoingNotice,
    ) -> Result<(), StoreError> {
        let (number, correlation) = (notice.number, notice.correlation);
        let told = match self.settings.of(&notice.customer) {
            Some(to) => {
                self.post.send(to, (NOTICE_HEADER, number), correlation, notice.body.clone().into()).await
            }
            None => Err("the settings name no address for this customer any more".to_owned()),
        };
        let now = self.clock.now();
        // A job does not wait for the settings to change, so operators hear at once that nobody was notified.
        if notice.subject == NoticeSubject::Job && self.settings.of(&notice.customer).is_none() {
            return self.store.notice_ended(term, notice, NoticeEnd::GivenUp, now).await;
        }
        let Err(why) = told else {
            self.failed.remove(&notice.customer);
            return self.store.notice_ended(term, notice, NoticeEnd::Sent, now).await;
        };
        let times = self.failed.get(&notice.customer).map_or(1, |failed| failed.times.saturating_add(1));
        tracing::warn!(action = "notice", result = "failed", notice = number, times, why);
        match after(times, notice.at, now, TRIED_FOR) {
            AfterFailure::Pause(pause) => {
                self.failed.insert(notice.customer.clone(), Failed { times, again: Instant::now() + pause });
                Ok(())
            }
            AfterFailure::GiveUp => {
                self.failed.remove(&notice.customer);
                self.store.notice_ended(term, notice, NoticeEnd::GivenUp, now).await
            }
        }
    }
}
