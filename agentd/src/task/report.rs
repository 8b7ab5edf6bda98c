//! The task that builds the report.
//!
//! In: the views of the reconcile loop and the storage loop, and the store's change notices. Out: all sections, for the
//! tasks that pass them on (the hub's loop, the admin socket). Changes that come in a burst are reported once.
//! Deliberately absent: which sections the hub already has; the hub's loop knows that.

mod conditions;

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::break_glass::BreakGlassStatus;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::chain;
use holdfast_protocol::report::{
    AgentSection, Condition, GuestReport, Running, Sections, TrustSection, WaitingForSignature,
};
use holdfast_protocol::storage::HostRecipient;
use jiff::Timestamp;
use tokio::sync::watch;

use self::conditions::{ReportMemory, records_fault};
use super::break_glass::SharedStatus;
use super::stop::Stop;
use crate::gate::only_copy::lies_on;
use crate::model::hardware_health::HardwareView;
use crate::model::records::VolumeId;
use crate::model::report_size::shorten;
use crate::model::storage::{FirstPoll, StorageView};
use crate::model::token_age::TokenAge;
use crate::model::tunnel::TunnelsView;
use crate::model::usage_levels::UsageLevels;
use crate::model::view::{HostSnapshot, News};
use crate::plan::conditions::HostKnowledge;
use crate::plan::report::{long_under_way, pending_rosters};
use crate::plan::{escrow, host_maintenance, inherited};
use crate::port::clock::Clock;
use crate::port::host_replacement::HandOverFolder;
use crate::port::hub::Contact;
use crate::port::slots_file;
use crate::port::store::{Changes, Refusal, Store, StoreError};

/// Ended operations that are still reported: about a day of a busy host, 20 KiB.
const ENDED_OPERATIONS: u32 = 20;

/// Steps of a second belong together; a person sees no difference.
const GATHER: Duration = Duration::from_millis(100);

/// What of a report could not be kept is tried again after this.
const KEEP_AGAIN: Duration = Duration::from_secs(30);

pub struct ReportTask {
    /// Operations and the desired document.
    pub store: Store,
    /// What the reconcile loop last saw.
    pub view: watch::Receiver<Arc<HostSnapshot>>,
    /// What the storage loop last saw.
    pub storage: watch::Receiver<Arc<StorageView>>,
    /// What the hardware loop last read.
    pub hardware: watch::Receiver<Arc<HardwareView>>,
    /// What root's break-glass program says.
    pub break_glass: watch::Receiver<SharedStatus>,
    /// What the tunnels' loop last found.
    pub tunnels: watch::Receiver<Arc<TunnelsView>>,
    /// Levels of use that are too high.
    pub levels: watch::Receiver<Arc<UsageLevels>>,
    /// Where the report is published.
    pub sections: watch::Sender<Arc<Sections>>,
    /// For the pause between bursts.
    pub clock: Arc<dyn Clock>,
    /// When this agent started.
    pub started_at: Timestamp,
    /// What was wrong at its start, and is for as long as it runs.
    pub status: Vec<ErrorBody>,
    /// What a lost host left, if this one took its place.
    pub handed: HandOverFolder,
    /// What secrets for this host are sealed to.
    pub recipient: Option<HostRecipient>,
    /// The state of the contact with the hub.
    pub contact: watch::Receiver<Contact>,
    /// Says how old the tokens for Proxmox are.
    pub token_ages: TokenAges,
}

/// Reads the ages of the tokens for Proxmox.
pub type TokenAges = Arc<dyn Fn() -> Vec<TokenAge> + Send + Sync>;

/// What a report is made from, in addition to the store.
#[derive(Clone, Copy)]
struct Sources<'a> {
    view: &'a HostSnapshot,
    storage: &'a StorageView,
    hardware: &'a HardwareView,
    levels: &'a UsageLevels,
    tunnels: &'a TunnelsView,
    break_glass: Option<&'a BreakGlassStatus>,
}

