//! The end of a guest, by a signature that a test made.

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::VolumeId;
use agentd::operation::log::Status;
use agentd::operation::{Destroy, Operation};
use holdfast_protocol::id::JobId;

use super::Story;
use crate::fixtures::target;
use crate::ground::Ground;
use crate::scene::Scene;

pub(super) fn destroy() -> Vec<Story> {
    vec![Story {
        // Exactly the volumes of exactly this guest; its backups stay.
        may_take: |holding| Scene::owner(holding) == Some(300) && holding.starts_with("tank:"),
        // After the removal the agent may not see what is left. An operator must check when Proxmox does not say OK.
        unclear: Status::Parked,
        ..Story::done("destroy", Ground::GuestRuns, |_| signed())
    }]
}

fn signed() -> Operation {
    let target = target(1);
    let volumes = (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect();
    let seen = SignedState { uid: target.uid, vmid: target.vmid, name: target.name, volumes };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(7)), Allows::DestroyGuest, seen);
    Operation::Destroy(Box::new(Destroy::new(warrant).unwrap()))
}
