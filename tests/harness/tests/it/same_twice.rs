//! Tests of the harness: deterministic, virtual, truly killed.
#![forbid(unsafe_code)]

use std::time::Instant;

use harness::matrix::case::{Case, run};
use harness::story::{self, Does};

/// CI takes one story in this many, and other ones in each run; without a run number all are taken.
const ONE_IN: usize = 5;

#[test]
fn the_same_case_is_the_same_twice() {
    let turn: Option<usize> = std::env::var("HOLDFAST_CI_TURN").ok().map(|text| text.parse().unwrap());
    // Of two guests that move at the same moment either may be first: the whole agent's stories end alike, no more.
    let engines = story::all().into_iter().filter(|story| matches!(story.does, Does::Operation(_)));
    let taken = engines.enumerate().filter(|(at, _)| turn.is_none_or(|turn| at % ONE_IN == turn % ONE_IN));
    for (_, story) in taken {
        for case in [Case::Undisturbed, Case::killed(&[3, 4]), Case::EachStepAgain] {
            let (one, two) = (run(&story, &case, None), run(&story, &case, None));
            assert_eq!(
                one.hash, two.hash,
                "{}/{case}: {:?} {:?}",
                story.name, one.violations, two.violations
            );
            assert_eq!(one.places, two.places, "{}/{case}", story.name);
        }
    }
}

#[test]
fn a_wait_of_minutes_costs_nothing() {
    let silent = story::all().into_iter().find(|story| story.name == "provision, silent").unwrap();
    drop(run(&silent, &Case::Undisturbed, None));
    let began = Instant::now();
    // Five minutes without a hello, and then the way back.
    let outcome = run(&silent, &Case::Undisturbed, None);
    assert_eq!(outcome.end, Some(silent.end), "{}", outcome.reported);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}
