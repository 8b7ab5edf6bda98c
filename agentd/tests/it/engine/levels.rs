//! Tests of a level of the document, from sample to condition.

use std::sync::Arc;
use std::time::Duration;

use agentd::model::hardware_health::HardwareView;
use agentd::model::storage::StorageView;
use agentd::model::usage::{UsageMeter, UsageReading};
use agentd::model::usage_levels::UsageLevels;
use agentd::port::host_replacement::HandOverFolder;
use agentd::port::hub::Contact;
use agentd::port::kernel_use::KernelUse;
use agentd::task::report::ReportTask;
use agentd::task::stop::{self, Stopper};
use agentd::task::usage::{UsageQueue, UsageTask};
use holdfast_protocol::condition::{ConditionCode, ReportedCondition, Subject};
use holdfast_protocol::desired::{DesiredGuest, UseLevels};
use holdfast_protocol::report::Sections;
use holdfast_protocol::usage::{UsageMetric, UsageSample};
use jiff::Timestamp;
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::fault::usage::Percent;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::drift::{Agent, serves, start_measured};
use super::world::{World, guest, uid};

/// Longer than any sample takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent with its samples of use and its report.
struct Measured {
    agent: Agent,
    queue: UsageQueue,
    sections: watch::Receiver<Arc<Sections>>,
    levels: watch::Receiver<Arc<UsageLevels>>,
    stopper: Stopper,
    tasks: JoinSet<()>,
    _storage: watch::Sender<Arc<StorageView>>,
    _hardware: watch::Sender<Arc<HardwareView>>,
    _way: watch::Sender<agentd::task::break_glass::SharedStatus>,
    _tunnels: watch::Sender<Arc<agentd::model::tunnel::TunnelsView>>,
    _contact: watch::Sender<Contact>,
}

impl Measured {
    async fn start(world: &World) -> Self {
        let (readings, read) = watch::channel(UsageReading::default());
        let agent = start_measured(world, readings).await;
        let (ports, queue) = (&agent.ports, UsageQueue::default());
        let (levels, reached) = watch::channel(Arc::new(UsageLevels::default()));
        let (_storage, storage) = watch::channel(Arc::default());
        let (_hardware, hardware) = watch::channel(Arc::default());
        let (_way, break_glass) = watch::channel(Arc::default());
        let (_tunnels, tunnels) = watch::channel(Arc::default());
        let (reported, sections) = watch::channel(Arc::new(Sections::default()));
        let at_start = Contact { reached_at: None, problem: None, certificate_ends_at: Timestamp::MAX };
        let (_contact, contact) = watch::channel(at_start);
        let (stopper, stop) = stop::pair();
        let usage = UsageTask {
            readings: read,
            meter: UsageMeter::every(Duration::from_secs(20)),
            queue: queue.clone(),
            store: ports.store.clone(),
            levels,
            // Without the kernel's files of this machine.
            kernel: KernelUse::at(world.dir.path()),
            clock: Arc::clone(&ports.clock),
        };
        let report = ReportTask {
            store: ports.store.clone(),
            view: agent.view.clone(),
            storage,
            hardware,
            levels: reached.clone(),
            break_glass,
            tunnels,
            sections: reported,
            started_at: ports.clock.now(),
            clock: Arc::clone(&ports.clock),
            status: Vec::new(),
            handed: HandOverFolder::of(world.dir.path()),
            recipient: None,
            contact,
            token_ages: Arc::new(Vec::new),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(usage.run(stop.clone()));
        tasks.spawn(report.run(stop));
        Self {
            agent,
            queue,
            sections,
            levels: reached,
            stopper,
            tasks,
            _storage,
            _hardware,
            _way,
            _tunnels,
            _contact,
        }
    }

    async fn document(&self, generation: u64, memory_percent: Option<u8>) {
        let levels: Option<UseLevels> = memory_percent
            .map(|percent| serde_json::from_value(json!({ "memory_percent": percent })).unwrap());
        self.agent.goal(generation, vec![DesiredGuest { levels, ..guest(1) }]).await;
    }

    /// The guest uses so much of its memory, in percent, and a sample says so.
    async fn uses(&self, world: &World, percent: u64) {
        let use_of = |memory| Some(Percent { cpu: 10, memory, disk: 10 });
        apply(&world.sim.node, &Edit::Use { vmid: None, percent: use_of(10) }).unwrap();
        apply(&world.sim.node, &Edit::Use { vmid: Some(300), percent: use_of(percent) }).unwrap();
        let sampled = async {
            while self.queue.newest().and_then(|sample| memory_percent(&sample)) != Some(percent) {
                self.agent.ports.clock.sleep(Duration::from_secs(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, sampled).await.unwrap();
    }

    /// Waits until the report has the guest's condition, or does not.
    async fn until(&mut self, is: impl Fn(Option<&ReportedCondition>) -> bool) -> Option<ReportedCondition> {
        let as_wanted = |sections: &Arc<Sections>| sections.conditions.is_some() && is(of(sections).as_ref());
        let waited = tokio::time::timeout(PATIENCE, self.sections.wait_for(as_wanted)).await;
        let sections = Arc::clone(&waited.unwrap().unwrap());
        of(&sections)
    }

    async fn stop(mut self) {
        self.stopper.stop();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.agent.stop().await;
    }
}

/// The whole percents of its memory that the guest uses, by a sample.
fn memory_percent(sample: &UsageSample) -> Option<u64> {
    let guest = sample.guests.get(&uid(1))?;
    let [used, total] = [UsageMetric::MemoryUsed, UsageMetric::MemoryTotal].map(|metric| guest.get(&metric));
    Some((used? * 100).div_ceil(*total?))
}

fn of(sections: &Sections) -> Option<ReportedCondition> {
    let all = sections.conditions.as_ref()?.conditions();
    let its = Subject::Guest { uid: uid(1) };
    all.iter().find(|one| one.code == ConditionCode::MemoryHigh && one.subject == its).cloned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_level_of_the_document_is_a_condition_until_use_is_well_below_it() {
    let world = World::start().await;
    let mut measured = Measured::start(&world).await;
    measured.document(1, Some(40)).await;
    measured.agent.until("a guest that serves", |view| serves(view, 1)).await;
    measured.uses(&world, 37).await;
    assert_eq!(measured.until(|found| found.is_none()).await, None, "below the level, and never above it");

    measured.uses(&world, 45).await;
    let high = measured.until(|found| found.is_some()).await.unwrap();
    let text = high.message.as_str();
    assert!(text.contains("40 %") && text.contains("35 %"), "{text}");
    // Between the two values nothing changes.
    measured.uses(&world, 37).await;
    // The levels are judged before a sample is handed on.
    assert_eq!(measured.levels.borrow().high().count(), 1);
    assert_eq!(of(&measured.sections.borrow()).as_ref(), Some(&high));
    measured.uses(&world, 30).await;
    measured.until(|found| found.is_none()).await;

    // It ends too where the document takes it back: this is far from the usual level.
    measured.uses(&world, 46).await;
    measured.until(|found| found.is_some()).await;
    measured.document(2, None).await;
    measured.until(|found| found.is_none()).await;
    measured.stop().await;
}
