//! Making a guest: to its end, and taken back from two places.

use agentd::operation::log::Status;
use agentd::operation::{Operation, Provision};

use super::Story;
use crate::controllers::Speech;
use crate::ground::Ground;

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story::done("provision", Ground::Empty, |kit| wrap(kit.provision(1))),
        // The second volume's storage does not exist, so what was made by then is taken back.
        // What is taken back takes with it our right to see what it left: unclear ends are for a person.
        Story {
            unclear: Status::Parked,
            ..Story::undone("provision, no storage", Ground::Empty, |kit| {
                wrap(Provision { bulk_storage: Some("nosuch".parse().unwrap()), ..kit.provision(1) })
            })
        },
        // A guest that runs, protected and with its claim handed over, is taken back: its controller never spoke.
        Story {
            speech: Speech::Silence,
            unclear: Status::Parked,
            ..Story::undone("provision, silent", Ground::Empty, |kit| wrap(kit.provision(1)))
        },
    ]
}

fn wrap(provision: Provision) -> Operation {
    Operation::Provision(Box::new(provision))
}
