//! Keeps storage targets mounted that an operator approved, and sees when one goes away.
//!
//! ```text
//! kernel's table of mounts (woken), devices (each second) ─┐
//! document, approvals (woken) ─────────────────────────────┼─▶ plan::storage ─▶ told at once ─▶ one deed by the helper
//! what the helper and the disk said last ──────────────────┘          ▲                               │
//!                                                                     └──────── always looked at anew ┘
//! ```
//! There is no journal of mounts: what is mounted stands in the kernel's table, and each look begins from there, so an agent
//! that was killed goes on by looking (`docs/adr/0021`). Before each deed a line is in the audit. What is seen is told before
//! anything is done about it, so a hanging helper delays no news. Deliberately absent: decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::storage::report::{TargetReport, TargetStanding};
use holdfast_protocol::storage::{StorageTarget, TargetState};
use holdfast_protocol::strict::chain;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::stop::Stop;
use crate::execute::storage::{Order, Outcome, perform};
use crate::model::storage::{
    EntrySeen, Looked, MarkerSeen, MountSeen, StorageView, TargetMemory, TargetRecord,
};
use crate::plan::entry::differences;
use crate::plan::storage::{Deed, Judged, Known, judge, problem, waiting};
use crate::port::clock::Clock;
use crate::port::helper::Helper;
use crate::port::marker::{Before, Expected};
use crate::port::mounts::{Disks, Mounts};
use crate::port::pve::{Pve, PveError};
use crate::port::store::protection::Changed;
use crate::port::store::{Changes, Store, StoreError};

/// How often devices are looked at while a target is in force. A look reads a table and a folder, and no disk.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// With nothing to look after.
const IDLE: Duration = Duration::from_secs(60);

/// How often Proxmox's entries are held to what was approved.
const ENTRIES_EVERY: Duration = Duration::from_secs(60);

