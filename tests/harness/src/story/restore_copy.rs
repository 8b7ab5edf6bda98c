//! Stories of restored copies.

use std::collections::BTreeSet;

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::VolumeId;
use agentd::operation::log::Status;
use agentd::operation::{Operation, RestoreCopy};
use holdfast_protocol::id::JobId;

use super::Story;
use crate::fixtures::{Kit, target};
use crate::ground::Ground;
use crate::scene::Scene;
use crate::world_template::Template;

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story::done("restore_copy", Ground::GuestRuns, copy_of),
        Story {
            refused: Some("tag_copy"),
            // The copy that is taken back takes with it our right to see what it left.
            unclear: Status::Parked,
            ..Story::undone("restore_copy, not set aside", Ground::GuestRuns, copy_of)
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

pub(crate) fn copy_of(kit: &Kit) -> Operation {
    let target = target(1);
    let seen = SignedState { uid: target.uid, vmid: target.vmid, name: target.name, volumes: volumes() };
    let allows = Allows::RestoreCopy { archive: archive() };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen);
    Operation::RestoreCopy(Box::new(RestoreCopy::new(warrant, &kit.policy(), Vec::new()).unwrap()))
}
