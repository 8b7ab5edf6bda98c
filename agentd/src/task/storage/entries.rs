//! Storage entries of Proxmox: compared and changed.
//!
//! In: the records, the document's requests, and the state of each target. Out: text for the report, and one call at a
//! time, concurrent with everything else: a Proxmox that hangs delays no news of a disk. Like mounts, entries have no
//! journal. Each try begins from what Proxmox shows since the last one, and a settled change is recorded with its line
//! in the audit. Deliberately absent: decisions (`plan/owed`), permission (`gate/entry`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::json::chain;
use holdfast_protocol::storage::report::TargetStatus;
use holdfast_protocol::storage::{StorageTarget, TargetState};
use tokio::task::{JoinError, JoinSet};

use crate::execute::entry::{EntryOutcome, Keeper, perform};
use crate::gate::entry::EntryWarrant;
use crate::model::storage::{EntryAction, EntrySeen, TargetRecord};
use crate::plan::entry::differences;
use crate::plan::storage_entry_actions::{EntryChange, NextEntryStep, outstanding};
use crate::port::clock::Clock;
use crate::port::pve::{Pve, PveError};
use crate::port::store::protection::Changed;
use crate::port::store::{Store, StoreError};

/// How often Proxmox's entries are compared with what was approved.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// A call that was refused is made again after this, doubled up to the longest; and whenever document or approval change.
const RETRY_FIRST: Duration = Duration::from_secs(60);
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// What Proxmox answers about its entries.
type Answer = Result<BTreeMap<String, EntrySeen>, PveError>;

/// What came of one call.
pub type Ended = (TargetName, EntryAction, EntryOutcome);

/// What ended by itself.
pub enum News {
    Seen(Result<Answer, JoinError>),
    Called(Result<Ended, JoinError>),
}

/// What is remembered of tries about one target.
#[derive(Default)]
struct Tries {
    count: u32,
    not_before: Duration,
    /// The change whose line is in the audit: repeated tries of it are the same decision.
    noted: Option<(EntryAction, EntryChange)>,
    refusal: Option<(ErrorCode, String)>,
}

/// Nothing of it is needed after a restart.
#[derive(Default)]
pub struct Entries {
    seen: Option<BTreeMap<String, EntrySeen>>,
    /// Whether they were seen since the last call.
    fresh: Fresh,
    asked: JoinSet<Answer>,
    ask_at: Duration,
    called: JoinSet<Ended>,
    tries: BTreeMap<TargetName, Tries>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Fresh {
    #[default]
    No,
    Yes,
}

/// What a step is made with.
pub struct With<'a> {
    /// Where it is written down.
    pub store: &'a Store,
    /// What can change entries; none where root gave no token for it.
    pub keeper: Option<&'a Keeper>,
    pub clock: &'a dyn Clock,
}

impl Entries {
    /// Reads the entries when it is time, and anything depends on them.
    pub fn ask(&mut self, pve: &Arc<dyn Pve>, now: Duration, records: &[TargetRecord]) {
        if records.iter().any(concerned)
            && self.asked.is_empty()
            && self.called.is_empty()
            && self.ask_at <= now
        {
            self.ask_at = now.saturating_add(ASK_EVERY);
            let pve = Arc::clone(pve);
            self.asked.spawn(async move { pve.storage_entries().await });
        }
    }

    /// Documents or approvals have changed: what was refused before may be right now.
    pub fn changed(&mut self) {
        self.ask_at = Duration::ZERO;
        for tries in self.tries.values_mut() {
            (tries.count, tries.not_before) = (0, Duration::ZERO);
        }
    }

    /// Whether a call is under way.
    pub fn is_busy(&self) -> bool {
        !self.called.is_empty() || !self.asked.is_empty()
    }

    /// The next thing that ends by itself; never, where nothing is under way.
    pub async fn news(&mut self) -> News {
        tokio::select! {
            Some(answer) = self.asked.join_next() => News::Seen(answer),
            Some(ended) = self.called.join_next() => News::Called(ended),
            else => std::future::pending().await,
        }
    }

    /// How the entry of a target in use differs, and why it could not be made; nothing before the first answer of
    /// Proxmox.
    pub fn reported(&self, record: Option<&TargetRecord>, keeper: Option<&Keeper>) -> Vec<String> {
        let Some(record) = record else { return Vec::new() };
        let name = &record.approval.name;
        // One that is about to be made is not missing.
        let comes = record.entry.is_some() && keeper.is_some_and(|keeper| keeper.targets.contains(name));
        let mut reported = match &self.seen {
            Some(seen) if record.status == TargetState::Attached => match seen.get(name.as_str()) {
                None if comes => Vec::new(),
                entry => differences(&record.approval, entry),
            },
            _ => Vec::new(),
        };
        if let Some((code, says)) = self.tries.get(name).and_then(|tries| tries.refusal.as_ref()) {
            reported.push(format!("the agent could not change it ({code}): {says}"));
        }
        reported
    }

    /// Takes in what ended.
    pub async fn hear(&mut self, news: News, with: &With<'_>) {
        match news {
            News::Seen(Ok(Ok(entries))) => {
                self.seen = Some(entries);
                self.fresh = Fresh::Yes;
            }
            // What was seen before stays valid until something else is seen.
            News::Seen(Ok(Err(error))) => {
                tracing::warn!(error = chain(&error), "the entries of storages cannot be read");
            }
            News::Seen(Err(error)) => tracing::error!(%error, "asking for the entries of storages broke off"),
            News::Called(Ok((name, outstanding, outcome))) => {
                self.called(name, outstanding, outcome, with).await
            }
            News::Called(Err(error)) => {
                tracing::error!(%error, "a call about an entry broke off");
                self.look_again();
            }
        }
    }

