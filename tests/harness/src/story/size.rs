//! Changing a guest's sizes.

use agentd::operation::{DiskRef, Grow, KeepProtection, Operation, Reconfigure};

use super::Story;
use crate::ground::Ground;
use crate::kit::target;

pub(super) fn reconfigure() -> Vec<Story> {
    vec![Story::done("reconfigure", Ground::GuestRuns, |_| {
        Operation::Reconfigure(Reconfigure {
            name: None,
            network: None,
            resolver: None,
            target: target(1),
            cores: Some(1.try_into().unwrap()),
            memory: Some(128.try_into().unwrap()),
            swap: None,
            protection: KeepProtection::AsItIs,
        })
    })]
}

pub(super) fn grow() -> Vec<Story> {
    vec![Story::done("grow", Ground::GuestStands, |_| {
        Operation::Grow(Grow { target: target(1), disk: DiskRef::Mount(0), size: 2.try_into().unwrap() })
    })]
}
