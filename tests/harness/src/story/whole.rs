//! Stories of the whole agent with several guests.

use agentd::model::policy::QuiesceBound;
use agentd::model::request::Ask;

use super::Story;
use crate::fixtures::guest;
use crate::ground::Ground;
use crate::whole::Goals;
use crate::windows::Windows;

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story::whole("whole: two guests", Ground::Empty, || Goals {
            guests: vec![guest(1), guest(2)],
            asks: Vec::new(),
            jobs: Vec::new(),
        }),
        // The budget is used up by the first, whenever the agent dies: the second waits for a signature.
        Story {
            operations: Some(1),
            ..Story::whole("whole: one guest a day", Ground::OneADay, || Goals {
                guests: vec![guest(1), guest(2)],
                asks: Vec::new(),
                jobs: Vec::new(),
            })
        },
        // The second waits for the first: one lane.
        Story::whole("whole: requests", Ground::GuestRuns, || Goals {
            guests: vec![guest(1)],
            asks: vec![(1, snapshot()), (1, Ask::Backup { tier: None })],
            jobs: Vec::new(),
        }),
        // The window waits for the backup before it, and nothing may be stopped meanwhile.
        Story {
            windows: Windows::Play,
            label: Some("application"),
            ..Story::whole("whole: a window waits", Ground::GuestRuns, || Goals {
                guests: vec![guest(1)],
                asks: vec![
                    (1, Ask::Backup { tier: None }),
                    (1, Ask::QuiescedBackup { tier: None, bound: QuiesceBound::usual() }),
                ],
                jobs: Vec::new(),
            })
        },
        // Two lanes, and one place for heavy work.
        Story::whole("whole: requests of two", Ground::TwoGuests, || Goals {
            guests: vec![guest(1), guest(2)],
            asks: vec![(1, Ask::Backup { tier: None }), (2, Ask::Backup { tier: None }), (2, snapshot())],
            jobs: Vec::new(),
        }),
    ]
}

fn snapshot() -> Ask {
    Ask::Snapshot { name: "s2".parse().unwrap(), keep_s: None }
}
