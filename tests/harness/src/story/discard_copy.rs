//! Stories of the signed end of a copy.

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::VolumeId;
use agentd::operation::log::Status;
use agentd::operation::{DiscardCopy, Operation};
use holdfast_protocol::id::{JobId, OperationId};

use super::Story;
use crate::fixtures::{target, vmid};
use crate::ground::Ground;
use crate::scene::Scene;
use crate::world_template::volumes;

pub(super) fn discard() -> Vec<Story> {
    vec![Story {
        // Exactly the volumes of exactly this copy. Its guest runs on.
        may_take: |holding| Scene::owner(holding) == Some(301) && holding.starts_with("tank:"),
        // After the removal the agent may not see what is left. An operator must check when Proxmox does not say OK.
        unclear: Status::Parked,
        ..Story::done("discard_copy", Ground::Copy, |_| signed())
    }]
}

fn signed() -> Operation {
    let guest = target(1);
    let seen = SignedState { uid: guest.uid, vmid: guest.vmid, name: guest.name.clone(), volumes: volumes() };
    let copy = SignedState {
        uid: guest.uid,
        vmid: vmid(301),
        name: "web-1-copy".parse().expect("a plain name"),
        volumes: (0..2).map(|disk| VolumeId::new(format!("tank:301/vm-301-disk-{disk}.raw"))).collect(),
    };
    let allows = Allows::DiscardCopy { copy: Box::new(copy) };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(9)), allows, seen);
    let made_by = OperationId::new(uuid::Uuid::from_u128(u128::from(Ground::Copy.number())));
    Operation::DiscardCopy(Box::new(DiscardCopy::new(warrant, made_by).expect("it was signed for this")))
}
