//! Delivery of notices to customers, retried for a bounded time.
//!
//! The queue is a table that the read itself writes, so a restart loses none. Each customer has a place of their own for reads of
//! keys and for jobs: a receiver that is down delays no other. A notice that was not delivered in its time becomes an event
//! for operators.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::{CustomerId, ReceiverName};
use holdfast_protocol::json;
use holdfast_protocol::objection::JobNotice;
use jiff::SignedDuration;
use tokio::sync::watch;
use tokio::time::Instant;

use super::customer_contact::ContactRoute;
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
    /// The receiver of kind smtp by whose server customers get mail about jobs, at the contact of their resource.
    pub mail: Option<ReceiverName>,
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
    contacts: ContactRoute,
    failed: HashMap<(CustomerId, NoticeSubject), Failed>,
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
        contacts: ContactRoute,
    ) -> Result<Self, WebhookError> {
        let post = Post::new(settings.customers.values().chain(&settings.others), provider)?;
        Ok(Self { post, settings, store, lease, clock, contacts, failed: HashMap::new() })
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
        self.failed.retain(|key, _| open.iter().any(|notice| place(notice) == *key));
        for notice in open {
            let is_due = self.failed.get(&place(&notice)).is_none_or(|failed| failed.again <= Instant::now());
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
        let now = self.clock.now();
        let sent = match self.settings.of(&notice.customer) {
            Some(to) => {
                let header = (NOTICE_HEADER, number);
                self.post
                    .send(to, header, correlation, notice.body.clone().into())
                    .await
                    .map_err(Failure::Passing)
            }
            None => self.by_contact(notice).await?,
        };
        let failure = match sent {
            Ok(()) => {
                self.failed.remove(&place(notice));
                return self.store.notice_ended(term, notice, NoticeEnd::Sent, now).await;
            }
            Err(failure) => failure,
        };
        let times = self.failed.get(&place(notice)).map_or(1, |failed| failed.times.saturating_add(1));
        let next = match failure {
            Failure::Passing(_) => after(times, notice.at, now, tried_for(notice)),
            Failure::Lasting(_) => AfterFailure::GiveUp,
        };
        let (Failure::Passing(why) | Failure::Lasting(why)) = failure;
        tracing::warn!(action = "notice", result = "failed", notice = number, times, why);
        match next {
            AfterFailure::Pause(pause) => {
                self.failed.insert(place(notice), Failed { times, again: Instant::now() + pause });
                Ok(())
            }
            AfterFailure::GiveUp => {
                self.failed.remove(&place(notice));
                self.store.notice_ended(term, notice, NoticeEnd::GivenUp, now).await
            }
        }
    }

    /// By the contact of the customer's resource, which stands for notices of jobs alone: that somebody read a key is sent to
    /// addresses that sign.
    async fn by_contact(&self, notice: &OutgoingNotice) -> Result<Result<(), Failure>, StoreError> {
        let contact = match notice.subject {
            NoticeSubject::EscrowRead => {
                let why = "the settings name no address for this customer any more".to_owned();
                return Ok(Err(Failure::Passing(why)));
            }
            NoticeSubject::Job => self.store.customer_contact(notice.customer.clone()).await?,
        };
        // A job does not wait for the settings to change, so operators hear at once that nobody was notified.
        let Some(contact) = contact else {
            return Ok(Err(Failure::Lasting(
                "the customer has neither an address in hub.toml nor a contact".to_owned(),
            )));
        };
        let sent = self.contacts.send(&contact, notice, self.clock.now()).await;
        Ok(sent.map_err(|error| {
            let why = json::chain(&error);
            if error.is_lasting() { Failure::Lasting(why) } else { Failure::Passing(why) }
        }))
    }
}

/// Why a notice was not sent.
enum Failure {
    /// Another try may end otherwise.
    Passing(String),
    /// Operators hear of it at once.
    Lasting(String),
}

/// What waits for nothing but its own earlier notices.
fn place(notice: &OutgoingNotice) -> (CustomerId, NoticeSubject) {
    (notice.customer.clone(), notice.subject)
}

/// How long a notice is tried: one of a job until its delay ends, since it is of no use later.
fn tried_for(notice: &OutgoingNotice) -> SignedDuration {
    let due = match notice.subject {
        NoticeSubject::EscrowRead => None,
        NoticeSubject::Job => {
            let read = serde_json::from_str::<JobNotice>(&notice.body).ok();
            read.and_then(|read| read.due_at)
        }
    };
    due.map_or(TRIED_FOR, |due| due.duration_since(notice.at).min(TRIED_FOR))
}
