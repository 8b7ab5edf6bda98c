//! `guestd quiesce --dry-run`: the plan of a window, stopping nothing.
//!
//! It shows what runs, what would stop in which order, which hooks would run, and whether marker and timer can be
//! created.
//!
//! Exit code 0: a window would go through, as far as is known. 1: it would be called off, and why.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::MountView;
use serde::Serialize;

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_NO_PERMISSION, Output, PathArgs, QuiesceArgs};
use crate::clock;
use crate::driver::Group;
use crate::file::{self, Eyes};
use crate::paths::Paths;
use crate::quiesce::lock::{self, LockResult};
use crate::quiesce::marker::Marker;
use crate::quiesce::stop::{self, Running};
use crate::quiesce::{boot, timer};
use crate::stacks::{self, Stacks, StacksError};
use crate::work::Session;

/// A bound for the timer that is only tried.
const TRIED: Duration = Duration::from_secs(3_600);

/// Why the plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    #[error(transparent)]
    Stacks(#[from] StacksError),
    /// The output cannot be written.
    #[error("the plan cannot be printed")]
    Print(#[source] io::Error),
    /// Cannot happen for plain text.
    #[error("the plan cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl DryRunError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stacks(StacksError::File(error)) if error.is_permission() => EXIT_NO_PERMISSION,
            _ => EXIT_FAILED,
        }
    }
}

/// The document for programs.
#[derive(Debug, Serialize)]
struct Plan {
    schema: &'static str,
    /// In the order of the file's starting.
    stacks: Vec<RunningParts>,
    /// What would be stopped, in that order.
    would_stop: Vec<Step>,
    /// Why a window would be called off; nothing when it would go through.
    problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RunningParts {
    stack: String,
    runs: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Step {
    stack: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_quiesce: Option<Vec<String>>,
    stop: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    post_resume: Option<Vec<String>>,
}

/// `guestd quiesce --dry-run`.
pub async fn dry_run(args: &QuiesceArgs) -> Result<u8, DryRunError> {
    let paths = Paths::new(&args.paths.root);
    let stacks = stacks::load(&paths)?;
    let mut problems = Vec::new();
    let running = look(&paths, &args.paths, &stacks, &mut problems).await;
    if !stacks.is_empty() {
        problems.extend(rehearse(&paths, &running).await.err());
    }
    let plan = Plan {
        schema: "holdfast.guestd-dry-run/v1",
        stacks: stacks.stacks.iter().map(|stack| known(stack.name.as_str(), &running)).collect(),
        would_stop: running.iter().rev().map(step).collect(),
        problems,
    };
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&plan).map_err(DryRunError::Unwritable)? + "\n",
        Output::Table => table(&plan),
    };
    io::stdout().write_all(text.as_bytes()).map_err(DryRunError::Print)?;
    Ok(if plan.problems.is_empty() { EXIT_DONE } else { EXIT_FAILED })
}

async fn look(paths: &Paths, args: &PathArgs, stacks: &Stacks, problems: &mut Vec<String>) -> Vec<Running> {
    let volumes = if stacks.stacks.iter().any(|stack| !stack.volumes.is_empty()) {
        volumes(args).await.unwrap_or_else(|why| {
            problems.push(format!("the volumes of this guest are unknown: {why}"));
            Vec::new()
        })
    } else {
        Vec::new()
    };
    let running = match stop::look(paths, stacks, &volumes).await {
        Ok(running) => running,
        Err(error) => {
            problems.push(chain(&error));
            return Vec::new();
        }
    };
    problems.extend(stop::could_start(paths, &running).err().map(|error| chain(&error)));
    running
}

/// The volumes that `stacks.toml` names by class.
async fn volumes(args: &PathArgs) -> Result<Vec<MountView>, String> {
    let session = Session::open(args).map_err(|error| chain(&error))?;
    let storage = session.agent.storage(&session.token).await.map_err(|error| chain(&error))?;
    Ok(storage.volumes)
}