impl ReportTask {
    /// Reports until the agent stops.
    pub async fn run(mut self, mut stop: Stop) {
        let mut changes = self.store.changes();
        let (mut reported, mut memory) = (None, ReportMemory::default());
        loop {
            // The views are read first: any operation that they began is among the operations that are read afterwards.
            // In the other order a host could be shown at rest while an operation is under way on it.
            let view = Arc::clone(&self.view.borrow_and_update());
            let storage = Arc::clone(&self.storage.borrow_and_update());
            let hardware = Arc::clone(&self.hardware.borrow_and_update());
            let levels = Arc::clone(&self.levels.borrow_and_update());
            let way = Arc::clone(&self.break_glass.borrow_and_update());
            let tunnels = Arc::clone(&self.tunnels.borrow_and_update());
            let sources = Sources {
                view: &view,
                storage: &storage,
                hardware: &hardware,
                levels: &levels,
                tunnels: &tunnels,
                break_glass: way.as_ref().as_ref(),
            };
            let now = *changes.borrow_and_update();
            match self.assemble(sources, (reported, now), &mut memory).await {
                Ok(sections) => {
                    self.publish(sections);
                    reported = Some(now);
                }
                Err(error) => tracing::error!(error = chain(&error), "the report could not be put together"),
            }
            tokio::select! {
                biased;
                () = stop.requested() => return,
                changed = changes.changed() => if changed.is_err() { return },
                changed = self.view.wait_for(|next| view.news(next) == News::Yes) => if changed.is_err() { return },
                changed = self.storage.changed() => if changed.is_err() { return },
                changed = self.hardware.changed() => if changed.is_err() { return },
                changed = self.break_glass.changed() => if changed.is_err() { return },
                changed = self.tunnels.changed() => if changed.is_err() { return },
                changed = self.levels.changed() => if changed.is_err() { return },
                () = self.clock.sleep(KEEP_AGAIN), if memory.conditions.wait_to_be_kept(&self.store) => {}
            }
            self.clock.sleep(GATHER).await;
        }
    }

    fn publish(&self, sections: Sections) {
        self.sections.send_if_modified(|kept| {
            // What was published fits: to measure it anew costs as much as to write it.
            if **kept == sections {
                return false;
            }
            let sections = shorten(sections);
            let changed = **kept != sections;
            if changed {
                *kept = Arc::new(sections);
            }
            changed
        });
    }

    /// Shown with a request that needs a signature: the age of the guest's newest backup and newest proof.
    async fn with_backups(
        &self,
        mut waiting: Vec<WaitingForSignature>,
    ) -> Result<Vec<WaitingForSignature>, StoreError> {
        for one in &mut waiting {
            let Some(guest) = one.guest else { continue };
            let newest = self.store.backups(guest, 1).await?;
            one.last_backup = newest.first().map(|backup| backup.taken_at);
            one.last_proof = self.store.last_proof(guest, self.clock.now()).await?;
        }
        Ok(waiting)
    }

    /// The guests, each with its data on storage that is gone.
    async fn with_storage(
        &self,
        mut guests: Vec<GuestReport>,
        storage: &StorageView,
    ) -> Result<Vec<GuestReport>, StoreError> {
        for target in storage.targets.iter().filter(|target| target.status.is_gone()) {
            let backed_up = self.store.newest_backup_on(target.name.clone()).await?;
            for guest in &mut guests {
                let lies = |volume: &&String| lies_on(&VolumeId::new(volume.as_str()), &target.name);
                let volumes: Vec<&str> = guest.volumes.iter().filter(lies).map(String::as_str).collect();
                let (name, status) = (&target.name, target.status.as_str());
                let mut reported = Vec::new();
                if !volumes.is_empty() {
                    reported.push(format!("{} on storage {name}, which is {status}", volumes.join(", ")));
                }
                if guest.uid.is_some_and(|uid| backed_up.contains(&uid)) {
                    reported.push(format!("its newest backup is on storage {name}, which is {status}"));
                }
                let code = ErrorCode::StorageGone;
                guest.conditions.extend(reported.into_iter().map(|message| Condition { code, message }));
            }
        }
        Ok(guests)
    }

    /// The progress of the guests of a lost host whose place this one took.
    async fn way_back(&self) -> Result<Option<ErrorBody>, StoreError> {
        match self.store.way_back().await? {
            Some(way) => Ok(inherited::reported(&way)),
            None => Ok(self.handed.problem()),
        }
    }

    /// Records that were set aside took roster and audit with them. The empty ones in their place would look like an audit
    /// that was cut off.
    async fn trust(&self) -> Result<Option<TrustSection>, StoreError> {
        match self.store.refusal() {
            Some(Refusal::Damaged { .. }) => Ok(None),
            Some(Refusal::Full { .. } | Refusal::Broken { .. } | Refusal::Replaced { .. }) | None => {
                self.store.trust_section().await.map(Some)
            }
        }
    }

