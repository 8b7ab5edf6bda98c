//! Stories of adoption.

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::VolumeId;
use agentd::operation::{Adopt, Operation};
use holdfast_protocol::id::JobId;

use super::Story;
use crate::fixtures::{Kit, uid, vmid};
use crate::ground::Ground;

/// The stranger in our pool.
const NUMBER: u32 = 400;

pub(super) fn adopt() -> Vec<Story> {
    let over = |story: Story| Story { takes_over: Some(NUMBER), ..story };
    vec![
        over(Story::done("adopt_guest", Ground::Empty, signed)),
        Story {
            refused: Some("tag_guest"),
            ..over(Story::undone("adopt_guest, not marked", Ground::Empty, signed))
        },
    ]
}

fn signed(kit: &Kit) -> Operation {
    let volumes =
        (0..2).map(|disk| VolumeId::new(format!("tank:{NUMBER}/vm-{NUMBER}-disk-{disk}.raw"))).collect();
    let name = "theirs-in-our-pool".parse().unwrap();
    let seen = SignedState { uid: uid(5), vmid: vmid(NUMBER), name, volumes };
    let allows = Allows::Adopt { customer: "acme".parse().unwrap(), golden: "2026.11.1".parse().unwrap() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(9)), allows, seen);
    Operation::AdoptGuest(Box::new(Adopt::new(warrant, kit.policy().bridge).unwrap()))
}
