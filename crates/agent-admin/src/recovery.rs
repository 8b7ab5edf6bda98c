//! `agentd recovery show`: recovery plans and their outcome.
//!
//! Exit code 0: shown. 69: no agent runs. It is read in emergencies, so each operation gives its present state in
//! words. What a person has to do comes last, on lines of its own.

use std::fmt::Write as _;

use holdfast_protocol::operation::{OperationStatus, OperationView};
use jiff::Timestamp;

use super::Output;
use super::ago::ago;
use crate::plan::recovery::{RecoveryReport, operations};
use crate::port::admin_socket::{self, Answer, Question, StatusError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct RecoveryArguments {
    #[command(subcommand)]
    command: RecoveryCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RecoveryCommand {
    /// Show the last starts that found something open.
    #[command(after_long_help = "\
A plan is stored before it is run, so it is available after any crash. `planned` is what the agent meant to do when it \
started; `now` is read from its journal at this moment. The last start is shown even when it found nothing open.")]
    Show(ShowArguments),
}

/// The arguments of `show`.
#[derive(Debug, clap::Args)]
struct ShowArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// How many starts to show.
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=9))]
    last: u32,
    /// Text for people, or JSON (`holdfast.recovery/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    recoveries: &'a [RecoveryReport],
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Agent(#[from] StatusError),
}

impl RecoveryError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Agent(error) => error.exit_code(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`RecoveryError`].
pub fn run(arguments: &RecoveryArguments) -> Result<(), RecoveryError> {
    let RecoveryCommand::Show(show) = &arguments.command;
    let settings = Settings::load(&show.config)?;
    let Answer::Recovery(reports) =
        admin_socket::put(&settings.state.dir, Question::Recovery { last: show.last })?
    else {
        return Err(StatusError::Other.into());
    };
    match show.output {
        Output::Json => {
            super::print_json(&Document { schema: "holdfast.recovery/v1", recoveries: &reports });
        }
        Output::Table => print!("{}", page(&reports, super::now())),
    }
    Ok(())
}

/// The whole page for people.
fn page(reports: &[RecoveryReport], now: Timestamp) -> String {
    let mut page = String::new();
    if reports.is_empty() {
        page.push_str("no start is on record\n");
    }
    for report in reports {
        start(&mut page, report, now);
    }
    page
}

// Writing into a String cannot fail.
fn start(page: &mut String, report: &RecoveryReport, now: Timestamp) {
    let plan = &report.plan;
    let _infallible =
        write!(page, "start at {} ({}): ", plan.at.strftime("%Y-%m-%d %H:%M:%S UTC"), ago(plan.at, now));
    if plan.lines.is_empty() {
        page.push_str("nothing was left open\n");
        return;
    }
    let _infallible = writeln!(page, "{} left open", operations(plan.lines.len()));
    for line in &plan.lines {
        let view = report.now.iter().find(|view| view.id == line.id);
        let stands = view.map_or_else(|| "its journal is gone".to_owned(), |view| stands(view, now));
        let _infallible = write!(page, "\n  {line}\n    planned  {}\n    now      {stands}\n", line.recover);
        let remedy = view
            .filter(|view| view.status == OperationStatus::Parked)
            .and_then(|view| view.problem.as_ref()?.details.get("remedy"));
        if let Some(remedy) = remedy {
            let _infallible =
                writeln!(page, "    you      {remedy}\n             then `agentd parked retry {}`", line.id);
        }
    }
    page.push('\n');
}

fn stands(view: &OperationView, now: Timestamp) -> String {
    let word = match view.status {
        OperationStatus::Queued => "waits in its lane",
        OperationStatus::Running => "under way",
        OperationStatus::Undoing => "being taken back",
        OperationStatus::Done => "done",
        OperationStatus::Undone => "taken back, nothing of it is left",
        OperationStatus::Parked => "parked, it waits for you",
        OperationStatus::Forgotten => "ended by a person",
    };
    let when = view.ended_at.map(|at| format!(", {}", ago(at, now))).unwrap_or_default();
    let why = view.problem.as_ref().map(|problem| format!(": {}", problem.message)).unwrap_or_default();
    format!("{word}{when}{why}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reports() -> Vec<RecoveryReport> {
        let uid = "018f3c1e-6b1f-7c1d-9d0a-000000000001";
        let id = |n: u32| format!("018f3c1e-0000-7000-8000-{n:012}");
        let line = |n: u32, kind: &str, name: &str, recover: serde_json::Value| json!({"id": id(n), "kind": kind, "guest": uid, "name": name, "vmid": 300 + n, "step": kind, "recover": recover});
        let view = |n: u32, kind: &str, name: &str, status: &str, problem: serde_json::Value| {
            json!({"id": id(n), "kind": kind, "guest": uid, "name": name, "vmid": 300 + n, "status": status, "steps": [],
                "opened_at": "2026-11-21T02:50:00Z", "ended_at": "2026-11-21T02:58:00Z", "problem": problem})
        };
        let upid = "UPID:pve1:0004EDC4:001D4BFD:6A60F2EB:vzstart:301:hf@pve!operate:";
        let reason = "guest 302 has our number, but it carries no mark of ours: it is somebody else's now, and is not touched";
        let problem =
            json!({"code": "FOREIGN_GUEST", "message": reason, "details": {"remedy": "pct config 302"}});
        serde_json::from_value(json!([
            {"plan": {"at": "2026-11-21T02:57:00Z", "lines": [
                line(1, "start", "web-1", json!({"adopt": {"upid": upid, "known": "lost_reply"}})),
                line(2, "stop", "db", json!({"park": {"reason": reason, "remedy": "pct config 302"}})),
            ]}, "now": [view(1, "start", "web-1", "done", json!(null)), view(2, "stop", "db", "parked", problem)]},
            {"plan": {"at": "2026-11-20T02:57:00Z", "lines": []}, "now": []},
        ]))
        .unwrap()
    }

    #[test]
    fn what_a_tired_person_reads() {
        insta::assert_snapshot!(page(&reports(), "2026-11-21T03:00:00Z".parse().unwrap()));
    }
}
