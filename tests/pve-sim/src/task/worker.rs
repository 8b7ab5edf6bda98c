//! A running task: its state, its log, its checkpoints.
//!
//! The body works step by step and calls [`Task::pace`] between steps. A stop, a kill or an armed fault takes effect there. A stop is
//! returned as an ordinary error, so that the body cleans up as the real worker's signal handler lets it. A kill is returned as
//! [`Halt::Killed`]; after that nothing may be cleaned up, because the process is gone.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::index::{Ended, Goal};
use super::upid::Upid;
use crate::fail::{Fallible, Refusal, host};
use crate::fault::End;
use crate::node::Node;

/// Why a body did not reach its end.
#[derive(Debug)]
pub enum Halt {
    /// It failed with this.
    Failed(Refusal),
    /// Its process was killed; nothing is cleaned up.
    Killed,
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal)
    }
}

/// What a body returns.
pub type Outcome = Result<(), Halt>;

/// The handle a body works with.
#[derive(Debug)]
pub struct Task {
    /// The node it runs on.
    pub node: Arc<Node>,
    pub upid: Upid,
    goal: Arc<Goal>,
    warnings: AtomicU32,
    heard: AtomicBool,
}

impl Task {
    /// A line in the log.
    pub fn log(&self, line: impl AsRef<str>) {
        for part in line.as_ref().split('\n') {
            if let Err(error) = self.node.tasks.append(&self.upid, part) {
                tracing::error!(upid = %self.upid, %error, "task log not written");
            }
        }
    }

    /// A warning: a line in the log, and the task ends `WARNINGS: n`.
    pub fn warn(&self, text: &str) {
        self.warnings.fetch_add(1, Ordering::SeqCst);
        self.log(format!("WARN: {text}"));
    }

    /// A step boundary with a name: lets time pass, and checks for a stop or a kill.
    ///
    /// # Errors
    /// When the task is to stop or was killed.
    pub fn pace(&self, phase: &str) -> Result<(), Halt> {
        let mut rest = self.node.settings.pace;
        self.node.faults.fails(&self.upid.kind, phase)?;
        if self.node.faults.kills(&self.upid.kind, phase) {
            self.goal.kill();
        }
        let round = self.node.faults.round();
        let hold = self.node.faults.hold(&self.upid.kind, phase);
        rest += hold;
        // Short slices, so that a stop is heard soon.
        let slice = std::time::Duration::from_millis(10);
        loop {
            if self.goal.is_kill() {
                return Err(Halt::Killed);
            }
            if self.is_stopping() && !self.heard.load(Ordering::SeqCst) {
                return Err(Halt::Failed(Refusal::die("received interrupt")));
            }
            if rest.is_zero() || (!hold.is_zero() && self.node.faults.round() != round) {
                return Ok(());
            }
            let now = rest.min(slice);
            self.node.clock.pause(now);
            rest -= now;
        }
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.goal.is_stop()
    }

    /// Whether it is dead and does nothing more.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.goal.is_kill()
    }

    /// From here on a requested stop counts as handled, so that cleanup is not interrupted a second time.
    pub fn hear(&self) {
        self.heard.store(true, Ordering::SeqCst);
    }

    /// Whether it must end, for any reason; the next [`Task::pace`] returns which.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.goal.is_stop() || self.goal.is_kill()
    }

    fn finish(&self, outcome: Outcome) {
        let kind = &self.upid.kind;
        if outcome.is_ok() && self.node.faults.warns(kind) {
            self.warn("something is not as it should be");
        }
        let reported = self.node.faults.end(kind);
        if reported == End::Vanished {
            if let Err(error) = self.node.tasks.lose(&self.upid) {
                tracing::error!(upid = %self.upid, %error, "a task could not be lost");
            }
            return;
        }
        let status = match outcome {
            _ if reported == End::Unknown => "unexpected status".to_owned(),
            Err(Halt::Killed) => "unexpected status".to_owned(),
            Err(Halt::Failed(refusal)) => {
                let text = refusal.in_task();
                let flat = text.trim_end().replace('\n', " ");
                self.log(format!("TASK ERROR: {flat}"));
                flat
            }
            Ok(()) => match self.warnings.load(Ordering::SeqCst) {
                0 => {
                    self.log("TASK OK");
                    "OK".to_owned()
                }
                n => {
                    self.log(format!("TASK WARNINGS: {n}"));
                    format!("WARNINGS: {n}")
                }
            },
        };
        let ended = Ended { endtime: self.node.clock.now_s(), status };
        if let Err(error) = self.node.tasks.end(&self.upid, ended) {
            tracing::error!(upid = %self.upid, %error, "end of task not written");
        }
    }
}

/// Starts a task and returns its name.
///
/// # Errors
/// When the memory of tasks or a thread cannot be had.
pub fn spawn<F>(node: &Arc<Node>, kind: &str, id: &str, owner: &str, body: F) -> Fallible<String>
where
    F: FnOnce(&Task) -> Outcome + Send + 'static,
{
    let number = node.clock.next_number();
    let upid = Upid {
        node: node.name.clone(),
        pid: number & 0xffff_ffff,
        pstart: u64::try_from(node.clock.now_ms() / 10).unwrap_or_default() & 0xffff_ffff,
        starttime: node.clock.now_s(),
        kind: kind.to_owned(),
        id: id.to_owned(),
        owner: owner.to_owned(),
    };
    let goal = node.tasks.start(&upid).map_err(|error| host("start of task", &error))?;
    let name = upid.to_string();
    let task = Task {
        node: Arc::clone(node),
        upid,
        goal,
        warnings: AtomicU32::new(0),
        heard: AtomicBool::new(false),
    };
    let run = move || {
        let outcome = task.pace("start").and_then(|()| body(&task));
        task.finish(outcome);
    };
    node.clock.run_task(&name, Box::new(run)).map_err(|error| host("start of worker", &error))?;
    Ok(name)
}
