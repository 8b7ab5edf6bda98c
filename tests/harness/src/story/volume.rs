//! Volumes of guests that were made.

use agentd::operation::{AttachVolume, Operation};
use serde_json::json;

use super::Story;
use crate::fixtures::target;
use crate::ground::Ground;

pub(super) fn attach() -> Vec<Story> {
    vec![
        Story::done("attach_volume", Ground::GuestRuns, |_| attachment("tank")),
        Story::undone("attach_volume, no storage", Ground::GuestRuns, |_| attachment("nosuch")),
    ]
}

fn attachment(storage: &str) -> Operation {
    let kind = json!({ "bulk": { "none": "fetched again" } });
    let volume = json!({ "name": "cache", "mount": "/srv/cache", "size_gib": 1, "kind": kind });
    Operation::AttachVolume(Box::new(AttachVolume {
        target: target(1),
        volume: serde_json::from_value(volume).unwrap(),
        slot: 2,
        storage: storage.parse().unwrap(),
    }))
}