/// A deed that was refused is tried again after this, doubled up to the longest; and whenever the disks change.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// The loop.
pub struct StorageTask {
    /// The document, what was approved, and the audit.
    pub store: Store,
    /// Who mounts.
    pub helper: Helper,
    /// The kernel's word.
    pub mounts: Arc<Mounts>,
    /// Where it is told.
    pub view: watch::Sender<Arc<StorageView>>,
    /// Where the entries of storages are.
    pub pve: Arc<dyn Pve>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// What is remembered of one target.
#[derive(Default)]
struct Memory {
    target: TargetMemory,
    told: Option<(TargetStanding, Timestamp)>,
    /// The deed whose line stands in the audit: tries of it again are the same decision.
    noted: Option<Deed>,
    tries: u32,
    not_before: Duration,
}

/// What is remembered between looks. Nothing of it is needed after a restart.
#[derive(Default)]
struct State {
    wanted: Vec<StorageTarget>,
    records: Vec<TargetRecord>,
    read_at: Option<Changes>,
    disks: Disks,
    targets: BTreeMap<TargetName, Memory>,
    under_way: JoinSet<(TargetName, Outcome)>,
    entries: Option<BTreeMap<String, EntrySeen>>,
    asked: JoinSet<EntriesAnswer>,
    ask_at: Duration,
}

/// What Proxmox answers about its entries.
type EntriesAnswer = Result<BTreeMap<String, EntrySeen>, PveError>;

/// One target at one look.
struct OneLook {
    name: TargetName,
    judged: Judged,
    device: Option<String>,
}

impl StorageTask {
    /// Looks after targets until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut state = State::default();
        let mut changes = self.store.changes();
        loop {
            let now = *changes.borrow_and_update();
            if let Err(error) = self.turn(&mut state, now).await {
                tracing::warn!(error = chain(&error), "storage is left as it is in this turn");
            }
            let in_force = state.records.iter().any(|record| record.standing == TargetState::Attached);
            let pause = if in_force || !state.under_way.is_empty() { LOOK_EVERY } else { IDLE };
            tokio::select! {
                biased;
                () = stop.requested() => return,
                () = self.mounts.changed() => {}
                ended = state.under_way.join_next(), if !state.under_way.is_empty() => {
                    self.ended(&mut state, ended).await;
                }
                answer = state.asked.join_next(), if !state.asked.is_empty() => hear_entries(&mut state, answer),
                heard = news(&mut changes, now) => if heard == Heard::NoMore { return },
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    async fn turn(&self, state: &mut State, now: Changes) -> Result<(), StoreError> {
        self.read(state, now).await?;
        let disks = self.mounts.disks();
        if disks != state.disks {
            state.disks = disks;
            state.targets.values_mut().for_each(Memory::disks_changed);
        }
        let looked = match self.mounts.look() {
            Ok(mounts) => look(state, &mounts),
            Err(error) => {
                self.view.send_modify(|view| {
                    let problems = vec![Problem::new(ErrorCode::Unavailable, chain(&error))];
                    *view = Arc::new(StorageView { problems, ..StorageView::clone(view) });
                });
                return Ok(());
            }
        };
        self.tell(state, &looked).await;
        self.ask(state);
        self.begin(state, looked).await
    }

    /// Document and approvals, when they have changed.
    async fn read(&self, state: &mut State, now: Changes) -> Result<(), StoreError> {
        if state.read_at.is_some_and(|before| !concerns(now, before)) {
            return Ok(());
        }
        let document = self.store.desired().await?;
        state.wanted = document.map(|desired| desired.storage().to_vec()).unwrap_or_default();
        let records = self.store.storage_targets().await?;
        for record in &records {
            // Another approval is another question to the helper.
            if !state.records.contains(record) {
                state.targets.entry(record.approval.name.clone()).or_default().disks_changed();
            }
        }
        if state.records != records {
            state.ask_at = Duration::ZERO;
        }
        state.records = records;
        state.read_at = Some(now);
        Ok(())
    }

    /// Proxmox's entries are asked for now and then, beside all else: a Proxmox that hangs delays no news of a disk.
    fn ask(&self, state: &mut State) {
        let now = self.clock.monotonic();
        let in_force = state.records.iter().any(|record| record.standing == TargetState::Attached);
        if in_force && state.asked.is_empty() && state.ask_at <= now {
            state.ask_at = now.saturating_add(ENTRIES_EVERY);
            let pve = Arc::clone(&self.pve);
            state.asked.spawn(async move { pve.storage_entries().await });
        }
    }

    /// Says how all stand, before anything is done about it.
    async fn tell(&self, state: &mut State, looked: &[OneLook]) {
        let now = self.clock.now();
        let mut news = Vec::new();
        let mut view = StorageView { looked: Looked::Yes, ..StorageView::default() };
        for OneLook { name, judged, device } in looked {
            let record = state.records.iter().find(|record| record.approval.name == *name);
            let wanted = state.wanted.iter().find(|target| target.name == *name);
            let memory = state.targets.entry(name.clone()).or_default();
            let since = match memory.told {
                Some((standing, since)) if standing == judged.standing => since,
                _ => {
                    memory.told = Some((judged.standing, now));
                    news.extend(
                        line(judged.standing).map(|action| (action, format!("{name}: {}", judged.reason))),
                    );
                    now
                }
            };
            view.problems.extend(problem(name, judged, record));
            view.waiting.extend(judged.held.as_ref().and_then(waiting));
            let entry = entry(state.entries.as_ref(), record);
            view.problems.extend(entry.iter().map(|what| {
                Problem::new(ErrorCode::StorageWrong, format!("storage {name} in Proxmox: {what}"))
            }));
            let told = report(name, judged, (wanted, record), since, device.clone());
            view.targets.extend(told.map(|told| TargetReport { entry, ..told }));
        }
        self.view.send_if_modified(|kept| {
            let changed = **kept != view;
            if changed {
                *kept = Arc::new(view);
            }
            changed
        });
        for (action, detail) in news {
            tracing::info!(action, detail, "storage");
            self.note(action, detail).await;
        }
    }

    /// A line that cannot be written is told in the log; what was seen is true all the same.
    async fn note(&self, action: &'static str, detail: String) {
        if let Err(error) = self.store.note_storage(action, detail, self.clock.now()).await {
            tracing::error!(error = chain(&error), action, "the audit cannot be written");
        }
    }

    /// Begins the first deed whose time has come, where none is under way. Written before done.
    async fn begin(&self, state: &mut State, looked: Vec<OneLook>) -> Result<(), StoreError> {
        if !state.under_way.is_empty() || self.store.refusal().is_some() {
            return Ok(());
        }
        let now = self.clock.monotonic();
        for OneLook { name, judged, .. } in looked {
            let Some(deed) = judged.deed else { continue };
            let Some(record) = state.records.iter().find(|record| record.approval.name == name) else {
                continue;
            };
            let Some(uuid) = record.approval.medium.uuid().cloned() else { continue };
            let memory = state.targets.entry(name.clone()).or_default();
            if memory.noted != Some(deed) {
                memory.tries = 0;
                memory.not_before = Duration::ZERO;
            }
            if memory.not_before > now {
                continue;
            }
            if memory.noted != Some(deed) {
                let (medium, at) = (&record.approval.medium, self.clock.now());
                match deed {
                    Deed::Mount => {
                        let detail = format!("{name}: {medium}: to be mounted, or looked at");
                        // Let go between the look and now: the next turn reads so.
                        if self.store.note_mounting((name.clone(), record.mark), detail, at).await?
                            == Changed::No
                        {
                            state.read_at = None;
                            return Ok(());
                        }
                    }
                    Deed::Unmount(why) => {
                        self.store
                            .note_storage("storage_unmount", format!("{name}: {medium}: {why}"), at)
                            .await?;
                    }
                }
                memory.noted = Some(deed);
            }
            let before = if record.marked.is_some() { Before::Marked } else { Before::Never };
            let expected = Expected { target: name.clone(), mark: record.mark, before };
            let (helper, mounts) = (self.helper.clone(), Arc::clone(&self.mounts));
            state.under_way.spawn(async move {
                (name, perform(&helper, &mounts, Order { deed, uuid, expected }).await)
            });
            return Ok(());
        }
        Ok(())
    }

    async fn ended(
        &self,
        state: &mut State,
        ended: Option<Result<(TargetName, Outcome), tokio::task::JoinError>>,
    ) {
        let (name, outcome) = match ended {
            Some(Ok(ended)) => ended,
            Some(Err(error)) => return tracing::error!(%error, "a deed about storage broke"),
            None => return,
        };
        if let Outcome::Mounted { marked: Some(marked), .. } = &outcome
            && let Some(record) = state.records.iter_mut().find(|record| record.approval.name == name)
        {
            let noted = self.store.note_marked((name.clone(), record.mark), *marked, self.clock.now()).await;
            match noted {
                Ok(()) => record.marked = Some(*marked),
                // It is written on the disk, and found and noted at the next look.
                Err(error) => tracing::error!(error = chain(&error), "a marker cannot be noted"),
            }
        }
        let now = self.clock.monotonic();
        state.targets.entry(name).or_default().heard(outcome, now);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    News,
    NoMore,
}

async fn news(changes: &mut watch::Receiver<Changes>, before: Changes) -> Heard {
    changes.wait_for(|new| concerns(*new, before)).await.map_or(Heard::NoMore, |_| Heard::News)
}

fn hear_entries(state: &mut State, answer: Option<Result<EntriesAnswer, tokio::task::JoinError>>) {
    match answer {
        Some(Ok(Ok(entries))) => state.entries = Some(entries),
        // What was seen before stands until it is seen otherwise.
        Some(Ok(Err(error))) => {
            tracing::warn!(error = chain(&error), "the entries of storages cannot be read")
        }
        Some(Err(error)) => tracing::error!(%error, "asking for the entries of storages broke off"),
        None => {}
    }
}

/// How the entry of a target in use differs; nothing, before Proxmox was asked.
fn entry(entries: Option<&BTreeMap<String, EntrySeen>>, record: Option<&TargetRecord>) -> Vec<String> {
    match (entries, record.filter(|record| record.standing == TargetState::Attached)) {
        (Some(entries), Some(record)) => {
            differences(&record.approval, entries.get(record.approval.name.as_str()))
        }
        _ => Vec::new(),
    }
}

/// Only documents and signatures are news here; jobs are counted with those who may sign.
fn concerns(now: Changes, before: Changes) -> bool {
    (now.desired, now.jobs, now.health) != (before.desired, before.jobs, before.health)
}

impl Memory {
    fn heard(&mut self, outcome: Outcome, now: Duration) {
        let settled = match outcome {
            Outcome::Mounted { id, marker, .. } => {
                let settled = !matches!(marker, MarkerSeen::Unread(_) | MarkerSeen::Unwritable(_));
                self.target.refusal = None;
                self.target.was_mounted = true;
                self.target.wrong =
                    matches!(marker, MarkerSeen::Missing | MarkerSeen::Other(_)).then(|| marker.clone());
                self.target.confirmed = Some((id, marker));
                settled
            }
            Outcome::Unmounted => {
                self.target.refusal = None;
                self.target.confirmed = None;
                true
            }
            Outcome::Refused(code, says) => {
                self.target.refusal = Some((code, says));
                false
            }
        };
        if settled {
            self.tries = 0;
            self.noted = None;
            self.not_before = Duration::ZERO;
        } else {
            let pause = RETRY_FIRST.saturating_mul(1 << self.tries.min(10)).min(RETRY_MAX);
            self.tries = self.tries.saturating_add(1);
            self.not_before = now.saturating_add(pause);
        }
    }

    /// What was said of the disks before is no longer so.
    fn disks_changed(&mut self) {
        self.target.wrong = None;
        self.tries = 0;
        self.not_before = Duration::ZERO;
    }
}

/// Every target that is wished for or was ever approved, by name.
fn look(state: &State, mounts: &BTreeMap<String, MountSeen>) -> Vec<OneLook> {
    let approved = state.records.iter().map(|record| &record.approval.name);
    let names: BTreeSet<&TargetName> =
        state.wanted.iter().map(|target| &target.name).chain(approved).collect();
    let nothing = TargetMemory::default();
    names
        .into_iter()
        .map(|name| {
            let mount = mounts.get(name.as_str());
            let judged = judge(&Known {
                wanted: state.wanted.iter().find(|target| target.name == *name),
                record: state.records.iter().find(|record| record.approval.name == *name),
                mount,
                memory: state.targets.get(name).map_or(&nothing, |memory| &memory.target),
            });
            OneLook { name: name.clone(), judged, device: mount.map(|mount| mount.source.clone()) }
        })
        .collect()
}

/// The line of the audit for a change; what is only not there yet is none.
const fn line(standing: TargetStanding) -> Option<&'static str> {
    match standing {
        TargetStanding::Mounted => Some("storage_mounted"),
        TargetStanding::Unmarked => Some("storage_unmarked"),
        TargetStanding::Dropped => Some("storage_dropped"),
        TargetStanding::Wrong => Some("storage_wrong"),
        TargetStanding::Refused => Some("storage_refused"),
        TargetStanding::Detached => Some("storage_detached"),
        TargetStanding::Absent | TargetStanding::Held | TargetStanding::ByProxmox => None,
    }
}

/// What is in force is told before what is wished. None, where there is neither.
fn report(
    name: &TargetName,
    judged: &Judged,
    (wanted, record): (Option<&StorageTarget>, Option<&TargetRecord>),
    since: Timestamp,
    device: Option<String>,
) -> Option<TargetReport> {
    let in_force = record.map(|record| &record.approval);
    let medium = in_force.map(|approval| &approval.medium).or(wanted.map(|target| &target.medium))?;
    let held = (judged.standing == TargetStanding::Held).then_some(wanted).flatten();
    let medium = held.map_or(medium, |target| &target.medium);
    let (role, class) = match (held, in_force, wanted) {
        (Some(target), _, _) | (None, None, Some(target)) => (target.role, target.class),
        (None, Some(approval), _) => (approval.role, approval.class),
        (None, None, None) => return None,
    };
    Some(TargetReport {
        name: name.clone(),
        medium: medium.to_string(),
        role,
        class,
        label: wanted.map(|target| target.label.as_str().to_owned()),
        standing: judged.standing,
        since,
        reason: judged.reason.clone(),
        entry: Vec::new(),
        device,
        iops: record.and_then(|record| record.marked).and_then(|marked| marked.iops),
    })
}
