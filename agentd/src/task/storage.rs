//! The task that keeps storage targets mounted.
//!
//! ```text
//! kernel's table of mounts (woken), devices (each second) ─┐
//! document, approvals (woken) ─────────────────────────────┼─▶ plan::storage ─▶ reported ─▶ one action by the helper
//! last answers of the helper and the disk ─────────────────┤          ▲                               │
//! disks and servers tried, Proxmox's view of the storage ──┘          │                               │
//!                                                                     └──────── always observed again ┘
//! ```
//! There is no journal of mounts. The kernel's table holds what is mounted, and each cycle begins by reading it. So an
//! agent that was killed continues from there (`docs/adr/0021`). Before each action a line is written to the audit.
//! Observations are reported before any action on them, so a hanging helper delays no news. Deliberately absent:
//! decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::json::chain;
use holdfast_protocol::report::StorageState;
use holdfast_protocol::storage::report::TargetReport;
use holdfast_protocol::storage::{StorageTarget, TargetState};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

mod entries;
mod memory;
mod offsite;
mod probes;

use self::entries::{Entries, With};
use self::memory::{Memory, line, report};
use self::offsite::OffSite;
use self::probes::Probes;
use super::stop::Stop;
use crate::execute::entry::Keeper;
use crate::execute::offsite::Asker;
use crate::execute::storage::{Order, Outcome, perform};
use crate::model::offsite::Pruners;
use crate::model::storage::{
    FirstPoll, LastStorageState, MountSeen, StorageView, TargetMemory, TargetRecord,
};
use crate::model::view::HostSnapshot;
use crate::plan::storage::{Judged, TargetAction, TargetFacts, judge, problem, said, waiting};
use crate::port::clock::Clock;
use crate::port::disk_marker::{Before, Expected};
use crate::port::helper::Helper;
use crate::port::mounts::{Disks, Mounts};
use crate::port::pve::Pve;
use crate::port::store::protection::Changed;
use crate::port::store::{Changes, Store, StoreError};
use crate::port::target_probe::TargetProbe;

/// How often devices are checked while a target is in force. A check reads a table and a folder, and no disk.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The interval without any target.
const IDLE: Duration = Duration::from_secs(60);

pub struct StorageTask {
    /// The document, what was approved, and the audit.
    pub store: Store,
    pub helper: Helper,
    /// The kernel's table of mounts.
    pub mounts: Arc<Mounts>,
    /// Where the view is published.
    pub view: watch::Sender<Arc<StorageView>>,
    /// Where the entries of storages are.
    pub pve: Arc<dyn Pve>,
    /// What can make them; none where root gave no token for it.
    pub keeper: Option<Keeper>,
    /// The client that queries backup servers.
    pub asker: Asker,
    /// Who removes backups from them.
    pub pruners: watch::Sender<Arc<Pruners>>,
    /// What tries disks and servers.
    pub probe: TargetProbe,
    /// The host as last observed: Proxmox's own status of its storages.
    pub host: watch::Receiver<Arc<HostSnapshot>>,
    pub clock: Arc<dyn Clock>,
}

/// What is remembered between cycles. Nothing of it is needed after a restart.
#[derive(Default)]
struct State {
    wanted: Vec<StorageTarget>,
    records: Vec<TargetRecord>,
    read_at: Option<Changes>,
    disks: Disks,
    targets: BTreeMap<TargetName, Memory>,
    under_way: JoinSet<(TargetName, Outcome)>,
    entries: Entries,
    off_site: OffSite,
    probes: Probes,
}

/// One target in one observation.
struct OneLook {
    name: TargetName,
    judged: Judged,
    device: Option<String>,
    /// Proxmox's status of the storage, if there is one.
    said: Option<LastStorageState>,
}

