//! The printed table of the matrix.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};

use super::case::{Case, Outcome};
use crate::points::Place;
use crate::story::Story;

/// The columns: every moment, before and after.
const MOMENTS: [&str; 8] =
    ["exchange", "opened", "intent", "request", "effect", "posted", "outcome", "frame"];

/// This many violations are printed in full.
const SHOWN: usize = 20;

#[derive(Default)]
struct Row {
    /// Its position in its story.
    order: usize,
    /// Cases by moment.
    cells: BTreeMap<String, usize>,
    violations: usize,
}

/// All that was found.
#[derive(Default)]
pub struct Report {
    rows: BTreeMap<(usize, String, String), Row>,
    stories: Vec<&'static str>,
    /// Cases by depth: undisturbed, single, an hour dead, double, each step again, failing, odd ends of tasks.
    kinds: BTreeMap<&'static str, usize>,
    ends: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
    violations: usize,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// Adds a case.
    pub fn add(&mut self, story: &Story, case: &Case, place: Option<Place>, outcome: &Outcome) {
        let nth = self.stories.iter().position(|name| *name == story.name).unwrap_or_else(|| {
            self.stories.push(story.name);
            self.stories.len() - 1
        });
        *self.kinds.entry(kind(case)).or_default() += 1;
        let end = outcome.end.map_or("none", |end| match end {
            agentd::operation::log::Status::Done => "done",
            agentd::operation::log::Status::Undone => "undone",
            _ => "parked",
        });
        *self.ends.entry(end).or_default() += 1;
        let (step, column) = match (case, place) {
            (_, Some(place)) => (place.step.to_owned(), place.moment()),
            (Case::Failing { step, .. }, None) => (step.clone(), "fails".to_owned()),
            (Case::EachStepAgain, None) => ("(each)".to_owned(), "again".to_owned()),
            (Case::Tasks(_), None) => ("(each)".to_owned(), "tasks".to_owned()),
            (_, None) => ("(whole)".to_owned(), "undisturbed".to_owned()),
        };
        let order = self.rows.len();
        let row = self.rows.entry((nth, story.name.to_owned(), step)).or_default();
        if row.cells.is_empty() {
            row.order = order;
        }
        *row.cells.entry(column).or_default() += 1;
        if !outcome.violations.is_empty() {
            row.violations += 1;
            self.violations += 1;
            self.wrong.push(report(story, case, outcome));
        }
    }

    /// A story that has a wrong end even when nothing disturbs it.
    pub fn wrong_story(&mut self, story: &Story, outcome: &Outcome) {
        self.violations += 1;
        let text = format!(
            "{}: undisturbed it ends {:?}, not {:?}\n      {}",
            story.name, outcome.end, story.end, outcome.reported
        );
        self.wrong.push(text);
    }

    /// How many cases there were.
    #[must_use]
    pub fn cases(&self) -> usize {
        self.kinds.values().sum()
    }

    /// How many of them do not hold.
    #[must_use]
    pub const fn violations(&self) -> usize {
        self.violations
    }

    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY);
        let mut header = vec!["operation".to_owned(), "step".to_owned()];
        header.extend(MOMENTS.iter().map(|moment| format!("{moment}\nbefore/after")));
        header.extend(["again", "fails", "tasks", "violations"].map(str::to_owned));
        table.set_header(header);
        let mut last = "";
        for ((_, story, step), row) in &self.rows {
            if step == "(whole)" {
                continue;
            }
            let name = if last == story { "" } else { story };
            last = story;
            let cell = |column: &str| row.cells.get(column).copied().unwrap_or_default();
            let mut cells = vec![name.to_owned(), step.clone()];
            cells.extend(MOMENTS.iter().map(|moment| {
                match (cell(&format!("before:{moment}")), cell(&format!("after:{moment}"))) {
                    (0, 0) => "·".to_owned(),
                    (before, after) => format!("{before}/{after}"),
                }
            }));
            let plain = |count: usize| if count == 0 { "·".to_owned() } else { count.to_string() };
            cells.extend(["again", "fails", "tasks"].map(|column| plain(cell(column))));
            cells.push(row.violations.to_string());
            table.add_row(cells);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }

    /// The totals, and each violation with how to run it again.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for wrong in self.wrong.iter().take(SHOWN) {
            let _ = writeln!(text, "VIOLATION {wrong}");
        }
        if self.wrong.len() > SHOWN {
            let _ = writeln!(text, "… and {} more", self.wrong.len() - SHOWN);
        }
        let list = |counts: &BTreeMap<&'static str, usize>| -> String {
            counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
        };
        let seconds = self.took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let rate = self.cases() as f64 / seconds.max(0.001);
        let _ = writeln!(
            text,
            "{} stories, {} cases ({}), {} violations; ends: {}; {seconds:.1} s, {rate:.0} cases/s",
            self.stories.len(),
            self.cases(),
            list(&self.kinds),
            self.violations,
            list(&self.ends),
        );
        text
    }
}

const fn kind(case: &Case) -> &'static str {
    match case {
        Case::Undisturbed => "undisturbed",
        Case::EachStepAgain => "with each step again",
        Case::Failing { .. } => "with a failing step",
        Case::Tasks(_) => "with odd ends of tasks",
        Case::Killed { at, dead_for } if at.len() == 1 && dead_for.is_zero() => "killed once",
        Case::Killed { at, .. } if at.len() == 1 => "killed and an hour dead",
        Case::Killed { .. } => "killed twice",
        Case::PowerLost(_) => "without power",
    }
}

fn report(story: &Story, case: &Case, outcome: &Outcome) -> String {
    let died: Vec<String> = outcome.died.iter().map(ToString::to_string).collect();
    let mut text =
        format!("{}/{case} (killed at {}), ended {:?}\n", story.name, died.join(", then "), outcome.end);
    for violation in &outcome.violations {
        let _ = writeln!(text, "      {}: {}", violation.name, violation.what);
    }
    let _ = writeln!(text, "      again: cargo xtask matrix --case '{}/{case}'", story.name);
    let _ = write!(text, "      {}", outcome.reported);
    text
}
