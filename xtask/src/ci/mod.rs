//! `cargo ci`: every suite, in order, with its time; the same on a laptop and in CI.
//!
//! As root everything runs, and a suite that cannot run is a failure. As an ordinary user the suites that need root are
//! left out and named at the end. Ends at the first failure, since later suites stand on earlier ones. `cargo ci e2e host`
//! runs these alone, after mending one for instance; what was not asked for counts as skipped.

mod suites;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;

use crate::packages;

/// How a suite ended.
enum Outcome {
    Passed,
    LeftOut(&'static str),
}

/// Which suites.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// These alone, in CI's order; all of them when none is named.
    #[arg(value_name = "SUITE", value_parser = PossibleValuesParser::new(suites::ALL.iter().map(|suite| suite.name)))]
    suites: Vec<String>,
}

impl Options {
    fn want(&self, name: &str) -> bool {
        self.suites.is_empty() || self.suites.iter().any(|wanted| wanted == name)
    }
}

/// Runs the suites.
pub fn run(options: &Options) -> Result<()> {
    packages::prepare()?;
    let begun = Instant::now();
    let mut rows: Vec<(&str, Duration, Outcome)> = Vec::new();
    for suite in suites::ALL {
        if !options.want(suite.name) {
            rows.push((suite.name, Duration::ZERO, Outcome::LeftOut("not asked for")));
            continue;
        }
        println!("\n=== {} — {}", suite.name, suite.shows);
        let started = Instant::now();
        let outcome = match suite.needs_root {
            suites::Root::Needed if !packages::is_root() => Outcome::LeftOut("needs root"),
            _ => {
                (suite.run)().with_context(|| format!("suite `{}` failed", suite.name))?;
                Outcome::Passed
            }
        };
        rows.push((suite.name, started.elapsed(), outcome));
    }
    println!("\n=== all suites");
    let mut passed = 0;
    for (name, took, outcome) in &rows {
        let seconds = took.as_secs_f32();
        match outcome {
            Outcome::Passed => {
                passed += 1;
                println!("{name:<14} passed    {seconds:>7.1} s");
            }
            Outcome::LeftOut(why) => println!("{name:<14} LEFT OUT  ({why})"),
        }
    }
    let left_out = rows.len() - passed;
    println!("took {:.1} minutes", begun.elapsed().as_secs_f32() / 60.0);
    println!("{passed} passed, 0 failed, {left_out} skipped");
    Ok(())
}
