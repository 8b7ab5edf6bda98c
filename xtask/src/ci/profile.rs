//! `cargo ci --profile`: where CI's time goes, written to `docs/ci.md`.
//!
//! In: how the parts ended, nextest's report of the tests, cargo's own timings of the build. Out: three sections of the
//! page; what was written by hand, and the table of runs at full depth, are kept.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use regex::Regex;
use serde::Deserialize;

use super::deep;
use super::pick::State;
use super::runner::Ended;
use super::work;
use crate::page;
use crate::workspace::{root, target};

const PARTS: &str = "\n## Parts\n";
const TESTS: &str = "\n## The twenty slowest tests\n";
const UNITS: &str = "\n## The twenty longest steps of the build\n";

/// The number of rows in each list.
const ROWS: usize = 20;

/// Writes the three sections.
pub fn write(ended: &[Ended], prepared: Duration, whole: Duration) -> Result<()> {
    let path = root().join("docs/ci.md");
    let mut page = std::fs::read_to_string(&path).context("cannot read docs/ci.md")?;
    page = page::with_section(&page, PARTS, &parts(ended, prepared, whole)?);
    if let Ok(report) = std::fs::read_to_string(target().join("ci").join(work::REPORT)) {
        page = page::with_section(&page, TESTS, &tests(&report)?);
    }
    if let Some(timings) = newest(&target().join("cargo-timings"), "cargo-timing-")? {
        page = page::with_section(&page, UNITS, &units(&std::fs::read_to_string(timings)?)?);
    }
    std::fs::write(&path, page).context("cannot write docs/ci.md")?;
    println!("written: docs/ci.md");
    Ok(())
}

fn parts(ended: &[Ended], prepared: Duration, whole: Duration) -> Result<String> {
    let cores = std::thread::available_parallelism().context("how many processors?")?;
    let mut text = format!(
        "\nMeasured on {} with {cores} cores: {:.1} minutes in all, {:.0} s of them for Debian packages. Parts run side by \
         side, so their times add up to more; the seconds of cores add up to what the machine did.\n\n\
         | suite | part | seconds | seconds of a core | verdict |\n| --- | --- | --- | --- | --- |\n",
        deep::day()?,
        whole.as_secs_f32() / 60.0,
        prepared.as_secs_f32(),
    );
    let mut rows: Vec<&Ended> = ended.iter().collect();
    rows.sort_by_key(|one| (one.part.suite, std::cmp::Reverse(one.took)));
    for one in rows {
        let verdict = if one.state == State::Passed { "passed" } else { "FAILED" };
        let (suite, name, seconds) = (one.part.suite.name(), one.part.name, one.took.as_secs());
        writeln!(text, "| {suite} | {name} | {seconds} | {} | {verdict} |", one.cpu.as_secs())?;
    }
    Ok(text)
}

/// The slowest of nextest's report, which is the last run's of the part `tests`.
fn tests(report: &str) -> Result<String> {
    let case = Regex::new(r#"<testcase name="([^"]+)" classname="([^"]+)"[^>]* time="([0-9.]+)""#)?;
    let mut all: Vec<(f64, String)> = case
        .captures_iter(report)
        .filter_map(|found| Some((found[3].parse().ok()?, format!("{} {}", &found[2], &found[1]))))
        .collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    let sum: f64 = all.iter().map(|(seconds, _)| seconds).sum();
    let mut text = format!(
        "\n{} tests took {sum:.0} s in all, several at a time.\n\n| seconds | test |\n| --- | --- |\n",
        all.len()
    );
    for (seconds, name) in all.iter().take(ROWS) {
        writeln!(text, "| {seconds:.1} | {name} |")?;
    }
    Ok(text)
}

/// One step of the build, as cargo's page of timings holds it.
#[derive(Deserialize)]
struct Unit {
    name: String,
    target: String,
    duration: f64,
}

/// The longest steps of cargo's own page of timings.
fn units(timings: &str) -> Result<String> {
    let data = Regex::new(r"(?s)UNIT_DATA = (\[.*?\]);\n")?;
    let found = data.captures(timings).context("cargo's page of timings has no UNIT_DATA")?;
    let mut all: Vec<Unit> = serde_json::from_str(&found[1]).context("UNIT_DATA is of another form")?;
    all.sort_by(|one, other| other.duration.total_cmp(&one.duration));
    let sum: f64 = all.iter().map(|unit| unit.duration).sum();
    let mut text = format!(
        "\n{} steps took {sum:.0} s in all, as many at a time as there are cores.\n\n| seconds | crate | target |\n\
         | --- | --- | --- |\n",
        all.len()
    );
    for unit in all.iter().take(ROWS) {
        writeln!(text, "| {:.1} | {} | {} |", unit.duration, unit.name, unit.target.trim())?;
    }
    Ok(text)
}

/// The newest file whose name begins so.
fn newest(folder: &Path, begins: &str) -> Result<Option<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(None) };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(begins) {
            found.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}

#[cfg(test)]
mod tests_of_the_page {
    use super::*;

    #[test]
    fn the_slowest_tests_come_first() {
        let report = r#"<testcase name="a::b" classname="agentd" timestamp="x" time="0.5">
            <testcase name="c" classname="hubd::it" timestamp="x" time="12.25">"#;
        let text = tests(report).unwrap();
        assert!(text.contains("2 tests took 13 s"), "{text}");
        assert!(text.contains("| 12.2 | hubd::it c |\n| 0.5 | agentd a::b |"), "{text}");
    }

    #[test]
    fn the_longest_steps_come_first() {
        let page = "x\nconst UNIT_DATA = [{\"i\":0,\"name\":\"a\",\"target\":\"\",\"duration\":1.0,\"other\":[]},\
                    {\"i\":1,\"name\":\"b\",\"target\":\" lib (test)\",\"duration\":2.0}];\nconst C = 1;\n";
        let text = units(page).unwrap();
        assert!(text.contains("| 2.0 | b | lib (test) |\n| 1.0 | a |  |"), "{text}");
    }
}
