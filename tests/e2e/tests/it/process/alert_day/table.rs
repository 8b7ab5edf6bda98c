//! The printed table of a day, and its verdict.

use super::arrival::Arrival;
use super::fault::{Fault, Line, Phase};

/// What was expected and did not come, each as often as it is missing.
pub fn missing(heard: &[Arrival], expected: &[Line]) -> Vec<Line> {
    without(expected, heard.iter().map(|heard| &heard.line))
}

/// What came beyond the script.
fn beyond(heard: &[Arrival], expected: &[Line]) -> Vec<Line> {
    let all: Vec<Line> = heard.iter().map(|heard| heard.line.clone()).collect();
    without(&all, expected.iter())
}

/// The first list without the elements of the second, each taken away once.
fn without<'a>(all: &[Line], less: impl Iterator<Item = &'a Line>) -> Vec<Line> {
    let mut left = all.to_vec();
    for line in less {
        if let Some(at) = left.iter().position(|one| one == line) {
            left.remove(at);
        }
    }
    left
}

/// One row for each thing that one receiver heard.
pub fn print(heard: &[Arrival], script: &[Fault]) {
    println!("{:>7}  {:<9} {:<7} {:<24} {:<32} why", "at", "to", "phase", "code", "about");
    for Arrival { at, line } in heard {
        let fault = script.iter().find(|fault| fault.code == line.code && fault.of == line.of);
        let why = match (fault, line.phase) {
            (Some(fault), Phase::Firing) => fault.why,
            (Some(_), Phase::Over) => "it is over",
            (None, _) => "-",
        };
        let (at, phase) = (at.as_secs_f32(), line.phase.as_str());
        println!("{at:>5.1} s  {:<9} {phase:<7} {:<24} {:<32} {why}", line.to, line.code, line.of);
    }
}

/// Fails unless exactly these lines came.
pub fn verdict(heard: &[Arrival], expected: &[Line]) {
    let (missing, more) = (missing(heard, expected), beyond(heard, expected));
    let (twice, wrong): (Vec<&Line>, Vec<&Line>) = more.iter().partition(|line| expected.contains(line));
    println!(
        "{} notices, {} missing, {} twice, {} false",
        heard.len(),
        missing.len(),
        twice.len(),
        wrong.len()
    );
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing {missing:#?}, twice {twice:#?}, false {wrong:#?}"
    );
}
