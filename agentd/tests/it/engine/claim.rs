//! Tests of a used bootstrap token.

use std::time::Duration;

use agentd::operation::log::Status;
use agentd::port::pve::read::Power;

use agentd::task::admin_socket::spent_claim;
use jiff::SignedDuration;

use super::world::{Controllers, World, end, reported, uid, vmid};

fn config(world: &World) -> String {
    world.guests().remove("300.conf").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_claim_goes_with_the_next_restart() {
    let world = World::start().await;
    let ports = world.sound().await;
    let controllers = Controllers::start(&ports);
    let done = end(&ports, 0, world.provision(1)).await;
    assert_eq!(done.status(), Status::Done, "{}", reported(&done));
    drop(controllers);
    let view = done.view();
    let step = view.steps.iter().find(|step| step.name == "drop_claim").unwrap();
    let note = step.note.as_deref().unwrap();
    assert!(note.contains("opens nothing") && note.contains("until the guest's next restart"), "{note}");
    // Proxmox says that it is gone already, and its file says when.
    assert!(ports.pve.guest_config(vmid(300)).await.unwrap().env.is_none());
    let running = config(&world);
    assert!(running.contains("env") && running.contains("delete: env"), "{running}");

    // A request for its fields reports this, until the guest was started anew.
    let ended = view.ended_at.unwrap();
    let reported = async |began| spent_claim(&ports.store, uid(1), began).await.unwrap();
    let before = ended.checked_sub(SignedDuration::from_secs(5)).unwrap();
    assert!(reported(Some(before)).await.is_some_and(|text| text.contains("until its next start")));
    assert_eq!(reported(Some(ended)).await, None, "started since");
    assert_eq!(reported(None).await, None, "it stands still");

    ports.pve.stop(vmid(300)).await.unwrap();
    let down = async {
        while ports.pve.guest_status(vmid(300)).await.unwrap().power != Power::Stopped
            || ports.pve.guest_config(vmid(300)).await.unwrap().lock.is_some()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), down).await.unwrap();
    let stopped = config(&world);
    assert!(!stopped.contains("env") && !stopped.contains("pve:pending"), "{stopped}");
}
