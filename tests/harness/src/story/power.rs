//! Starting and stopping a guest.

use agentd::operation::{Operation, Start, Stop};

use super::Story;
use crate::fixtures::target;
use crate::ground::Ground;

pub(super) fn start() -> Vec<Story> {
    vec![Story::done("start", Ground::GuestStands, |_| Operation::Start(Start(target(1))))]
}

pub(super) fn stop() -> Vec<Story> {
    vec![Story::done("stop", Ground::GuestRuns, |_| Operation::Stop(Stop(target(1))))]
}
