//! Tests of the hostile hub: one day and pinned seeds.
#![forbid(unsafe_code)]

use harness::hostile::{Length, kept, run};

#[test]
fn a_thief_owns_the_hub_for_a_day() {
    let verdict = run(11, Length::days(1));
    assert!(verdict.violations.is_empty(), "{:#?}\n{}", verdict.violations, verdict.story.join("\n"));
    // Fewer mean that the thief was not heard.
    let figures = verdict.figures;
    assert!(figures.moves > 50 && figures.jobs[2] > 10 && figures.documents[0] > 3, "{figures:?}");
}

#[test]
fn seeds_that_once_found_something() {
    for (seed, length) in kept() {
        let verdict = run(seed, length);
        assert!(verdict.violations.is_empty(), "seed {seed}: {:#?}", verdict.violations);
    }
}
