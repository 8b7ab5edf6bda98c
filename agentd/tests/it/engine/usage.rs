//! Samples of use from the list of resources of the simulator.

use std::sync::Arc;
use std::time::Duration;

use agentd::model::usage::{UsageMeter, UsageReading};
use agentd::model::usage_levels::UsageLevels;
use agentd::plan::Questions;
use agentd::port::kernel_use::KernelUse;
use agentd::task::observe::Observer;
use agentd::task::stop;
use agentd::task::usage::{UsageQueue, UsageTask};
use holdfast_protocol::usage::UsageMetric;
use tokio::sync::watch;

use super::world::{World, made, uid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "the task under test runs beside the test, which ends it")]
async fn a_running_guest_and_its_host_are_sampled_each_minute() {
    let world = World::start().await;
    let ports = made(&world).await;
    let policy = world.policy();
    let storages = [policy.storage.clone()].into();
    let (readings, read) = watch::channel(UsageReading::default());
    let (levels, _levels) = watch::channel(Arc::new(UsageLevels::default()));
    let queue = UsageQueue::default();
    // Without the kernel's files of this machine.
    let kernel = KernelUse::at(tempfile::tempdir().unwrap().path());
    let task = UsageTask {
        readings: read,
        meter: UsageMeter::default(),
        queue: queue.clone(),
        store: ports.store.clone(),
        levels,
        kernel,
        clock: Arc::clone(&ports.clock),
    };
    let (stopper, stop) = stop::pair();
    let task = tokio::spawn(task.run(stop));
    let place = ("pve1".parse().unwrap(), policy.pool.clone());
    let mut eye = Observer::new(Arc::clone(&ports.pve), Arc::clone(&ports.clock), place, storages)
        .publishing_use(readings);
    let sampled = async {
        loop {
            eye.look(&Questions::default()).await.unwrap();
            match queue.newest() {
                Some(sample) if sample.guests.contains_key(&uid(1)) => return sample,
                _ => ports.clock.sleep(Duration::from_secs(10)).await,
            }
        }
    };
    let sample = tokio::time::timeout(Duration::from_secs(60), sampled).await.unwrap();
    for metric in [UsageMetric::Cpu, UsageMetric::MemoryUsed, UsageMetric::DiskTotal, UsageMetric::Load] {
        assert!(sample.host.contains_key(&metric), "{metric}: {:?}", sample.host);
    }
    let guest = &sample.guests[&uid(1)];
    for metric in
        [UsageMetric::MemoryUsed, UsageMetric::MemoryTotal, UsageMetric::NetIn, UsageMetric::DiskWrite]
    {
        assert!(guest.contains_key(&metric), "{metric}: {guest:?}");
    }
    assert!(!guest.contains_key(&UsageMetric::CpuPressure), "no file says it");
    stopper.stop();
    task.await.unwrap();
}
