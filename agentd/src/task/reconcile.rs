//! The reconcile loop.
//!
//! In: the document and records from the store, and the observed host. Out: operations in the journal, and the
//! [`HostSnapshot`] for the tasks that publish it. A cycle never fails: whatever keeps it from its work is part of the
//! view. An operation can be open but not under way, because the agent was restarted or its journal could not be
//! written. It is taken up again, so recovery after a crash is an ordinary cycle. Deliberately absent: decisions.

mod performing;
mod publish;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{Desired, DesiredGuest, OvercommitLevels, UseLevels};
use holdfast_protocol::generation::{Generation, Numbered};
use holdfast_protocol::id::{NodeName, OperationId, Vmid};
use holdfast_protocol::json::chain;
use holdfast_protocol::protection::BackupPolicy;
use holdfast_protocol::storage::StorageTarget;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::admission::{Arrivals, Turns};
use super::backup_inventory::BackupInventory;
use super::inherited_backups::Finder;
use super::loss_detector::Lookout;
use super::observe::Observer;
use super::stop::Stop;
use super::{image_digests, refresh, signed_jobs};
use crate::execute::{Ports, recover};
use crate::gate::change_limit::Release;
use crate::model::addresses::StrangeAnswers;
use crate::model::clock_trust::{ClockSample, Timekeeper};
use crate::model::condition_facts::Blocked;
use crate::model::observed::Observed;
use crate::model::policy::Policy;
use crate::model::view::HostSnapshot;
use crate::operation::progress::OperationState;
use crate::plan::address;
use crate::plan::guest_requests::{Answer, RequestDecision};
use crate::plan::protect::Raise;
use crate::plan::recovery::{StartObservation, recovery};
use crate::plan::{Inputs, Memory, Questions, plan_with, questions, wanted_goldens};
use crate::port::pve::PveError;
use crate::port::store::protection::Changed;
use crate::port::store::start_failures::Forgiven;
use crate::port::store::{Changes, StoreError};

/// While Proxmox is away it is tried again after this, doubled up to [`AWAY_MAX`].
const AWAY_FIRST: Duration = Duration::from_secs(1);
const AWAY_MAX: Duration = Duration::from_secs(60);

/// As often as Proxmox itself looks at its guests: more often, its list shows nothing new of them.
const OBSERVE_EVERY: Duration = Duration::from_secs(10);

/// How often the host is observed when nothing is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObserveInterval {
    /// As the document says, or [`OBSERVE_EVERY`].
    ByDocument,
    /// For tests that cover weeks.
    Every(Duration),
}

impl ObserveInterval {
    fn under(self, document: Option<&Desired>) -> Duration {
        match self {
            Self::Every(interval) => interval,
            Self::ByDocument => document
                .and_then(|desired| desired.document().observe_interval_s)
                .map_or(OBSERVE_EVERY, |seconds| Duration::from_secs(seconds.get().into())),
        }
    }
}

/// Guests that send requests all the time cause at most four observations of Proxmox a second.
const REQUEST_GATHER: Duration = Duration::from_millis(250);

/// Everything the loop works with.
pub struct Reconcile {
    /// What operations work with.
    pub ports: Ports,
    pub eye: Observer,
    /// What root configured on this host.
    pub policy: Policy,
    /// The node, for the report.
    pub node: NodeName,
    /// How often the host is observed when nothing is new.
    pub interval: ObserveInterval,
    /// Where the snapshot is published.
    pub view: watch::Sender<Arc<HostSnapshot>>,
    /// When to stop.
    pub stop: Stop,
}

