//! Delivery of notices out of the outbox.
//!
//! Each receiver is served by itself, its notices one at a time and in order: a slow one delays no other. So there are at
//! most two tasks for each receiver, one of which waits. A notice for a receiver that the settings do not name any more is
//! refused at its next try, and the delivery log says so. A notice that was being sent when the hub ended is sent again
//! under the same id, by which receivers know a repeat; so is one that was being sent when another hub took over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::alert::ReceiverKind;
use holdfast_protocol::id::ReceiverName;
use holdfast_protocol::json::chain;
use jiff::{SignedDuration, Timestamp};
use notify::channel::Smtp;
use notify::{Channel, DeliveryError, EgressPolicy, OutboxId, RetryDecision, Sender};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use super::{Rest, log_failure, rest};
use crate::api::{ConfiguredReceiver, ConfiguredReceivers, SettingsFiles};
use crate::clock::Clock;
use crate::domain::alerting::notice_text::{HubName, message, repeated};
use crate::domain::retry::{AfterFailure, after};
use crate::store::{DeliveryEnd, Lease, OutgoingAlert, SharedStore, StoreError, Term, duty};

/// A notice that no receiver took for so long is given up; the delivery log says so.
const TRIED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// How often the outbox is read without a notification (another process may have written to it).
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often an Alertmanager is sent what still fires. It forgets an alert after five minutes by default, so several may be
/// lost.
const RESEND_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// After the store refused the end of a delivery, the notice is sent again this much later, and with it those behind it.
const RELEASE_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// How long one Alertmanager is sent to in one go. The rest is sent with the next one.
const RESEND_WITHIN: Duration = Duration::from_secs(60);

/// Alerts that one Alertmanager is sent again, at most.
const RESENT_MAX: u32 = 10_000;

/// A receiver of notices.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub name: ReceiverName,
    pub channel: Channel,
}

impl Receiver {
    fn configured(&self) -> ConfiguredReceiver {
        ConfiguredReceiver { name: self.name.clone(), kind: self.channel.kind() }
    }
}

/// All receivers, and how far deliveries to them may reach.
#[derive(Clone, Debug, Default)]
pub struct ReceiverSet {
    receivers: Arc<Vec<Receiver>>,
    reach: EgressPolicy,
    /// From which all this was read.
    files: SettingsFiles,
}

impl ReceiverSet {
    #[must_use]
    pub fn new(receivers: Vec<Receiver>, reach: EgressPolicy) -> Self {
        Self { receivers: Arc::new(receivers), reach, files: SettingsFiles::default() }
    }

    /// The same, with the files that it was read from.
    #[must_use]
    pub fn with_files(self, files: SettingsFiles) -> Self {
        Self { files, ..self }
    }

    /// What operators see of it, once it is in force.
    #[must_use]
    pub fn configured(&self, since: Timestamp) -> ConfiguredReceivers {
        let receivers = self.receivers.iter().map(Receiver::configured).collect();
        ConfiguredReceivers { receivers, since, files: self.files.clone() }
    }

    #[must_use]
    pub fn receivers(&self) -> &[Receiver] {
        &self.receivers
    }

    /// How far deliveries may reach.
    #[must_use]
    pub const fn reach(&self) -> EgressPolicy {
        self.reach
    }

    /// A receiver that is a mail server.
    #[must_use]
    pub fn smtp(&self, name: &ReceiverName) -> Option<&Smtp> {
        let Channel::Smtp(smtp) = self.channel(name)? else { return None };
        Some(smtp)
    }

    fn channel(&self, name: &ReceiverName) -> Option<&Channel> {
        self.receivers.iter().find(|receiver| receiver.name == *name).map(|receiver| &receiver.channel)
    }
}

/// Delivers notices.
pub struct Deliveries {
    store: SharedStore,
    lease: Lease<duty::Deliveries>,
    clock: Arc<dyn Clock>,
    /// As the settings name them now.
    set: watch::Receiver<ReceiverSet>,
    hub: HubName,
}

impl Deliveries {
    #[must_use]
    pub fn new(
        set: watch::Receiver<ReceiverSet>,
        (store, lease): (SharedStore, Lease<duty::Deliveries>),
        clock: Arc<dyn Clock>,
        hub: HubName,
    ) -> Self {
        Self { store, lease, clock, set, hub }
    }

    /// Delivers until `stop`, where this hub has the duty. What is being sent then is finished first, each within the
    /// timeout of its channel.
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

