//! The task that exchanges reports and documents with the hub.
//!
//! ```text
//! sections changed ──▶ check-in (held open by the hub) ──▶ newer document ──▶ parse ──▶ rules ──▶ store ──▶ reconcile
//!        ▲                    │ no answer: back off, go on by the document that is held
//!        └────────────────────┘
//! ```
//! News is sent in a check-in of its own, which is answered at once. A check-in without news is held open until the hub
//! or the agent has some, at most once in five seconds. What was not acknowledged is reported again. A document that is
//! refused is reported as refused and changes nothing. Deliberately absent: any effect on the host. This task receives
//! the hub's documents; the reconcile loop acts on them.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest, Coverage, JOBS_PER_ANSWER};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{Enrolled, RenewRequest};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::job::SeenHost;
use holdfast_protocol::json::chain;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::report::{ReportSchema, Sections};
use holdfast_protocol::work_order::ORDERS_PER_ANSWER;
use tokio::sync::watch;
use tracing::Instrument as _;

use super::stop::Stop;
use super::usage::UsageQueue;
use crate::execute::failpoint::{Failpoints, Moment, Point, Side, pass};
use crate::gate::restore::NoOrder;
use crate::plan::host_maintenance::{self, HostInventory};
use crate::port::backoff::Backoff;
use crate::port::clock::Clock;
use crate::port::host_replacement::HandOverFolder;
use crate::port::hub::{Contact, Hub, HubError, Remedy};
use crate::port::hub_ca;
use crate::port::identity::{Identity, IdentityError, IdentityFolder, PendingKey, Purpose};
use crate::port::store::job_intake;
use crate::port::store::work_order::OrderOutcome;
use crate::port::store::{Store, StoreError};

mod exchange;
mod offer;
mod readmission;
mod renewal;
mod renewal_time;
mod replaced;

use exchange::{DeliveredReport, Delivery, Exchange, Verdict};
use renewal_time::RenewalTime;

/// Below the minute that proxies and firewalls give a silent connection.
const WAIT_S: u32 = 25;
/// At most one report in so long, save the first after a quiet time.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// A hub that is away: quick at first, since most absences are restarts.
const AWAY: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// A hub that refuses us: an operator has to act, which takes minutes.
const REFUSED: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(300) };
/// The last report may not delay the stop.
const FAREWELL_MAX: Duration = Duration::from_secs(3);

pub struct HubSync {
    /// Where the identity is kept.
    pub folder: IdentityFolder,
    /// The identity in use.
    pub identity: Identity,
    /// The name and identity of this host, as it knows itself.
    pub own: SeenHost,
    /// What a lost host left, if this one took its place.
    pub handed: HandOverFolder,
    /// Where documents are stored.
    pub store: Store,
    pub sections: watch::Receiver<Arc<Sections>>,
    /// Samples of use that wait for the hub.
    pub usage: UsageQueue,
    /// Where the state of the contact with the hub is published.
    pub contact: watch::Sender<Contact>,
    pub clock: Arc<dyn Clock>,
    /// How the hub is called by an identity.
    pub dial: Dial,
    /// How it is called without a certificate, when that is over.
    pub dial_without: Dial,
    /// Where tests stop the world.
    pub failpoints: Arc<dyn Failpoints>,
    /// Random numbers, which spread the waits after failures.
    pub spread: fn() -> u32,
}

/// How the hub is called: [`Hub::enrolled`], save in tests.
pub type Dial = Arc<dyn Fn(&Identity) -> Result<Hub, HubError> + Send + Sync>;