/// Copies the program, writes a marker under another name, arms a timer, and removes all of it. It holds the lock, so
/// that it does not remove a real window's files.
async fn rehearse(paths: &Paths, running: &[Running]) -> Result<(), String> {
    file::make_folder(&paths.run_dir(), Eyes::All).map_err(|error| chain(&error))?;
    let _turn = match lock::take(paths) {
        LockResult::Acquired(lock) => lock,
        LockResult::Taken => return Err("another window is open".to_owned()),
        LockResult::Unknown(why) => return Err(why),
    };
    if Marker::is_there(paths) {
        return Err("stacks of an earlier window are not running yet: run `guestd resume`".to_owned());
    }
    let boot_id = boot::id(paths).map_err(|error| chain(&error))?.ok_or("no boot id: mount /proc")?;
    let now = clock::since_boot(paths).ok_or("/proc/uptime cannot be read")?;
    // A name that no window has.
    let tried = OperationId::new(uuid::Uuid::new_v4());
    let marker = stop::marker(tried, &boot_id, now + TRIED, running);
    marker.rehearse(paths).map_err(|error| format!("the marker cannot be written: {}", chain(&error)))?;
    timer::copy_program(paths).map_err(|error| chain(&error))?;
    timer::arm(paths, &marker.timer, TRIED).await.map_err(|error| chain(&error))?;
    timer::disarm(&marker.timer)
        .await
        .map_err(|error| format!("the timer cannot be removed: {}", chain(&error)))?;
    file::remove_durably(&timer::program_path(paths)).map_err(|error| chain(&error))
}

fn known(stack: &str, running: &[Running]) -> RunningParts {
    let runs = running.iter().find(|running| running.stack.name.as_str() == stack);
    RunningParts {
        stack: stack.to_owned(),
        runs: runs.map(|running| running.stopped.groups.clone()).unwrap_or_default(),
    }
}

fn step(running: &Running) -> Step {
    let limit = running.stack.limits.stop;
    let calls = running.stopped.engine.stop(&running.stopped.groups, limit);
    Step {
        stack: running.stack.name.to_string(),
        pre_quiesce: running.stack.hooks.pre_quiesce.clone(),
        stop: calls.iter().map(crate::program::Call::line).collect(),
        post_resume: running.stack.hooks.post_resume.clone(),
    }
}

fn table(plan: &Plan) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if plan.stacks.is_empty() {
        let _ = writeln!(text, "There are no stacks in /etc/holdfast/stacks.toml: nothing would be stopped.");
    }
    for known in &plan.stacks {
        let names: Vec<&str> = known.runs.iter().map(|group| group.name.as_str()).collect();
        let runs = if names.is_empty() {
            "stopped, and stays stopped".to_owned()
        } else {
            format!("runs: {}", names.join(", "))
        };
        let _ = writeln!(text, "{:<20} {runs}", known.stack);
    }
    for (number, step) in plan.would_stop.iter().enumerate() {
        if let Some(argv) = &step.pre_quiesce {
            let _ = writeln!(text, "{}. {} hook: {}", number + 1, step.stack, argv.join(" "));
        }
        for line in &step.stop {
            let _ = writeln!(text, "{}. {} stop: {line}", number + 1, step.stack);
        }
    }
    if !plan.would_stop.is_empty() {
        let _ = writeln!(text, "They start again in reverse order, then:");
        for step in plan.would_stop.iter().rev() {
            let hook = step.post_resume.as_ref().map_or_else(|| "no hook".to_owned(), |argv| argv.join(" "));
            let _ = writeln!(text, "   {} hook: {hook}", step.stack);
        }
    }
    for problem in &plan.problems {
        let _ = writeln!(text, "A window would be cancelled: {problem}");
    }
    let _ = writeln!(text, "Nothing was stopped.");
    text
}