    /// Delivers until the end of a term, or `stop`.
    async fn serve(&self, term: &Term<duty::Deliveries>, stop: &mut watch::Receiver<bool>) -> Rest {
        let mut written = self.store.events_written();
        let (mut in_flight, mut resent_at) = (InFlight::default(), None);
        // What was being sent before this term waits again first.
        in_flight.unrecorded_since = Some(Timestamp::MIN);
        loop {
            written.mark_unchanged();
            self.release_if_due(term, &mut in_flight).await;
            if term.is_trusted() {
                self.resend_if_due(&mut resent_at, &mut in_flight);
            }
            if let Err(error) = self.begin_due(term, &mut in_flight).await {
                log_failure("deliver", &error);
            }
            let pause = self.pause().await;
            tokio::select! {
                // An error means that the store is closed; the stop follows.
                _ = written.changed() => {}
                // The receiver's next notice may be due.
                Some(ended) = in_flight.notices.join_next() => {
                    if !matches!(ended, Ok(EndRecorded::Yes)) {
                        in_flight.unrecorded_since.get_or_insert(self.clock.now());
                    }
                }
                Some(_) = in_flight.resends.join_next() => {}
                // Whoever has the next term sends it again, under the same id.
                () = term.over() => {
                    in_flight.resends.shutdown().await;
                    in_flight.notices.shutdown().await;
                    return Rest::Over;
                }
                rested = rest(stop, pause) => if rested == Rest::Stop { break },
            }
        }
        in_flight.resends.shutdown().await;
        while in_flight.notices.join_next().await.is_some() {}
        Rest::Stop
    }

    /// Where the outbox does not have the end of a delivery, the notice waits again, as after a start: without that, its
    /// receiver would be sent nothing more. Not at once, since it is sent for as long as the store refuses its end.
    async fn release_if_due(&self, term: &Term<duty::Deliveries>, in_flight: &mut InFlight) {
        let Some(since) = in_flight.unrecorded_since else { return };
        let now = self.clock.now();
        let is_due = now < since || now.duration_since(since) >= RELEASE_AFTER;
        if !is_due || !in_flight.notices.is_empty() {
            return;
        }
        match self.store.release_outgoing(term).await {
            Ok(()) => in_flight.unrecorded_since = None,
            Err(error) => log_failure("deliver", &error),
        }
    }

    /// Begins to send what still fires to receivers that forget it otherwise.
    fn resend_if_due(&self, resent_at: &mut Option<Timestamp>, in_flight: &mut InFlight) {
        let now = self.clock.now();
        let is_due = |at: Timestamp| now < at || now.duration_since(at) >= RESEND_EVERY;
        if !resent_at.is_none_or(is_due) {
            return;
        }
        *resent_at = Some(now);
        let set = self.set.borrow().clone();
        in_flight.lines.retain(&set);
        for receiver in set.receivers() {
            if receiver.channel.kind() != ReceiverKind::Alertmanager {
                continue;
            }
            // One that still gets something hears of the rest in a minute.
            let Ok(line) = in_flight.lines.of(&receiver.name).try_lock_owned() else { continue };
            let (store, receiver, hub) = (self.store.clone(), receiver.clone(), self.hub.clone());
            in_flight.resends.spawn(async move {
                let _line = line;
                resend_to(Sender::new(set.reach), receiver, store, hub, now).await;
            });
        }
    }

    /// Until the next notice is due.
    async fn pause(&self) -> Duration {
        let next = self.store.next_outgoing_at().await.ok().flatten();
        let Some(next) = next else { return LOOK_EVERY };
        // What is due already became so since the outbox was read.
        let until = Duration::try_from(next.duration_since(self.clock.now())).unwrap_or(Duration::ZERO);
        until.clamp(Duration::from_secs(1), LOOK_EVERY)
    }

    /// Begins to send for each receiver the oldest notice that is due.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn begin_due(
        &self,
        term: &Term<duty::Deliveries>,
        in_flight: &mut InFlight,
    ) -> Result<(), StoreError> {
        // The store gives no second notice of a receiver before the first one ended.
        for outgoing in self.store.take_outgoing(term, self.clock.now()).await? {
            let line = in_flight.lines.of(&outgoing.notice.receiver);
            let (set, hub) = (self.set.borrow().clone(), self.hub.clone());
            let (store, clock, term) = (self.store.clone(), Arc::clone(&self.clock), term.clone());
            in_flight.notices.spawn(async move {
                let _line = line.lock_owned().await;
                // The process may have been stopped since the notice was taken.
                if !term.is_trusted() {
                    return EndRecorded::No;
                }
                let result = tokio::select! {
                    () = term.over() => return EndRecorded::No,
                    result = send(&set, &hub, &outgoing, clock.now()) => result,
                };
                let now = clock.now();
                let end = judge(result, &outgoing, now);
                log(&outgoing, &end);
                match store.delivery_ended(&term, outgoing, end, now).await {
                    Ok(()) => EndRecorded::Yes,
                    Err(error) => {
                        log_failure("deliver", &error);
                        EndRecorded::No
                    }
                }
            });
        }
        Ok(())
    }
}

/// Whether the outbox has the end of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndRecorded {
    Yes,
    No,
}

/// What is being sent.
#[derive(Default)]
struct InFlight {
    lines: Lines,
    notices: JoinSet<EndRecorded>,
    /// Since when the outbox does not have the end of a delivery.
    unrecorded_since: Option<Timestamp>,
    /// Of what fires. They are cut off when the hub ends: the next run sends all again.
    resends: JoinSet<()>,
}

