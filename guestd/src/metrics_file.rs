//! Metrics of this guest in `run/holdfast/holdfast.prom`.
//!
//! For the textfile collector of node_exporter: `--collector.textfile.directory=/run/holdfast`. It is written with the status
//! of stacks, from the same facts, and everyone in the guest may read it.

use std::path::PathBuf;

use holdfast_protocol::id::StackName;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::hello::UnwellState;
use holdfast_protocol::report::Health;
use jiff::Timestamp;
use metrics::{Exposition, Labels, Metric, Value};

use crate::file::{self, Eyes};
use crate::paths::Paths;

fn path(paths: &Paths) -> PathBuf {
    paths.run_dir().join("holdfast.prom")
}

/// What the file is made of.
pub struct GuestFacts<'a> {
    pub health: Health,
    /// Stacks that were stopped for a backup and do not run again.
    pub down: usize,
    /// Windows that are open.
    pub open: usize,
    pub stacks: Vec<StackFacts<'a>>,
    /// When the last window ended, and for how many milliseconds programs were stopped.
    pub last: Option<(Timestamp, u64)>,
}

/// A stack that should run.
pub struct StackFacts<'a> {
    pub stack: &'a StackName,
    /// None where it is not known to be unwell.
    pub unwell: Option<UnwellState>,
    pub restarts: u32,
}

/// Writes the file. A folder that cannot be written to keeps nothing from being done.
pub fn write(paths: &Paths, facts: &GuestFacts<'_>) {
    if let Err(error) = file::replace(&path(paths), page(facts).as_bytes(), Eyes::All) {
        tracing::warn!(error = chain(&error), "cannot write the metrics for node_exporter");
    }
}

fn page(facts: &GuestFacts<'_>) -> String {
    let (mut page, none) = (Exposition::default(), Labels::default());
    let flag = |is: bool| Value::Whole(u64::from(is));
    page.add(Metric::GuestdHealthy, &none, flag(facts.health == Health::Well));
    page.add(Metric::GuestdStopped, &none, facts.down.into());
    page.add(Metric::GuestdWindowOpen, &none, facts.open.into());
    for stack in &facts.stacks {
        let labels = none.with("stack", stack.stack);
        page.add(Metric::GuestdStackHealthy, &labels, flag(stack.unwell.is_none()));
        page.add(Metric::GuestdStackRestarts, &labels, Value::Whole(stack.restarts.into()));
    }
    if let Some((ended_at, stopped_ms)) = facts.last {
        page.add(Metric::GuestdWindowEnd, &none, Value::at(ended_at));
        page.add(Metric::GuestdWindowStopped, &none, Value::Thousandths(stopped_ms));
    }
    page.page()
}
