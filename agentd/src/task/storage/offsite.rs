//! Polls of backup servers, and verification of backups.
//!
//! In: the records, the document's sealed credentials, time. Out: a row of the report, problems, and who removes
//! backups, for the plan. One query at a time, concurrent with everything else. Like mounts, queries have no journal. A
//! server lists itself what it verified, so after a lost answer the same query is sent again, and verifying twice does
//! no harm. A line is in the audit before each. Deliberately absent: decisions (`plan/offsite`), permission
//! (`gate/offsite`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{TargetName, Vmid};
use holdfast_protocol::storage::StorageTarget;
use holdfast_protocol::storage::report::OffSiteReport;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::entries::With;
use crate::execute::offsite::{Answer, Asker, Question, ask};
use crate::gate::offsite::ServerWarrant;
use crate::model::offsite::{Pruners, VerifyEnd, VerifyTask};
use crate::model::storage::TargetRecord;
use crate::plan::offsite::{due, intended, key, reported};
use crate::port::store::StoreError;

/// A list of some thousand snapshots is some megabytes over the wire.
const LOOK_EVERY: Duration = Duration::from_secs(300);

/// The interval while the server verifies backups.
const FOLLOW_EVERY: Duration = Duration::from_secs(60);

/// A server that did not answer is queried again after this, doubled up to the longest.
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// What came of one question.
pub type ServerQuery = (TargetName, Question, Answer);

/// What is remembered of one target. Nothing of it is needed after a restart.
#[derive(Default)]
struct Memory {
    report: Option<OffSiteReport>,
    running: Option<VerifyTask>,
    /// The guest whose backups are to be verified next.
    next: Option<(Vmid, u32)>,
    silent: Option<(ErrorCode, String)>,
    failed: u32,
    not_before: Duration,
}

/// All of them.
#[derive(Default)]
pub struct OffSite {
    asked: JoinSet<ServerQuery>,
    targets: BTreeMap<TargetName, Memory>,
}

impl OffSite {
    /// Documents or approvals are others.
    pub fn changed(&mut self) {
        for memory in self.targets.values_mut() {
            (memory.failed, memory.not_before) = (0, Duration::ZERO);
        }
    }

