//! Workers that the recording reads while they run.
//!
//! In: the lines of a recording. Out: which worker has to be held for them, and until which line: the last that shows it running, or its end
//! when it was killed.
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::recording::{Call, Content, Line, Task, task_of};

/// What a call began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// Nothing, or a worker that no later line reads.
    Alone,
    /// A worker that is to be held.
    Watched,
    /// A backup that waits for the one before by itself.
    Waits,
}

/// The workers that later lines read.
#[derive(Debug, Default)]
pub struct Watches {
    /// Recorded task, and the number of the last line that needs it.
    open: Vec<(String, usize)>,
}

/// Whether a worker was killed: it has no end status, and the cause was not a missing lock.
#[must_use]
pub fn is_killed(task: &Task) -> bool {
    let ended = task.last.get("exitstatus").and_then(Value::as_str);
    ended == Some("unexpected status") && !task.log.iter().any(|line| line.contains("can't acquire lock"))
}

impl Watches {
    /// Whether the call at this line starts a worker that later lines read.
    pub fn begins(&mut self, lines: &[Line], at: usize) -> Begun {
        let Some(Line { content: Content::Call(call), .. }) = lines.get(at) else { return Begun::Alone };
        let Some(name) = begun(call) else { return Begun::Alone };
        let last = lines.iter().skip(at + 1).take_while(|line| !is_end(line, name));
        let last = last.filter(|line| shows(line, name)).map(|line| line.number).last();
        let killed = task_of(lines, at).filter(|task| is_killed(task));
        let killed =
            killed.and_then(|_| lines.iter().find(|line| is_end(line, name)).map(|line| line.number));
        // A worker whose end is not recorded ran until the node went down.
        let ends = lines.iter().any(|line| is_end(line, name));
        let down = lines.iter().skip(at + 1).find(|line| goes_down(line).is_some()).map(|line| line.number);
        let down = down.filter(|_| !ends && last.is_some());
        let Some(last) = killed.or(down).or(last) else { return Begun::Alone };
        let kind = |name: &str| name.split(':').nth(5).map(str::to_owned);
        let waits = kind(name).as_deref() == Some("vzdump")
            && self.open.iter().any(|(other, _)| kind(other) == kind(name));
        self.open.push((name.to_owned(), last));
        if waits { Begun::Waits } else { Begun::Watched }
    }

    /// Whether a watch is still open after a line.
    #[must_use]
    pub fn goes_on(&self, number: usize) -> bool {
        self.open.iter().any(|(_, last)| *last > number)
    }

    /// Whether a watch is still open at a line.
    #[must_use]
    pub fn covers(&self, number: usize) -> bool {
        self.open.iter().any(|(_, last)| *last >= number)
    }

    /// Closes watches that no later line needs; returns whether that was the last one.
    pub fn ends(&mut self, number: usize) -> bool {
        let before = self.open.len();
        self.open.retain(|(_, last)| *last > number);
        before > 0 && self.open.is_empty()
    }

    /// A task came to its end.
    pub fn forget(&mut self, name: &str) {
        self.open.retain(|(held, _)| held != name);
    }

    /// Whether no watch is open.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// How the node went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Down {
    /// Its workers got a stop request.
    Orderly,
    /// Its workers got no notice.
    Hard,
}

/// Whether the node went down at a line.
#[must_use]
pub fn goes_down(line: &Line) -> Option<Down> {
    let Content::Other { note, .. } = &line.content else { return None };
    match note {
        note if note.contains("brought down (orderly)") => Some(Down::Orderly),
        note if note.contains("brought down (killed hard)") => Some(Down::Hard),
        _ => None,
    }
}

/// The task that a call began.
fn begun(call: &Call) -> Option<&str> {
    let data = call.answer.body.as_ref()?.get("data")?.as_str()?;
    data.starts_with("UPID:").then_some(data)
}

fn is_end(line: &Line, name: &str) -> bool {
    matches!(&line.content, Content::Task(task) if task.upid == name)
}

/// Whether a line shows a task running, or stops it.
fn shows(line: &Line, name: &str) -> bool {
    let Content::Call(call) = &line.content else { return false };
    let data = call.answer.body.as_ref().and_then(|body| body.get("data"));
    let path = percent_decode_str(&call.path).decode_utf8_lossy();
    if path.contains(name) {
        let running = data.and_then(|data| data.get("status")?.as_str()) == Some("running");
        return running || call.method == "DELETE";
    }
    let rows = data.and_then(Value::as_array);
    rows.into_iter().flatten().any(|row| {
        let word = |key: &str| row.get(key).and_then(Value::as_str);
        word("upid") == Some(name) && (word("status") == Some("RUNNING") || row.get("endtime").is_none())
    })
}
