//! Starting, stopping and restarting a guest.

use agentd::operation::{Operation, RestartGuest, Start, Stop};

use super::Story;
use crate::fixtures::target;
use crate::ground::Ground;

pub(super) fn start() -> Vec<Story> {
    vec![Story::done("start", Ground::GuestStands, |_| Operation::Start(Start(target(1))))]
}

pub(super) fn stop() -> Vec<Story> {
    vec![Story::done("stop", Ground::GuestRuns, |_| Operation::Stop(Stop(target(1))))]
}

pub(super) fn restart() -> Vec<Story> {
    vec![Story::done("restart_guest", Ground::GuestRuns, |_| {
        Operation::RestartGuest(RestartGuest(target(1)))
    })]
}