    /// The next answer; never, if no query is open.
    pub async fn news(&mut self) -> Result<ServerQuery, JoinError> {
        match self.asked.join_next().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// What is reported about a target.
    pub fn report(&self, name: &TargetName) -> Option<OffSiteReport> {
        let memory = self.targets.get(name)?;
        let silent = memory.silent.as_ref().map(|(_, says)| says.clone());
        memory.report.clone().map(|report| OffSiteReport { silent, ..report })
    }

    /// What of it is not well.
    pub fn problems(&self, name: &TargetName) -> Vec<ErrorBody> {
        let Some(memory) = self.targets.get(name) else { return Vec::new() };
        let some = |code, what: &[String], says: &str| {
            (!what.is_empty())
                .then(|| ErrorBody::new(code, format!("off-site {name}: {says}: {}", what.join(", "))))
        };
        let report = memory.report.as_ref();
        let unsealed = report.and_then(|report| {
            some(
                ErrorCode::BackupUnsealed,
                &report.unsealed,
                "the server lists backups that are not encrypted with the key that was signed for; they protect nobody",
            )
        });
        let damaged = report.and_then(|report| {
            some(ErrorCode::BackupMissing, &report.damaged, "the server found backups damaged; take new ones")
        });
        let silent = memory.silent.as_ref();
        let silent = silent.map(|(code, says)| ErrorBody::new(*code, format!("off-site {name}: {says}")));
        unsealed.into_iter().chain(damaged).chain(silent).collect()
    }

    /// Sends the next query that is due. Recorded before it is sent.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was sent.
    pub async fn step(
        &mut self,
        records: &[TargetRecord],
        wanted: &[StorageTarget],
        asker: &Asker,
        with: &With<'_>,
    ) -> Result<(), StoreError> {
        let leave: Vec<ServerWarrant> = records
            .iter()
            .filter_map(|record| {
                let goal = wanted.iter().find(|target| target.name == record.approval.name);
                ServerWarrant::of(record, goal.and_then(|target| target.creds.as_ref()))
            })
            .collect();
        let kept: BTreeSet<&TargetName> = leave.iter().map(|warrant| &warrant.approval().name).collect();
        self.targets.retain(|name, _| kept.contains(name));
        if !self.asked.is_empty() || with.store.refusal().is_some() {
            return Ok(());
        }
        for warrant in leave {
            let name = warrant.approval().name.clone();
            let memory = self.targets.entry(name.clone()).or_default();
            let question = match memory.next.take() {
                Some((guest, days)) => {
                    let detail =
                        format!("{name}: the server is asked to look through the backups of guest {guest}");
                    with.store.note_storage("offsite_verify", detail, with.clock.now()).await?;
                    Question::Verify(guest, days)
                }
                None if memory.not_before <= with.clock.monotonic() => Question::Look(memory.running.clone()),
                None => continue,
            };
            let asker = asker.clone();
            self.asked.spawn(async move {
                let answer = ask(asker, warrant, question.clone()).await;
                (name, question, answer)
            });
            return Ok(());
        }
        Ok(())
    }

    /// Takes in an answer.
    ///
    /// # Errors
    /// [`StoreError`]; then the query is sent again.
    pub async fn hear(
        &mut self,
        news: Result<ServerQuery, JoinError>,
        records: &[TargetRecord],
        pruners: &watch::Sender<Arc<Pruners>>,
        with: &With<'_>,
    ) -> Result<(), StoreError> {
        let (name, question, answer) = match news {
            Ok(news) => news,
            Err(error) => {
                tracing::error!(%error, "asking a backup server broke off");
                return Ok(());
            }
        };
        let Some(record) = records.iter().find(|record| record.approval.name == name) else { return Ok(()) };
        let memory = self.targets.entry(name.clone()).or_default();
        let now = with.clock.monotonic();
        match answer {
            Answer::Silent(code, says) => {
                tracing::warn!(target = %name, %code, says, ?question, "a backup server does not answer");
                let pause = FOLLOW_EVERY.saturating_mul(1 << memory.failed.min(10)).min(RETRY_MAX);
                memory.failed = memory.failed.saturating_add(1);
                memory.not_before = now.saturating_add(pause);
                memory.silent = Some((code, says));
            }
            Answer::Verifies(task) => {
                memory.running = Some(task);
                memory.not_before = now.saturating_add(FOLLOW_EVERY);
            }
            Answer::Looked(looked) => {
                (memory.failed, memory.silent) = (0, None);
                let ended = looked.ended.clone();
                if ended.is_some() {
                    memory.running = None;
                }
                let pause = if memory.running.is_some() { FOLLOW_EVERY } else { LOOK_EVERY };
                memory.not_before = now.saturating_add(pause);
                let at = with.clock.now();
                let known = with.store.records(Generation::NONE, at).await?;
                let ours = intended(&known, &record.approval);
                memory.report = key(&record.approval).map(|key| reported(&looked, key, &ours, at));
                memory.next = due(&looked, &ours, at).filter(|_| memory.running.is_none());
                if let Some(VerifyEnd::Badly(says)) = ended {
                    // The same is not requested again at once: the next poll will do.
                    memory.next = None;
                    let detail = format!("{name}: looking through backups ended badly: {says}");
                    with.store.note_storage("offsite_verified_badly", detail, at).await?;
                }
                if let Ok(storage) = name.as_str().parse() {
                    pruners.send_if_modified(|all| {
                        let changed = all.get(&storage) != Some(&looked.pruned_by);
                        if changed {
                            Arc::make_mut(all).insert(storage, looked.pruned_by);
                        }
                        changed
                    });
                }
            }
        }
        Ok(())
    }
}