/// Receivers that are sent to, one thing at a time each.
///
/// While it is sent again what fires, no notice goes to a receiver: so what is over is never sent as firing after its end.
#[derive(Default)]
struct Lines(BTreeMap<ReceiverName, Arc<Mutex<()>>>);

impl Lines {
    fn of(&mut self, name: &ReceiverName) -> Arc<Mutex<()>> {
        Arc::clone(self.0.entry(name.clone()).or_default())
    }

    /// Drops those that the settings do not name any more, once nothing is sent there.
    fn retain(&mut self, set: &ReceiverSet) {
        self.0.retain(|name, line| set.channel(name).is_some() || Arc::strong_count(line) > 1);
    }
}

/// A receiver that answers each part slowly is not sent to for longer than until the next time.
async fn resend_to(sender: Sender, receiver: Receiver, store: SharedStore, hub: HubName, now: Timestamp) {
    let name = receiver.name.clone();
    if tokio::time::timeout(RESEND_WITHIN, resend_all(sender, receiver, store, hub, now)).await.is_err() {
        let within = RESEND_WITHIN.as_secs();
        tracing::warn!(action = "resend", result = "failed", receiver = %name, within, "it answers too slowly");
    }
}

async fn resend_all(sender: Sender, receiver: Receiver, store: SharedStore, hub: HubName, now: Timestamp) {
    let Receiver { name, channel } = receiver;
    let firing = match store.firing_at(name.clone(), RESENT_MAX).await {
        Ok(firing) => firing,
        Err(error) => {
            tracing::error!(action = "resend", result = "failed", receiver = %name, error = %chain(&error));
            return;
        }
    };
    for message in repeated(&firing, &hub, now) {
        let id = OutboxId::digest_of(&format!("{}/{name}/{now}", hub.pin));
        if let Err(error) = sender.deliver(&channel, &message, &id, now).await {
            // The next one comes in a minute. A receiver that is down is not asked for each part.
            tracing::warn!(action = "resend", result = "failed", receiver = %name, error = %chain(&error));
            return;
        }
    }
}

/// Why a notice was not delivered.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("the receiver is not in the settings any more")]
    Removed,
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
}

async fn send(
    set: &ReceiverSet,
    hub: &HubName,
    outgoing: &OutgoingAlert,
    now: Timestamp,
) -> Result<Option<String>, SendError> {
    let notice = &outgoing.notice;
    let channel = set.channel(&notice.receiver).ok_or(SendError::Removed)?;
    // A hub that was put back from a copy counts notices anew, so the time is part of the id.
    let id = OutboxId::digest_of(&format!("{}/{}/{}", hub.pin, notice.key, notice.made_at));
    let receipt = Sender::new(set.reach).deliver(channel, &message(notice, hub), &id, now).await?;
    let remarks: Vec<String> = receipt.remarks.iter().map(ToString::to_string).collect();
    Ok((!remarks.is_empty()).then(|| remarks.join("; ")))
}

fn judge(result: Result<Option<String>, SendError>, outgoing: &OutgoingAlert, now: Timestamp) -> DeliveryEnd {
    let error = match result {
        Ok(remark) => return DeliveryEnd::Delivered { remark },
        Err(error) => error,
    };
    let failure = chain(&error);
    let retry = match &error {
        SendError::Removed => RetryDecision::Never,
        SendError::Delivery(error) => error.retry(),
    };
    let failures = outgoing.tries.saturating_add(1);
    let again =
        |pause: Duration| SignedDuration::try_from(pause).ok().and_then(|pause| now.checked_add(pause).ok());
    match (retry, after(failures, outgoing.notice.made_at, now, TRIED_FOR)) {
        (RetryDecision::Never, _) => DeliveryEnd::Refused { failure },
        (_, AfterFailure::GiveUp) => DeliveryEnd::GivenUp { failure },
        (RetryDecision::After(wanted), AfterFailure::Pause(own)) => {
            DeliveryEnd::Again { at: again(wanted.max(own)).unwrap_or(now), failure }
        }
        (RetryDecision::BackOff, AfterFailure::Pause(own)) => {
            DeliveryEnd::Again { at: again(own).unwrap_or(now), failure }
        }
    }
}

fn log(outgoing: &OutgoingAlert, end: &DeliveryEnd) {
    let (receiver, notice) = (&outgoing.notice.receiver, &outgoing.notice.key);
    match end {
        DeliveryEnd::Delivered { remark } => {
            tracing::info!(action = "deliver", result = "delivered", %receiver, %notice, remark);
        }
        DeliveryEnd::Again { at, failure } => {
            tracing::warn!(action = "deliver", result = "failed", %receiver, %notice, next = %at, failure);
        }
        DeliveryEnd::Refused { failure } => {
            tracing::error!(action = "deliver", result = "refused", %receiver, %notice, failure);
        }
        DeliveryEnd::GivenUp { failure } => {
            tracing::error!(action = "deliver", result = "given_up", %receiver, %notice, failure);
        }
    }
}
