//! Tests of random schedules and pinned seeds.
//!
//! A minute of fresh seeds is `cargo xtask schedules`, which also lets the agent's disk fail.
#![forbid(unsafe_code)]

use harness::schedule::{Verdict, kept, plot, run, run_script};

fn holds(verdicts: impl Iterator<Item = Verdict>) {
    let mut wrong = Vec::new();
    for verdict in verdicts {
        let seed = verdict.seed;
        if !verdict.violations.is_empty() {
            wrong.push(format!("seed {seed}: {:#?}\n{}", verdict.violations, verdict.story.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_first_seeds() {
    holds((1..=8).map(run));
}

/// Every case that finds a planted bug holds for the true agent.
#[test]
fn the_plots() {
    for plot in plot::ALL {
        println!("{}", plot.name);
        holds((1..=3).map(|seed| run_script(seed, &(plot.script)(seed))));
    }
}

#[test]
fn seeds_that_once_found_something() {
    holds(kept().into_iter().map(run));
}

#[test]
fn the_same_seed_is_the_same_twice() {
    for seed in [2, 5] {
        let (one, two) = (run(seed), run(seed));
        assert_eq!((one.hash, &one.story), (two.hash, &two.story), "seed {seed}");
    }
}
