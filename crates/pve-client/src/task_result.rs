//! The exit status and log of a task.
//!
//! Input: answers about one task. Output: whether it runs, and how it ended. Deliberately absent: what that means for
//! the caller that started it (`task`).

use serde_json::Value;

use super::wire::{Row, Unreadable, rows, whole};

/// How a task ended, by Proxmox's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// `OK`.
    Ok,
    /// `WARNINGS: n`: done, with notes in the log.
    Warnings(u32),
    /// The error line.
    Failed(String),
    /// `unexpected status`: the worker died without a message.
    Unexpected,
}

impl TaskEnd {
    pub(super) fn from_text(text: &str) -> Self {
        let warnings = text.strip_prefix("WARNINGS: ").and_then(|count| count.parse().ok());
        match (text, warnings) {
            ("OK", _) => Self::Ok,
            ("unexpected status" | "", _) => Self::Unexpected,
            (_, Some(count)) => Self::Warnings(count),
            _ => Self::Failed(text.to_owned()),
        }
    }
}

/// The present status of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    Running,
    /// It stopped without an exit status.
    StoppedSilently,
    Ended(TaskEnd),
}

impl TaskStatus {
    pub(super) fn read(value: &Value) -> Result<Self, Unreadable> {
        let row = Row::of(value)?;
        match (row.text("status")?.as_str(), row.text_opt("exitstatus")?) {
            ("running", _) => Ok(Self::Running),
            ("stopped", None) => Ok(Self::StoppedSilently),
            ("stopped", Some(text)) => Ok(Self::Ended(TaskEnd::from_text(&text))),
            (other, _) => Err(Unreadable(format!("status: {other:?} is neither running nor stopped"))),
        }
    }
}

/// Lines of a task's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskLog {
    pub lines: Vec<String>,
    /// How many there are by now.
    pub total: u64,
}

impl TaskLog {
    pub(super) fn read(data: &Value, total: Option<&Value>) -> Result<Self, Unreadable> {
        let mut lines = rows(data)?.into_iter().map(|row| Ok((row.whole("n")?, row.text("t")?)));
        let mut numbered = lines.by_ref().collect::<Result<Vec<_>, Unreadable>>()?;
        numbered.sort();
        let total = total.and_then(whole).unwrap_or(0);
        Ok(Self { lines: numbered.into_iter().map(|(_, text)| text).collect(), total })
    }
}
