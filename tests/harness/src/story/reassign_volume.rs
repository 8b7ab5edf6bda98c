//! Stories of reassigned volumes.

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::VolumeId;
use agentd::operation::Operation;
use agentd::operation::reassign_volume::{HandOver, Mounts};
use holdfast_protocol::id::JobId;

use super::Story;
use crate::fixtures::target;
use crate::ground::Ground;

pub(super) fn hand_over() -> Vec<Story> {
    vec![Story {
        // It is renamed on its way.
        may_rename: |holding| holding == "tank:300/vm-300-disk-2",
        ..Story::done("reassign_volume", Ground::TwoStand, |_| signed())
    }]
}

fn seen(n: u8, disks: usize) -> SignedState {
    let target = target(n);
    let number = target.vmid;
    let volumes =
        (0..disks).map(|disk| VolumeId::new(format!("tank:{number}/vm-{number}-disk-{disk}.raw"))).collect();
    SignedState { uid: target.uid, vmid: number, name: target.name, volumes }
}

fn signed() -> Operation {
    let volume = VolumeId::new("tank:300/vm-300-disk-2.raw");
    let allows = Allows::ReassignVolume { volume, to: Box::new(seen(2, 2)) };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen(1, 3));
    let mounts = Mounts { from: 1, to: 1, path: "/srv/media".parse().unwrap() };
    Operation::ReassignVolume(Box::new(HandOver::new(warrant, mounts).unwrap()))
}
