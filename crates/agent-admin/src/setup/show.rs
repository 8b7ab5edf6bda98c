//! The setup plan, printed as text or JSON.

use serde::Serialize;

use super::diff::{Step, StepState};
use super::write::Write;

/// One line of the plan.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Line {
    what: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
}

/// The plan, or its outcome.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct PrintedStep {
    /// `holdfast.setup/v1`.
    pub schema: &'static str,
    /// `planned`, `done`.
    pub outcome: &'static str,
    /// Steps that had or have to be taken.
    pub to_do: usize,
    pub steps: Vec<Line>,
    /// The items that a removal leaves as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

impl PrintedStep {
    /// Puts lines together: on the host, in Proxmox, on the host again.
    #[must_use]
    pub fn of(outcome: &'static str, lines: Vec<Line>) -> Self {
        let to_do = lines.iter().filter(|line| line.state != "there").count();
        Self { schema: "holdfast.setup/v1", outcome, to_do, steps: lines, left: Vec::new() }
    }

    /// Adds the items that stay.
    #[must_use]
    pub fn leaving(mut self, left: &[String]) -> Self {
        self.left = left.to_vec();
        self
    }

    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.steps {
            let sign = match line.state {
                "there" => " ",
                "missing" => "+",
                _ => "~",
            };
            text.push_str(&format!("{sign} {}\n", line.what));
            if let Some(why) = line.why {
                text.push_str(&format!("    {why}\n"));
            }
            for command in &line.commands {
                text.push_str(&format!("    {command}\n"));
            }
        }
        self.left.iter().for_each(|what| text.push_str(&format!("  stays: {what}\n")));
        let done = self.steps.len() - self.to_do;
        text.push_str(&format!("\n{} to do, {done} there already\n", self.to_do));
        text
    }
}

/// A step on the host.
#[must_use]
pub fn here(what: &str, status: &StepState) -> Line {
    line(what, status, Vec::new())
}

/// A step in Proxmox.
#[must_use]
pub fn there(step: &Step) -> Line {
    line(&step.what, &step.status, step.writes.iter().map(Write::line).collect())
}

fn line(what: &str, status: &StepState, commands: Vec<String>) -> Line {
    let (state, why) = match status {
        StepState::Done => ("there", None),
        StepState::Missing => ("missing", None),
        StepState::Differs(why) => ("differs", Some(*why)),
    };
    Line { what: what.to_owned(), state, why, commands }
}