/// Why a cycle gave no picture.
#[derive(Debug, thiserror::Error)]
enum CycleError {
    #[error("Proxmox cannot be asked")]
    Proxmox(#[from] PveError),
    #[error("the agent's own database cannot be used")]
    Store(#[from] StoreError),
}

impl CycleError {
    const fn code(&self) -> ErrorCode {
        match self {
            Self::Proxmox(error) => error.code(),
            Self::Store(_) => ErrorCode::Unavailable,
        }
    }

    const fn blocked(&self) -> Blocked {
        match self {
            Self::Proxmox(_) => Blocked::ByProxmox,
            Self::Store(_) => Blocked::ByRecords,
        }
    }
}

/// The document in use, and the count of changes it was read at.
struct InUse {
    read_at: u64,
    document: Option<Desired>,
}

impl InUse {
    fn generation(&self) -> Generation {
        self.document.as_ref().map_or(Generation::NONE, |desired| desired.numbered().generation)
    }

    fn numbered(&self) -> Option<Numbered> {
        self.document.as_ref().map(Desired::numbered)
    }

    fn guests(&self) -> &[DesiredGuest] {
        self.document.as_ref().map_or(&[], Desired::guests)
    }

    fn policies(&self) -> &[BackupPolicy] {
        self.document.as_ref().map_or(&[], Desired::policies)
    }

    fn overcommit(&self) -> OvercommitLevels {
        self.document.as_ref().and_then(|desired| desired.document().overcommit).unwrap_or_default()
    }

    fn levels(&self) -> UseLevels {
        self.document.as_ref().and_then(|desired| desired.document().levels).unwrap_or_default()
    }

    fn manifest(&self) -> &[StorageTarget] {
        self.document.as_ref().map_or(&[], Desired::storage)
    }
}

/// The last complete observation, used when only the records changed.
struct Picture {
    desired: Arc<InUse>,
    observed: Observed,
}

/// What the loop remembers between cycles. Nothing of it is needed after a restart.
#[derive(Default)]
struct State {
    under_way: JoinSet<(OperationId, Option<Vmid>)>,
    ids: BTreeMap<OperationId, Option<Vmid>>,
    desired: Option<Arc<InUse>>,
    marked_good: Option<Generation>,
    picture: Option<Picture>,
    away: u32,
    seen: Changes,
    again_at: Option<Timestamp>,
    arrivals: Arrivals,
    /// What was seen of the clocks.
    timekeeper: Timekeeper,
    /// What storages of backups list.
    listings: BackupInventory,
    /// How large the root disks of goldens are.
    roots: image_digests::Roots,
    /// Searches for backups of guests of a lost host.
    finder: Finder,
    /// Counts the observations that prove a guest gone.
    lookout: Lookout,
    /// Who answered for addresses that belong to another guest.
    strange: StrangeAnswers,
    /// What the last plan judged and still holds.
    judged: Memory,
}

/// What woke the loop.
enum Woken {
    Cycle,
    Asked,
    ReportOnly,
    Stop,
}

/// Whether a change in the store is news to the loop. Its own operations' events are not.
fn concerns(now: Changes, seen: Changes) -> bool {
    Changes { operations: seen.operations, ..now } != seen
}

impl Reconcile {
    /// Runs until the stop signal. Operations under way are dropped then and taken up by the next run.
    pub async fn run(mut self) {
        let mut state = State::default();
        let began = self.ports.clock.now();
        self.begin().await;
        loop {
            match self.cycle(&mut state).await {
                Ok(()) => state.away = 0,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "no picture of the host in this cycle");
                    state.away += 1;
                    self.report_trouble(&error, began, &state);
                }
            }
            loop {
                match self.wait(&mut state).await {
                    Woken::Cycle => break,
                    Woken::Asked => {
                        // Requests that arrive together share one observation of Proxmox.
                        self.ports.clock.sleep(REQUEST_GATHER).await;
                        break;
                    }
                    Woken::ReportOnly => self.report_again(&mut state).await,
                    Woken::Stop => return,
                }
            }
        }
    }

    /// Says what was left open, before anything is done about it.
    async fn begin(&mut self) {
        let now = self.ports.clock.now();
        if let Err(error) = self.ports.store.begin_run().await {
            tracing::error!(error = chain(&error), "the start could not be counted");
        }
        match self.ports.store.open_operations().await {
            Ok(open) => self.recover(open, now).await,
            Err(error) => tracing::error!(error = chain(&error), "what was left open cannot be read"),
        }
    }

    /// Plans, keeps the plan, and writes into the journals what it adopts or parks. The cycles do the rest.
    async fn recover(&mut self, open: Vec<OperationState>, now: Timestamp) {
        // With nothing left open this does not wait for Proxmox.
        let (observed, tasks) = if open.is_empty() {
            (None, BTreeMap::new())
        } else {
            let observed = self.eye.look(&Questions::default()).await;
            (observed.ok(), recover::lost_tasks(&self.ports, &open).await)
        };
        let plan = recovery(&open, StartObservation { observed: observed.as_ref(), tasks: &tasks }, now);
        tracing::info!("{plan}");
        if let Err(error) = self.ports.store.keep_recovery(plan.clone(), now).await {
            tracing::error!(error = chain(&error), "the recovery plan could not be kept");
        }
        if let Err(error) = recover::settle(&self.ports, open, &plan).await {
            tracing::error!(error = chain(&error), "the recovery plan could not be carried out whole");
        }
    }