    /// What `reported` contains is read again from the store only if it has changed since.
    async fn assemble(
        &self,
        sources: Sources<'_>,
        (reported, changes): (Option<Changes>, Changes),
        memory: &mut ReportMemory,
    ) -> Result<Sections, StoreError> {
        let Sources { view, storage, hardware, levels, tunnels, break_glass } = sources;
        let last = Arc::clone(&self.sections.borrow());
        let operations = match &last.operations {
            Some(same) if reported.is_some_and(|reported| reported.operations == changes.operations) => {
                same.clone()
            }
            _ => self.store.operation_views(ENDED_OPERATIONS).await?,
        };
        let desired = match &last.desired {
            Some(same) if reported.is_some_and(|reported| reported.desired == changes.desired) => {
                same.clone()
            }
            _ => self.store.desired_section().await?,
        };
        // Until the first observation nothing is known, and an empty list would say that there is nothing.
        let (guests, waiting) = match view.seen_at {
            Some(_) => {
                let waiting = view.waiting.iter().chain(&storage.waiting).cloned().collect();
                let guests = self.with_storage(guests_of(view), storage).await?;
                (Some(guests), Some(self.with_backups(waiting).await?))
            }
            None => (None, None),
        };
        let jobs = self.store.job_reports().await?;
        let orders = self.store.order_reports(self.clock.now()).await?;
        let (codes, targets) = (self.store.escrow().await?, self.store.storage_targets().await?);
        let now = self.clock.now();
        let trusted = view.anchor.map_or(now, |anchor| anchor.at(self.clock.monotonic()).at);
        memory.note_levels(view, trusted);
        let maintenance = self.store.host_maintenance().await?;
        let builds = slots_file::builds();
        let token_ages = (self.token_ages)();
        let known = HostKnowledge {
            now: trusted,
            wall: now,
            view,
            storage,
            fill_history: &memory.fill_history,
            hardware,
            levels,
            tunnels,
            builds: builds.as_ref(),
            break_glass,
            maintenance: maintenance.as_ref(),
            jobs: &jobs,
            codes: &codes,
            targets: &targets,
            records: records_fault(&self.store),
            certificate_ends_at: self.contact.borrow().certificate_ends_at,
            token_ages: &token_ages,
        };
        let conditions = memory.conditions.section(&self.store, &known).await;
        let codes = escrow::problems(&codes, &targets, now);
        let under_way = operations.iter().filter(|operation| !operation.status.is_end()).count();
        let of_host = host_maintenance::HostInventory { guests: &view.guests, targets: &storage.targets };
        let agent = AgentSection {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.started_at,
            problems: self
                .status
                .iter()
                .chain(&view.problems)
                .chain(&storage.problems)
                .chain(&codes)
                .chain(&long_under_way(&operations, now))
                .chain(&pending_rosters(&jobs))
                .chain(&self.way_back().await?)
                .cloned()
                .collect(),
            unobserved_since: view.unobserved_since,
            recipient: self.recipient.clone(),
            builds,
            maintenance: host_maintenance::report(maintenance.as_ref(), under_way, trusted, of_host),
            tunnels: tunnels.reports.clone().unwrap_or_default(),
        };
        Ok(Sections {
            agent: Some(agent),
            host: view.host.clone(),
            desired: Some(desired),
            guests,
            operations: Some(operations),
            waiting,
            trust: self.trust().await?,
            jobs: Some(jobs),
            storage: (storage.looked == FirstPoll::Yes).then(|| storage.targets.clone()),
            conditions,
            hardware: hardware.section.clone(),
            updates: hardware.updates.clone(),
            orders,
        })
    }
}