/// Why a round with the hub did not succeed.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Renewal(#[from] renewal::RenewalError),
    #[error(transparent)]
    Order(#[from] NoOrder),
    #[error("nobody may sign here, so nobody could have ordered it")]
    NoOperators,
    #[error(transparent)]
    Waits(#[from] readmission::WaitsForApproval),
}

impl RoundError {
    fn problem(&self) -> ErrorBody {
        match self {
            // Its code is already sent as a separate field.
            Self::Hub(HubError::Refused { problem, .. }) => {
                ErrorBody::new(problem.code, format!("the hub refuses: {}", problem.message))
            }
            Self::Hub(error) => ErrorBody::new(error.code(), chain(error)),
            Self::Store(_) | Self::Identity(_) => ErrorBody::new(ErrorCode::Internal, chain(self)),
            Self::Renewal(_) | Self::Waits(_) => ErrorBody::new(ErrorCode::Certificate, chain(self)),
            Self::Order(_) | Self::NoOperators => ErrorBody::new(ErrorCode::Signature, chain(self)),
        }
    }

    const fn pace(&self) -> Backoff {
        match self {
            Self::Hub(error) if matches!(error.remedy(), Remedy::Wait) => AWAY,
            _ => REFUSED,
        }
    }
}

/// What a round came to.
enum Round {
    /// The hub answered; wait so long before the next. It may name a new CA of its own.
    Answered(Duration, Option<Pin>),
    /// The report changed meanwhile.
    Overtaken,
    /// The agent is to stop.
    Stop,
}

impl HubSync {
    /// Talks with the hub until the agent stops.
    pub async fn run(mut self, mut stop: Stop) {
        let mut exchange = Exchange::default();
        let (mut failures, mut reported_at) = (0_u32, None);
        let mut renewal = RenewalTime::new(&self.identity.enrolled, self.clock.monotonic(), (self.spread)());
        let mut hub = None;
        while !stop.is_requested() {
            let client = match &hub {
                Some(client) => client,
                None => match (self.dial)(&self.identity) {
                    Ok(client) => hub.insert(client),
                    Err(error) => {
                        failures += 1;
                        self.failed(&error.into(), failures, &mut stop).await;
                        continue;
                    }
                },
            };
            match self.round(client, &mut exchange, &mut reported_at, &mut stop).await {
                Ok(Round::Answered(pause, hub_ca)) => {
                    failures = 0;
                    self.reached();
                    let new_ca =
                        hub_ca.filter(|pin| !hub_ca::pins(&self.identity.enrolled.ca_pem).contains(pin));
                    let monotonic = self.clock.monotonic();
                    // Only after an answer: then no request with the old certificate is still on its way.
                    if renewal.is_due(self.clock.now(), monotonic, new_ca) {
                        match self.renew(client).await {
                            Ok(()) => {
                                renewal.renewed(&self.identity.enrolled, monotonic, (self.spread)());
                                hub = None;
                            }
                            Err(error) => {
                                tracing::warn!(error = chain(&error), "the certificate could not be renewed");
                                renewal.failed(monotonic);
                            }
                        }
                    }
                    self.pause(pause, &mut stop).await;
                }
                Ok(Round::Overtaken) => {}
                Ok(Round::Stop) => break,
                Err(RoundError::Hub(HubError::OwnCertificate { .. })) => {
                    match self.request_readmission().await {
                        Ok(()) => {
                            renewal.renewed(&self.identity.enrolled, self.clock.monotonic(), (self.spread)());
                            hub = None;
                        }
                        Err(error) => {
                            failures = failures.saturating_add(1);
                            self.failed(&error, failures, &mut stop).await;
                        }
                    }
                }
                Err(error) => {
                    if error.problem().code == ErrorCode::Replaced {
                        self.hear_of_replacement(client).await;
                    }
                    failures = failures.saturating_add(1);
                    self.failed(&error, failures, &mut stop).await;
                }
            }
        }
        if let Some(client) = &hub {
            self.farewell(client, &mut exchange).await;
        }
    }

    async fn round(
        &mut self,
        hub: &Hub,
        exchange: &mut Exchange,
        reported_at: &mut Option<Duration>,
        stop: &mut Stop,
    ) -> Result<Round, RoundError> {
        let begun = self.clock.monotonic();
        let last = *reported_at;
        let hold_back = move |at: Duration| {
            last.map_or(Duration::ZERO, |last| REPORT_EVERY.saturating_sub(at.saturating_sub(last)))
        };
        let report = if hold_back(begun).is_zero() { Delivery::Changes } else { Delivery::Nothing };
        let now = self.now().await?;
        let reporting = exchange.next(&now, report);
        // By itself: with a long report it would be more than the hub takes.
        let diagnostic = if reporting.is_news() { None } else { self.store.waiting_text().await? };
        let wait_s = if reporting.is_news() || diagnostic.is_some() { 0 } else { WAIT_S };
        let request = CheckinRequest { usage: self.usage.batch(), diagnostic, ..request(&reporting, &now) };
        let of_jobs = reporting.sections.jobs.as_ref().is_some_and(|jobs| !jobs.is_empty());
        if of_jobs {
            self.reach(Side::Before, Moment::Reported).await;
        }
        let (clock, sections) = (Arc::clone(&self.clock), &mut self.sections);
        let nothing_left = reporting.leaves_out_nothing_of(&now);
        let overtaken = async {
            // News is never cut off; otherwise a busy agent would never learn that any of it arrived.
            if wait_s == 0 || (nothing_left && sections.changed().await.is_err()) {
                std::future::pending::<()>().await;
            }
            sections.mark_changed();
            clock.sleep(hold_back(clock.monotonic())).await;
        };
        let answer = tokio::select! {
            biased;
            () = stop.requested() => return Ok(Round::Stop),
            answer = hub.checkin(&request, wait_s) => answer?,
            () = overtaken => return Ok(Round::Overtaken),
        };
        self.usage.acknowledge(&request.usage);
        if let Some(text) = request.diagnostic.as_ref().filter(|_| self.store.refusal().is_none()) {
            self.store.text_arrived(text.order).await?;
        }
        if of_jobs {
            self.reach(Side::After, Moment::Reported).await;
        }
        let ended = self.clock.monotonic();
        if reporting.is_news() {
            *reported_at = Some(ended);
        }
        let verdict = self.take(&answer).await?;
        if verdict != Verdict::Nothing {
            // The hub waits for this one report.
            *reported_at = None;
        }
        let wait = Duration::from_secs(wait_s.into());
        let pause = exchange::pause(&answer, verdict, ended.saturating_sub(begun), wait);
        exchange.answered(&answer, reporting);
        Ok(Round::Answered(pause, answer.hub_ca))
    }

    /// The report as it is now.
    async fn now(&mut self) -> Result<Sections, StoreError> {
        let mut now = Sections::clone(&self.sections.borrow_and_update());
        // Fresh from the store: a document that was just taken or refused must not be offered again.
        now.desired = Some(self.store.desired_section().await?);
        Ok(now)
    }

    async fn take(&self, answer: &CheckinAnswer) -> Result<Verdict, StoreError> {
        self.take_jobs(answer).await?;
        self.take_orders(answer).await?;
        self.take_maintenance(answer).await?;
        match &answer.desired {
            None => Ok(Verdict::Nothing),
            // Its guests are not back yet: they would be made anew, empty.
            Some(_) if self.handed.waits() => Ok(Verdict::NotTaken),
            Some(text) => match offer::offer(&self.store, text, self.clock.now()).await {
                // The refusal is in the report; the hub offers the document again.
                Err(StoreError::Refusing(_)) => Ok(Verdict::NotTaken),
                taken => taken,
            },
        }
    }

    /// Begins and ends the maintenance of this host. Until the host was observed it is unknown what runs.
    async fn take_maintenance(&self, answer: &CheckinAnswer) -> Result<(), StoreError> {
        let sections = Arc::clone(&self.sections.borrow());
        let Some(guests) = sections.guests.as_deref().filter(|_| self.store.refusal().is_none()) else {
            return Ok(());
        };
        let known = HostInventory { guests, targets: sections.storage.as_deref().unwrap_or_default() };
        let (kept, now) = (self.store.host_maintenance().await?, self.clock.now());
        let announced = answer.maintenance.map(|order| order.until);
        match host_maintenance::next(kept.as_ref(), announced, now, known) {
            Some(next) => {
                let (until, ended) = (next.until, next.ended_at.is_some());
                tracing::info!(%until, ended, "the hub announces maintenance of this host, or its end");
                self.store.keep_host_maintenance(next, now).await
            }
            None => Ok(()),
        }
    }

    /// First checks whether these records are an older copy: otherwise a job of the earlier epoch would count as new.
    async fn take_jobs(&self, answer: &CheckinAnswer) -> Result<(), StoreError> {
        if self.store.refusal().is_some() {
            return Ok(());
        }
        let host = self.identity.enrolled.host_id;
        if self.store.heard_audit(answer.audit_seen, self.clock.now()).await? {
            tracing::error!("these records are an older copy of what the hub heard of: a new epoch begins");
        }
        self.store.note_served().await?;
        for mail in answer.jobs.iter().take(JOBS_PER_ANSWER as usize) {
            self.reach(Side::Before, Moment::Taken).await;
            let correlation_id = mail.correlation_id.map(tracing::field::display);
            let span = tracing::info_span!("job", job = %mail.id, correlation_id);
            job_intake::take(&self.store, (host, &self.own), mail, self.clock.now()).instrument(span).await?;
            self.reach(Side::After, Moment::Taken).await;
        }
        Ok(())
    }

    /// What is not written down here is passed on again by the hub.
    async fn take_orders(&self, answer: &CheckinAnswer) -> Result<(), StoreError> {
        for order in answer.orders.iter().take(ORDERS_PER_ANSWER as usize) {
            // Guests that are not back from a lost host are not here yet.
            if self.store.refusal().is_some() || self.handed.waits() {
                return Ok(());
            }
            self.reach(Side::Before, Moment::Taken).await;
            let outcome = self.store.take_order(order.clone(), self.clock.now()).await?;
            if outcome != OrderOutcome::Known {
                let correlation_id = order.correlation_id.map(tracing::field::display);
                let (id, result) = (order.id, outcome.as_str());
                tracing::info!(action = "work_order", result, order = %id, correlation_id, "the hub ordered work");
            }
            self.reach(Side::After, Moment::Taken).await;
        }
        Ok(())
    }

    /// Where tests stop the world around jobs and orders.
    async fn reach(&self, side: Side, moment: Moment) {
        pass(self.failpoints.as_ref(), Point { step: "mail", side, moment }).await;
    }

    async fn renew(&mut self, hub: &Hub) -> Result<(), RoundError> {
        let key = self.folder.pending(Purpose::Renewal)?;
        let enrolled = hub.renew(&RenewRequest { csr_pem: key.csr_pem()? }).await?;
        self.take_certificate(&key, enrolled)
    }

    fn take_certificate(&mut self, key: &PendingKey, enrolled: Enrolled) -> Result<(), RoundError> {
        let held = self.identity.trusted_cas();
        let cas = renewal::judge(&self.identity, &enrolled, self.clock.now())?;
        let (before, after) = (hub_ca::pins(&held.pem), hub_ca::pins(&cas.pem));
        self.identity = self.folder.accept_renewal(key, &self.identity.hub, enrolled, cas)?;
        let generation = self.identity.enrolled.certificate_generation;
        let ends_at = self.identity.enrolled.not_after;
        tracing::info!(generation, %ends_at, "the certificate was renewed");
        if before != after {
            let list = |pins: &[Pin]| pins.iter().map(Pin::to_string).collect::<Vec<_>>().join(", ");
            tracing::info!(before = list(&before), trusted = list(&after), "the hub changes its CA");
        }
        Ok(())
    }

    fn reached(&self) {
        let contact = Contact {
            reached_at: Some(self.clock.now()),
            problem: None,
            certificate_ends_at: self.identity.enrolled.not_after,
        };
        let before = self.contact.send_replace(contact);
        if before.problem.is_some() {
            tracing::info!("the hub answers again");
        }
    }

    async fn failed(&mut self, error: &RoundError, failures: u32, stop: &mut Stop) {
        let problem = error.problem();
        let mut is_news = false;
        self.contact.send_modify(|contact| {
            is_news = contact.problem.as_ref().is_none_or(|before| before.code != problem.code);
            contact.problem = Some(problem.clone());
        });
        if is_news {
            tracing::warn!(code = %problem.code, error = problem.message, "no contact with the hub");
        }
        let pause = error.pace().after(failures, (self.spread)());
        tokio::select! {
            () = stop.requested() => {}
            () = self.clock.sleep(pause) => {}
        }
    }

    /// Waits for the hub's interval, or until there is something to report. News that is held back already exists and
    /// does not end the wait. Otherwise a hub that holds no check-in open would be called without a pause until the
    /// news may be sent.
    async fn pause(&mut self, pause: Duration, stop: &mut Stop) {
        if pause.is_zero() {
            return;
        }
        let least = pause.min(exchange::SHORTEST);
        tokio::select! {
            () = stop.requested() => return,
            () = self.clock.sleep(least) => {}
        }
        tokio::select! {
            () = stop.requested() => {}
            () = self.clock.sleep(pause.saturating_sub(least)) => {}
            changed = self.sections.changed() => {
                if changed.is_err() {
                    self.clock.sleep(pause).await;
                }
                self.sections.mark_changed();
            }
        }
    }

    async fn farewell(&mut self, hub: &Hub, exchange: &mut Exchange) {
        let said = async {
            let now = self.now().await?;
            let mut request = request(&exchange.next(&now, Delivery::Changes), &now);
            if request.coverage == Coverage::Changed {
                request.coverage = Coverage::Farewell;
            }
            hub.checkin(&request, 0).await?;
            Ok::<(), RoundError>(())
        };
        match tokio::time::timeout(FAREWELL_MAX, said).await {
            Ok(Ok(())) => tracing::info!("goodbye sent to the hub"),
            Ok(Err(error)) => tracing::info!(error = chain(&error), "goodbye not sent to the hub"),
            Err(_) => tracing::info!("the hub did not take the goodbye in time"),
        }
    }
}

fn request(reporting: &DeliveredReport, now: &Sections) -> CheckinRequest {
    CheckinRequest {
        schema: ReportSchema::V1,
        sequence: reporting.sequence,
        held: now.desired.as_ref().map_or(Generation::NONE, |desired| desired.held),
        coverage: reporting.coverage,
        sections: reporting.sections.clone(),
        usage: Vec::new(),
        diagnostic: None,
    }
}

#[cfg(test)]
mod tests;
