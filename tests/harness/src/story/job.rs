//! Stories of signed jobs, from queue to end.

use agentd::model::request::Ask;
use agentd::operation::log::Status;
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, JobState, Target};

use super::Story;
use crate::fixtures::guest;
use crate::ground::Ground;
use crate::hostile::desk::target;
use crate::mailbox::{Order, archive_of_guest_1, policy};
use crate::scene::Scene;
use crate::whole::Goals;

fn goals(guests: u8, jobs: Vec<Order>) -> Goals {
    Goals { guests: (1..=guests).map(guest).collect(), asks: Vec::new(), jobs }
}

fn done(act: fn(&crate::world::World) -> Act, target: fn() -> Target) -> Order {
    Order { act, target, end: JobState::Done }
}

fn backup() -> Order {
    done(|_| Act::BackupNow(args::BackupNow { tier: None }), || target(1))
}

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story {
            may_take: |holding| Scene::owner(holding) == Some(300) && holding.starts_with("tank:"),
            // As for the operation itself: after the removal the agent may not see what is left.
            unclear: Status::Parked,
            ..Story::whole("job: destroy", Ground::GuestRuns, || {
                goals(0, vec![done(|_| Act::DestroyGuest(args::DestroyGuest {}), || target(1))])
            })
        },
        Story::whole("job: restore", Ground::GuestRuns, || {
            let act = |world: &crate::world::World| {
                Act::Restore(args::Restore { archive: archive_of_guest_1(world) })
            };
            goals(1, vec![done(act, || target(1))])
        }),
        Story::whole("job: roll back", Ground::GuestRuns, || Goals {
            asks: vec![(1, Ask::Snapshot { name: "s2".parse().unwrap(), keep_s: None })],
            ..goals(
                1,
                vec![done(
                    |_| Act::Rollback(args::Rollback { snapshot: "s2".parse().unwrap() }),
                    || target(1),
                )],
            )
        }),
        // A job without an operation, and one with an operation, so that there is an end to check.
        Story::whole("job: policy", Ground::GuestRuns, || {
            let release = |_: &crate::world::World| {
                Act::ReleaseBrake(args::ReleaseBrake {
                    generation: holdfast_protocol::generation::Generation::new(1),
                    document: Some(holdfast_protocol::job::act::Sha256Text::of(b"a document")),
                    changes: vec![holdfast_protocol::job::act::BulkChange {
                        guest: crate::fixtures::uid(1),
                        name: guest(1).name,
                        operation: holdfast_protocol::operation::OperationKind::Stop,
                    }],
                })
            };
            goals(
                1,
                vec![done(|_| policy(2), || Target::Host {}), done(release, || Target::Host {}), backup()],
            )
        }),
        Story::whole("job: cancel", Ground::GuestRuns, || {
            let doomed = Order {
                end: JobState::Cancelled,
                ..done(|_| Act::DestroyGuest(args::DestroyGuest {}), || target(1))
            };
            let cancel = |_: &crate::world::World| Act::Cancel(args::Cancel { job: crate::mailbox::id(0) });
            goals(1, vec![doomed, done(cancel, || Target::Host {}), backup()])
        }),
    ]
}