impl StorageTask {
    /// Manages targets until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut state = State::default();
        let mut changes = self.store.changes();
        loop {
            let now = *changes.borrow_and_update();
            if let Err(error) = self.turn(&mut state, now).await {
                tracing::warn!(error = chain(&error), "storage is left as it is in this turn");
            }
            let in_force = state.records.iter().any(|record| record.status == TargetState::Attached);
            let outstanding = state.records.iter().any(|record| record.entry.is_some());
            let pause =
                if in_force || outstanding || !state.under_way.is_empty() { LOOK_EVERY } else { IDLE };
            let with = With { store: &self.store, keeper: self.keeper.as_ref(), clock: self.clock.as_ref() };
            tokio::select! {
                biased;
                () = stop.requested() => return,
                () = self.mounts.changed() => {}
                ended = state.under_way.join_next(), if !state.under_way.is_empty() => {
                    self.ended(&mut state, ended).await;
                }
                news = state.entries.news() => state.entries.hear(news, &with).await,
                news = state.off_site.news() => {
                    if let Err(error) = state.off_site.hear(news, &state.records, &self.pruners, &with).await {
                        tracing::warn!(error = chain(&error), "what a backup server said is asked again");
                    }
                }
                news = state.probes.news() => {
                    let State { probes, targets, .. } = &mut state;
                    probes.hear(news, targets, self.clock.monotonic());
                }
                heard = news(&mut changes, now) => if heard == HelperReply::NoMore { return },
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
            Ok(mounts) => look(state, &mounts, &self.host.borrow()),
            Err(error) => {
                self.view.send_modify(|view| {
                    let problems = vec![ErrorBody::new(ErrorCode::Unavailable, chain(&error))];
                    *view = Arc::new(StorageView { problems, ..StorageView::clone(view) });
                });
                return Ok(());
            }
        };
        self.report(state, &looked).await;
        state.entries.ask(&self.pve, self.clock.monotonic(), &state.records);
        let statuses = looked.iter().map(|look| (look.name.clone(), look.judged.status)).collect();
        let with = With { store: &self.store, keeper: self.keeper.as_ref(), clock: self.clock.as_ref() };
        state.entries.step(&state.records, &state.wanted, &statuses, &with).await?;
        state.off_site.step(&state.records, &state.wanted, &self.asker, &with).await?;
        state.probes.begin(&state.records, &state.targets, &self.probe, self.clock.monotonic());
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
        // Also for another document: its credentials may be the right ones now.
        state.entries.changed();
        state.off_site.changed();
        state.records = records;
        state.read_at = Some(now);
        Ok(())
    }