    fn look_again(&mut self) {
        self.fresh = Fresh::No;
        self.ask_at = Duration::ZERO;
    }

    async fn called(
        &mut self,
        name: TargetName,
        outstanding: EntryAction,
        outcome: EntryOutcome,
        with: &With<'_>,
    ) {
        self.look_again();
        let now = with.clock.monotonic();
        let tries = self.tries.entry(name.clone()).or_default();
        let refusal = match outcome {
            EntryOutcome::Done => None,
            EntryOutcome::Hidden => {
                let why =
                    "Proxmox has an entry of that name, which the agent may not see; it is left as it is";
                return self.settle(&name, outstanding, why, with).await;
            }
            EntryOutcome::Unsure(says) => Some((ErrorCode::Unavailable, says)),
            EntryOutcome::Refused(code, says) => Some((code, says)),
        };
        if let Some((code, says)) = &refusal {
            let pause = RETRY_FIRST.saturating_mul(1 << tries.count.min(10)).min(RETRY_MAX);
            tries.count = tries.count.saturating_add(1);
            tries.not_before = now.saturating_add(pause);
            tracing::warn!(target = %name, %code, says, "an entry of Proxmox could not be changed");
        }
        // The same refusal again is no news.
        if tries.refusal != refusal {
            if let Some((code, says)) = &refusal {
                let detail = format!("{name}: {code}: {says}, by job {}", outstanding.job);
                if let Err(error) =
                    with.store.note_storage("storage_entry_refused", detail, with.clock.now()).await
                {
                    tracing::error!(error = chain(&error), "the audit cannot be written");
                }
            }
            self.tries.entry(name).or_default().refusal = refusal;
        }
    }

    async fn settle(
        &mut self,
        name: &TargetName,
        outstanding: EntryAction,
        why: &'static str,
        with: &With<'_>,
    ) {
        let detail = format!("{name}: {why}, by job {}", outstanding.job);
        match with.store.settle_entry((name.clone(), outstanding), detail, with.clock.now()).await {
            Ok(_) => {
                self.tries.remove(name);
            }
            Err(error) => tracing::error!(error = chain(&error), "what is settled cannot be noted"),
        }
    }

    /// Takes the first step that is due. Recorded before it is done.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was done then.
    pub async fn step(
        &mut self,
        records: &[TargetRecord],
        wanted: &[StorageTarget],
        statuses: &BTreeMap<TargetName, TargetStatus>,
        with: &With<'_>,
    ) -> Result<(), StoreError> {
        if self.is_busy() || self.fresh == Fresh::No || with.store.refusal().is_some() {
            return Ok(());
        }
        let kept: BTreeSet<&TargetName> = records
            .iter()
            .filter(|record| record.entry.is_some())
            .map(|record| &record.approval.name)
            .collect();
        self.tries.retain(|name, _| kept.contains(name));
        let now = with.clock.monotonic();
        for record in records {
            let (name, Some(due)) = (&record.approval.name, record.entry) else { continue };
            let status = statuses.get(name).copied().unwrap_or(TargetStatus::Absent);
            match outstanding(record, status, self.seen.as_ref()) {
                NextEntryStep::Nothing => {}
                NextEntryStep::Settled(why) => {
                    self.settle(name, due, why, with).await;
                    self.fresh = Fresh::No;
                    return Ok(());
                }
                NextEntryStep::Do(action) => {
                    let Some(keeper) = with.keeper else { continue };
                    if self.tries.get(name).is_some_and(|tries| tries.not_before > now) {
                        continue;
                    }
                    let offered =
                        wanted.iter().find(|target| target.name == *name).and_then(|t| t.creds.as_ref());
                    let warrant = match EntryWarrant::of(record, offered, &keeper.targets) {
                        Ok(warrant) => warrant,
                        Err(why) => {
                            self.tries.entry(name.clone()).or_default().refusal =
                                Some((why.code(), why.to_string()));
                            continue;
                        }
                    };
                    return self.begin(warrant, action, keeper, with).await;
                }
            }
        }
        Ok(())
    }

    async fn begin(
        &mut self,
        warrant: EntryWarrant,
        action: EntryChange,
        keeper: &Keeper,
        with: &With<'_>,
    ) -> Result<(), StoreError> {
        let (name, due) = (warrant.approval().name.clone(), warrant.outstanding());
        let tries = self.tries.entry(name.clone()).or_default();
        if tries.noted != Some((due, action)) {
            let detail =
                format!("{name}: {}: {}, by job {}", warrant.approval().backend, action.words(), due.job);
            let noted = with.store.note_entry((name.clone(), due), detail, with.clock.now()).await?;
            // Signed differently between the observation and now: the next cycle reads it so.
            if noted == Changed::No {
                return Ok(());
            }
            tries.noted = Some((due, action));
        }
        let keeper = keeper.clone();
        self.called.spawn(async move { (name, due, perform(keeper, warrant, action).await) });
        Ok(())
    }
}

fn concerned(record: &TargetRecord) -> bool {
    record.status == TargetState::Attached || record.entry.is_some()
}