/// The guests as they were last observed. Whether one runs is only reported for a host that is being observed.
fn guests_of(view: &HostSnapshot) -> Vec<GuestReport> {
    let mut guests = view.guests.clone();
    if let Some(since) = view.unobserved_since {
        for guest in &mut guests {
            (guest.run, guest.unknown_since) = (Running::Unknown, Some(since));
        }
    }
    guests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hardware_health::RawHardware;
    use crate::port::clock::RealClock;
    use crate::port::store::restore_test::insert_for_tests;
    use crate::task::stop;
    use holdfast_protocol::code::ErrorCode;
    use holdfast_protocol::desired::Desired;
    use holdfast_protocol::id::GuestUid;

    const DOCUMENT: &str =
        r#"{"schema":"holdfast.desired/v1","generation":1,"poll_interval_s":30,"guests":[]}"#;

    #[tokio::test]
    async fn a_change_in_the_store_or_the_view_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(RealClock::start());
        let store = Store::open(dir.path(), clock.now()).unwrap();
        let (view_tx, view) = watch::channel(Arc::new(HostSnapshot::default()));
        let (_storage_tx, storage) = watch::channel(Arc::new(StorageView::default()));
        let (hardware_tx, hardware) = watch::channel(Arc::new(HardwareView::default()));
        let (_levels_tx, levels) = watch::channel(Arc::new(UsageLevels::default()));
        let (_tunnels_tx, tunnels) = watch::channel(Arc::new(TunnelsView::default()));
        let (_way_tx, break_glass) = watch::channel(SharedStatus::default());
        let (tx, mut reported) = watch::channel(Arc::new(Sections::default()));
        let certificate_ends_at = Timestamp::MAX;
        let at_start = Contact { reached_at: None, problem: None, certificate_ends_at };
        let (_contact_tx, contact) = watch::channel(at_start);
        let (stopper, stop) = stop::pair();
        let as_clock: Arc<dyn Clock> = clock.clone();
        let task = ReportTask {
            store: store.clone(),
            view,
            storage,
            hardware,
            levels,
            tunnels,
            break_glass,
            sections: tx,
            clock: as_clock,
            started_at: clock.now(),
            status: Vec::new(),
            handed: HandOverFolder::of(dir.path()),
            recipient: None,
            contact,
            token_ages: Arc::new(Vec::new),
        };
        let story = async {
            let held = |reported: &Arc<Sections>| reported.desired.as_ref().map(|d| d.held.number());
            reported.wait_for(|reported| held(reported) == Some(0)).await.unwrap();
            store.offer_desired(Desired::parse(DOCUMENT.as_bytes()).unwrap(), clock.now()).await.unwrap();
            reported.wait_for(|reported| held(reported) == Some(1)).await.unwrap();
            hardware_tx.send_modify(|view| {
                *view = Arc::new(view.next(RawHardware::default(), clock.now()));
            });
            reported.wait_for(|reported| reported.hardware.is_some()).await.unwrap();
            let problem = ErrorBody::new(ErrorCode::Unavailable, "Proxmox does not answer");
            view_tx
                .send_replace(Arc::new(HostSnapshot { problems: vec![problem], ..HostSnapshot::default() }));
            let reported_of = reported
                .wait_for(|reported| reported.agent.as_ref().is_some_and(|a| a.problems.len() == 1))
                .await;
            assert!(reported_of.unwrap().guests.is_none(), "nobody looked yet");
            view_tx.send_replace(Arc::new(HostSnapshot {
                seen_at: Some(clock.now()),
                ..HostSnapshot::default()
            }));
            let seen = |reported: &Arc<Sections>| reported.guests.is_some() && reported.waiting.is_some();
            reported.wait_for(seen).await.unwrap();
            // A host that is no longer observed: its guests may run or not.
            let guest = serde_json::json!({ "name": "web", "status": "managed", "run": "running" });
            let guests = vec![serde_json::from_value(guest).unwrap()];
            let (seen_at, unobserved_since) = (Some(clock.now()), Some(clock.now()));
            view_tx.send_replace(Arc::new(HostSnapshot {
                seen_at,
                unobserved_since,
                guests,
                ..HostSnapshot::default()
            }));
            let is_unknown = |reported: &Arc<Sections>| {
                let guest = reported.guests.iter().flatten().next();
                guest.is_some_and(|guest| {
                    guest.run == Running::Unknown && guest.unknown_since == unobserved_since
                }) && reported.agent.as_ref().unwrap().unobserved_since == unobserved_since
            };
            reported.wait_for(is_unknown).await.unwrap();
            // A request for a signature shows the last proof of a backup, whatever became of later tests.
            let at = |second: i64| Timestamp::from_second(1_000_000_000 + second).unwrap();
            let tests = [
                (1, "pbs1", "proved", at(1)),
                (1, "backup2", "proved", at(2)),
                (1, "backup2", "failed", at(3)),
                (1, "backup2", "proved", Timestamp::MAX),
            ];
            insert_for_tests(dir.path(), &tests).unwrap();
            let waiting = WaitingForSignature {
                guest: Some(GuestUid::new(uuid::Uuid::from_u128(1))),
                effect: "destroy".to_owned(),
                reason: "it needs a signature".to_owned(),
                payload: String::new(),
                last_backup: None,
                last_proof: None,
            };
            view_tx.send_modify(|view| Arc::make_mut(view).waiting = vec![waiting]);
            let proof =
                |reported: &Arc<Sections>| reported.waiting.iter().flatten().find_map(|one| one.last_proof);
            assert_eq!(
                proof(&reported.wait_for(|reported| proof(reported).is_some()).await.unwrap()),
                Some(at(2))
            );
            stopper.stop();
        };
        let both = async { tokio::join!(task.run(stop), story) };
        tokio::time::timeout(Duration::from_secs(10), both).await.expect("told in time");
    }
}