    async fn cycle(&mut self, state: &mut State) -> Result<(), CycleError> {
        let store = self.ports.store.clone();
        let now = self.ports.clock.now();
        state.seen = *store.changes().borrow();
        store.try_room().await;
        self.keep_time(state).await?;
        self.take_up(state).await?;
        let desired = self.desired(state).await?;
        let generation = desired.generation();
        // The records are read first: an operation that ends before the observation is still open to the plan, and left
        // alone.
        let records = store.records(generation, now).await?;
        let release = self.release(desired.numbered(), now).await?;
        let refreshes = refresh::due(&store, now).await?;
        if !refreshes.is_empty() {
            self.eye.touch_all();
        }
        for vmid in signed_jobs::targets(&store, now).await? {
            self.eye.touch(vmid);
        }
        let ask = questions(desired.guests(), &records, self.policy.range);
        let mut observed = self.eye.look(&ask).await?;
        let asking = (&self.ports, &self.eye, &mut state.finder);
        state.lookout.look(asking, &records, &mut observed).await?;
        observed.listings = state.listings.look(&self.ports, &records, &observed, now).await?;
        let stored = image_digests::stored(&mut self.policy).await;
        let goldens =
            wanted_goldens(desired.guests(), &records, &observed).into_iter().chain(stored).collect();
        observed.controllers = self.ports.artifacts.stored();
        observed.missing_controllers = self.ports.missing_controllers.borrow().as_ref().clone();
        observed.bridge_mtu = self.ports.bridges.mtu(&self.policy.bridge);
        observed.bridge_net = self.ports.bridges.net(&self.policy.bridge);
        address::index(&mut observed, desired.guests(), &self.policy);
        let strange = address::strange(&observed, &self.policy);
        observed.bridge_net.strange = state.strange.take(strange, now);
        observed.goldens = image_digests::archives(&self.ports.digests, &self.policy, goldens).await;
        let pve = self.ports.pve.as_ref();
        observed.golden_roots = state.roots.look(pve, &self.policy, &observed.goldens).await;
        let inputs = Inputs {
            generation,
            content: desired.numbered().map(|numbered| numbered.content),
            desired: desired.guests(),
            policies: desired.policies(),
            manifest: desired.manifest(),
            levels: desired.levels(),
            overcommit: desired.overcommit(),
            observed: &observed,
            records: &records,
            policy: &self.policy,
            release: release.as_ref(),
            now,
            time: state.timekeeper.belief(self.ports.clock.monotonic(), now),
        };
        let plan = plan_with(&inputs, &mut state.judged);
        if !plan.actions.is_empty() {
            tracing::info!("{plan}");
        }
        let interval = self.interval.under(desired.document.as_ref());
        self.report(&inputs, &plan, (&state.timekeeper, interval));
        state.again_at = plan.again_at;
        if store.refusal().is_none() {
            refresh::settle(&store, refreshes, now).await?;
        }
        if !plan.healthy.is_empty() && store.refusal().is_none() {
            store.forgive_starts(plan.healthy, Forgiven::Healthy, now).await?;
        }
        if store.refusal().is_none() {
            self.raise(plan.raises, now).await?;
        }
        if !plan.gone_copies.is_empty() && store.refusal().is_none() {
            store.forget_copies(plan.gone_copies).await?;
        }
        // Points of schedules stay due, and requests stay queued: they are caught up afterwards. What operators sign for goes on.
        let maintenance = store.host_maintenance().await?.filter(|kept| kept.is_in_force(inputs.time.at));
        let turns = match &maintenance {
            Some(_) => Turns::default(),
            None => state.arrivals.choose(plan.actions, &plan.asked, &records),
        };
        // Where nothing can be written, nothing is begun and nothing is ended.
        if store.refusal().is_none() {
            self.end_requests(&plan.asked, &turns.preempted, now).await?;
        }
        if store.refusal().is_none() {
            // What operators signed has priority over what a document or a guest requests on the same guest.
            for begin in signed_jobs::begin(&self.ports, &inputs).await? {
                self.open(state, begin, generation).await?;
            }
        }
        for begin in turns.begin {
            self.open(state, begin, generation).await?;
        }
        let due = store.next_due_job().await?.filter(|due| *due > now);
        let over = maintenance.map(|kept| kept.until);
        state.again_at = state.again_at.into_iter().chain(due).chain(over).min();
        if state.marked_good != Some(generation) && store.refusal().is_none() {
            store.mark_good(generation, now).await?;
            state.marked_good = Some(generation);
            // If this was the last good document, used because starts died on a newer one, the newer one gets its next
            // chance.
            state.desired = None;
        }
        state.picture = Some(Picture { desired, observed });
        Ok(())
    }

