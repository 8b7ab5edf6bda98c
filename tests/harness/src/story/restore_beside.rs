//! A copy beside its guest: to its end, and taken back when it cannot be set aside.

use std::collections::BTreeSet;

use agentd::gate::warrant::{Allows, Seen, Warrant};
use agentd::model::record::VolumeId;
use agentd::operation::log::Status;
use agentd::operation::{Operation, RestoreBeside};
use holdfast_protocol::id::JobId;

use super::Story;
use crate::ground::{Ground, Template};
use crate::kit::{Kit, target};
use crate::scene::Scene;

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story::done("restore_beside", Ground::GuestRuns, beside),
        Story {
            refused: Some("set_aside"),
            // The copy that is taken back takes with it our right to see what it left.
            unclear: Status::Parked,
            ..Story::undone("restore_beside, not set aside", Ground::GuestRuns, beside)
        },
    ]
}

/// The ground's first backup.
pub(super) fn archive() -> VolumeId {
    let template = Template::of(Ground::GuestRuns);
    let held = template.scene.archives.keys().find(|held| Scene::owner(held) == Some(300));
    let (storage, file) =
        held.and_then(|held| held.split_once(':')).expect("a guest that was made has a backup");
    VolumeId::new(format!("{storage}:backup/{file}"))
}

/// The ground's guest's volumes.
pub(super) fn volumes() -> BTreeSet<VolumeId> {
    (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect()
}

pub(crate) fn beside(kit: &Kit) -> Operation {
    let target = target(1);
    let seen = Seen { uid: target.uid, vmid: target.vmid, name: target.name, volumes: volumes() };
    let allows = Allows::RestoreBeside { archive: archive() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen);
    Operation::RestoreBeside(Box::new(RestoreBeside::new(warrant, &kit.policy(), Vec::new()).unwrap()))
}
