//! Tests of a volume detached by hand.

use agentd::port::pve::read::Power;

use super::drift::{report, serves, start};
use super::world::{World, guest, vmid};

const CONFIG: &str = "/nodes/pve1/lxc/300/config";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_detached_volume_is_reported_and_not_replaced() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    agent.until("a guest that serves", |view| serves(view, 1)).await;
    agent.stop().await;
    let disks = world.disks();
    // In a running guest the mount would only be marked for removal.
    let operate = world.token("operate");
    assert_eq!(world.task(&operate, "POST", "/nodes/pve1/lxc/300/status/stop", &[]).await, "OK");
    for (key, value) in [("protection", "0"), ("delete", "mp0")] {
        assert_eq!(world.by_hand("PUT", CONFIG, &[(key, value)]), 200, "{key}");
    }
    let mut agent = start(&world).await;
    let detached = "detached with its data: tank:300/vm-300-disk-1.raw";
    let is_reported = |view: &agentd::model::view::HostSnapshot| {
        let conditions = report(view, 1).map(|report| report.conditions.as_slice()).unwrap_or_default();
        conditions.iter().any(|condition| condition.message.contains(detached))
    };
    agent.until("told", is_reported).await;
    // Its protection is restored meanwhile; over several observations nothing else is done.
    for _ in 0..3 {
        agent.view.changed().await.unwrap();
    }
    let config = world.pve().guest_config(vmid(300)).await.unwrap();
    assert!(!config.mounts.contains_key(&0) && config.unused.len() == 1, "{config:?}");
    assert_eq!(world.pve().guest_status(vmid(300)).await.unwrap().power, Power::Stopped);
    assert_eq!(world.disks(), disks, "nothing was made and nothing is gone");

    let line = "tank:300/vm-300-disk-1.raw,mp=/srv/db,backup=1";
    for (key, value) in [("protection", "0"), ("mp0", line)] {
        assert_eq!(world.by_hand("PUT", CONFIG, &[(key, value)]), 200, "{key}");
    }
    agent.until("it serves again", |view| serves(view, 1)).await;
    assert_eq!(world.disks(), disks);
    agent.stop().await;
}