    /// Moves the latest time seen, where the clocks are to be believed.
    async fn keep_time(&self, state: &mut State) -> Result<(), StoreError> {
        let clock = &self.ports.clock;
        let synchrony = clock.synchrony().await;
        if state.timekeeper.anchor().is_none() {
            state.timekeeper.not_before(self.ports.store.trust_state().await?.latest);
        }
        let glance = ClockSample { wall: clock.now(), forward: clock.monotonic(), synchrony };
        match state.timekeeper.look(glance) {
            Some(at) if self.ports.store.refusal().is_none() => self.ports.store.note_time(at).await,
            _ => Ok(()),
        }
    }

    /// The document in use, read anew when another was taken.
    async fn desired(&self, state: &mut State) -> Result<Arc<InUse>, StoreError> {
        let now = state.seen.desired;
        if let Some(desired) = state.desired.as_ref().filter(|desired| desired.read_at == now) {
            return Ok(Arc::clone(desired));
        }
        let document = self.ports.store.desired().await?;
        Ok(Arc::clone(state.desired.insert(Arc::new(InUse { read_at: now, document }))))
    }

    /// What operators let pass the brake under this document.
    async fn release(
        &self,
        document: Option<Numbered>,
        now: Timestamp,
    ) -> Result<Option<Release>, StoreError> {
        let Some(document) = document else { return Ok(None) };
        let changes = self.ports.store.released(document, now).await?;
        Ok((!changes.is_empty()).then(|| Release { document, changes: changes.into_iter().collect() }))
    }

    /// Ends the requests that cannot be served, and those that something has priority over. The requests behind them
    /// are considered in the next cycle, which this triggers.
    async fn end_requests(
        &self,
        asked: &[RequestDecision],
        preempted: &[(OperationId, &'static str)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for asked in asked {
            if let Answer::Refuse(problem) = &asked.answer {
                tracing::info!(request = %asked.request, %problem, "a request or an order is refused");
                self.ports.store.refuse_request(asked.request, problem.clone(), now).await?;
            }
        }
        for (request, by) in preempted {
            self.ports.store.preempt_request(*request, by, now).await?;
        }
        Ok(())
    }

    /// Puts into force what a document raised. A raise that another change overtook is judged anew in the next cycle.
    async fn raise(&self, raises: Vec<Raise>, now: Timestamp) -> Result<(), StoreError> {
        for raise in raises {
            let (guest, what) = (raise.guest, raise.what.clone());
            if self.ports.store.raise_protection(raise, now).await? == Changed::Yes {
                tracing::info!(%guest, what, "a guest is protected better");
            }
        }
        Ok(())
    }

    async fn wait(&mut self, state: &mut State) -> Woken {
        let pause = self.pause(state);
        let mut changes = self.ports.store.changes();
        let seen = state.seen;
        tokio::select! {
            // Simultaneous events are handled in a fixed order, so that a seed of the harness always gives the same
            // run.
            biased;
            () = self.stop.requested() => Woken::Stop,
            ended = state.under_way.join_next(), if !state.under_way.is_empty() => {
                self.ended(state, ended);
                Woken::Cycle
            }
            changed = changes.wait_for(|now| concerns(*now, seen)) => {
                match changed.map(|now| *now) {
                    Ok(now) if now.requests != seen.requests => Woken::Asked,
                    Ok(now) if (Changes { guests: seen.guests, operations: seen.operations, windows: seen.windows, ..now }) != seen => {
                        Woken::Cycle
                    }
                    Ok(now) => {
                        (state.seen.guests, state.seen.windows) = (now.guests, now.windows);
                        Woken::ReportOnly
                    }
                    Err(_) => Woken::Stop,
                }
            }
            () = self.ports.clock.sleep(pause) => Woken::Cycle,
        }
    }

    fn pause(&self, state: &State) -> Duration {
        if state.away > 0 {
            return AWAY_FIRST.saturating_mul(1 << (state.away - 1).min(10)).min(AWAY_MAX);
        }
        let now = self.ports.clock.now();
        let until = state.again_at.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
        let document = state.picture.as_ref().and_then(|picture| picture.desired.document.as_ref());
        let every = self.interval.under(document);
        until.map_or(every, |until| until.min(every))
    }
}