    /// Reports the state of all targets before any action on them.
    async fn report(&self, state: &mut State, looked: &[OneLook]) {
        let now = self.clock.now();
        let mut news = Vec::new();
        let mut view = StorageView { looked: FirstPoll::Yes, ..StorageView::default() };
        for OneLook { name, judged, device, said } in looked {
            let record = state.records.iter().find(|record| record.approval.name == *name);
            let wanted = state.wanted.iter().find(|target| target.name == *name);
            let memory = state.targets.entry(name.clone()).or_default();
            memory.target.said = said.unwrap_or(memory.target.said);
            let since = match memory.reported {
                Some((status, since)) if status == judged.status => since,
                before => {
                    memory.reported = Some((judged.status, now));
                    let action = line(before.map(|(status, _)| status), judged.status);
                    news.extend(action.map(|action| (action, format!("{name}: {}", judged.reason))));
                    now
                }
            };
            view.problems.extend(problem(name, judged, record));
            view.waiting.extend(judged.held.as_ref().and_then(waiting));
            let entry = state.entries.reported(record, self.keeper.as_ref());
            view.problems.extend(entry.iter().map(|what| {
                ErrorBody::new(ErrorCode::StorageWrong, format!("storage {name} in Proxmox: {what}"))
            }));
            let reported = report(name, judged, (wanted, record), since, device.clone());
            view.problems.extend(state.off_site.problems(name));
            let off_site = state.off_site.report(name);
            view.targets.extend(reported.map(|reported| TargetReport { entry, off_site, ..reported }));
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

    /// A line that cannot be written to the audit is reported in the log; the observation itself stays valid.
    async fn note(&self, action: &'static str, detail: String) {
        if let Err(error) = self.store.note_storage(action, detail, self.clock.now()).await {
            tracing::error!(error = chain(&error), action, "the audit cannot be written");
        }
    }

    /// Begins the first action that is due, if none is under way. Recorded before it is done.
    async fn begin(&self, state: &mut State, looked: Vec<OneLook>) -> Result<(), StoreError> {
        if !state.under_way.is_empty() || self.store.refusal().is_some() {
            return Ok(());
        }
        let now = self.clock.monotonic();
        for OneLook { name, judged, .. } in looked {
            let Some(action) = judged.action else { continue };
            let Some(record) = state.records.iter().find(|record| record.approval.name == name) else {
                continue;
            };
            let Some(uuid) = record.approval.backend.uuid().cloned() else { continue };
            let memory = state.targets.entry(name.clone()).or_default();
            if memory.noted != Some(action) {
                memory.tries = 0;
                memory.not_before = Duration::ZERO;
            }
            if memory.not_before > now {
                continue;
            }
            if memory.noted != Some(action) {
                let (backend, at) = (&record.approval.backend, self.clock.now());
                match action {
                    TargetAction::Mount => {
                        let detail = format!("{name}: {backend}: to be mounted, or looked at");
                        // Released between the observation and now: the next cycle reads it so.
                        if self.store.note_mounting((name.clone(), record.mark), detail, at).await?
                            == Changed::No
                        {
                            state.read_at = None;
                            return Ok(());
                        }
                    }
                    TargetAction::Unmount(why) => {
                        self.store
                            .note_storage("storage_unmount", format!("{name}: {backend}: {why}"), at)
                            .await?;
                    }
                }
                memory.noted = Some(action);
            }
            let before = if record.marked.is_some() { Before::Marked } else { Before::Never };
            let expected = Expected { target: name.clone(), mark: record.mark, before };
            let (helper, mounts) = (self.helper.clone(), Arc::clone(&self.mounts));
            state.under_way.spawn(async move {
                (name, perform(&helper, &mounts, Order { action, uuid, expected }).await)
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
            Some(Err(error)) => return tracing::error!(%error, "an action on storage panicked"),
            None => return,
        };
        if let Outcome::Mounted { marked: Some(marked), .. } = &outcome
            && let Some(record) = state.records.iter_mut().find(|record| record.approval.name == name)
        {
            let noted = self.store.note_marked((name.clone(), record.mark), *marked, self.clock.now()).await;
            match noted {
                Ok(()) => record.marked = Some(*marked),
                // It is written on the disk, and found and recorded in the next cycle.
                Err(error) => tracing::error!(error = chain(&error), "a marker cannot be noted"),
            }
        }
        let (now, at) = (self.clock.monotonic(), self.clock.now());
        state.targets.entry(name).or_default().heard(outcome, now, at);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HelperReply {
    News,
    NoMore,
}

async fn news(changes: &mut watch::Receiver<Changes>, before: Changes) -> HelperReply {
    changes.wait_for(|new| concerns(*new, before)).await.map_or(HelperReply::NoMore, |_| HelperReply::News)
}

/// Only documents and signatures are news here; the count of jobs includes changes of the permitted signers.
fn concerns(now: Changes, before: Changes) -> bool {
    (now.desired, now.jobs, now.health) != (before.desired, before.jobs, before.health)
}

/// Every target that is requested or was ever approved, by name.
fn look(state: &State, mounts: &BTreeMap<String, MountSeen>, host: &HostSnapshot) -> Vec<OneLook> {
    let approved = state.records.iter().map(|record| &record.approval.name);
    let names: BTreeSet<&TargetName> =
        state.wanted.iter().map(|target| &target.name).chain(approved).collect();
    let nothing = TargetMemory::default();
    names
        .into_iter()
        .map(|name| {
            let mount = mounts.get(name.as_str());
            let memory = state.targets.get(name);
            let proxmox = said_of(name, host, memory.and_then(|memory| memory.mounted_at));
            let judged = judge(&TargetFacts {
                wanted: state.wanted.iter().find(|target| target.name == *name),
                record: state.records.iter().find(|record| record.approval.name == *name),
                mount,
                memory: memory.map_or(&nothing, |memory| &memory.target),
                proxmox,
            });
            let device = mount.map(|mount| mount.source.clone());
            OneLook { name: name.clone(), judged, device, said: said(proxmox) }
        })
        .collect()
}

/// Proxmox's status of a storage; none if it is older than the mount, or than two polls.
fn said_of(name: &TargetName, host: &HostSnapshot, mounted_at: Option<Timestamp>) -> StorageState {
    let is_fresh = host.unobserved_since.is_none()
        && host.seen_at.is_some_and(|seen| mounted_at.is_none_or(|mounted| seen > mounted));
    let storages = host.host.iter().filter(|_| is_fresh).flat_map(|host| &host.storages);
    let said = storages.filter(|storage| storage.name == name.as_str()).map(|storage| storage.state).next();
    said.unwrap_or(StorageState::Unknown)
}
