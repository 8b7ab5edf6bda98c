//! The page of `agentd rescue`.
//!
//! What is not safe comes first, then what to do, then the records. Text from outside cannot move the cursor.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use holdfast_protocol::operation::StepStatus;
use jiff::Timestamp;

use crate::ago::ago;
use crate::plan::recovery::Recover;
use crate::plan::rescue_advice::{Advice, AdviceKind};
use crate::port::store::rescue::{
    AgentProcess, AuditState, FileState, OpenOperation, OpenedAs, RescueState, Rows,
};

/// As many rows of one list are shown; `--output json` has all.
const SHOWN_MAX: usize = 200;

/// The whole page. Writing into a string cannot fail.
pub fn page(folder: &Path, state: &RescueState, advice: &[Advice], now: Timestamp) -> String {
    let mut page = format!("records in {}\n", folder.display());
    file(&mut page, state, now);
    for (kind, title) in
        [(AdviceKind::Never, "NOT SAFE"), (AdviceKind::Step, "TO DO"), (AdviceKind::Safe, "SAFE")]
    {
        let mut lines = advice.iter().filter(|one| one.kind == kind).peekable();
        if lines.peek().is_some() {
            let _infallible = writeln!(page, "\n{title}");
            lines.for_each(|one| {
                let _infallible = writeln!(page, "  - {}", one.text);
            });
        }
    }
    records(&mut page, state, now);
    page.chars().map(|one| if one.is_control() && one != '\n' { ' ' } else { one }).collect()
}

fn file(page: &mut String, state: &RescueState, now: Timestamp) {
    let FileState { version, known_version, bytes, log_bytes, .. } = &state.file;
    let version = version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
    let _infallible = writeln!(
        page,
        "  schema       {version}, this agentd knows {known_version}\n  size         {} KiB, and {} KiB of last writes",
        bytes.div_ceil(1024),
        log_bytes.div_ceil(1024)
    );
    for (what, at) in [
        ("file changed", state.file.changed_at),
        ("agent began", state.file.opened_at),
        ("last line", state.file.last_line_at),
    ] {
        if let Some(at) = at {
            let _infallible =
                writeln!(page, "  {what:<12} {} ({})", at.strftime("%Y-%m-%d %H:%M:%S UTC"), ago(at, now));
        }
    }
    let opened = match state.opened {
        OpenedAs::Shared => "next to the agent, as of one moment",
        OpenedAs::Whole => "as it lies there",
        OpenedAs::Copy => "from a copy with its last writes",
        OpenedAs::WithoutLastWrites => {
            "WITHOUT ITS LAST WRITES, for which there was no room: free some in /dev/shm or /tmp"
        }
    };
    let agent = match state.agent {
        AgentProcess::Running => "runs and holds the folder",
        AgentProcess::Stopped => "does not run",
        AgentProcess::Unknown => "unknown: its lock cannot be opened",
    };
    let _infallible = writeln!(page, "  agent        {agent}\n  read         {opened}");
    for finding in &state.file.findings.rows {
        let _infallible = writeln!(page, "  DAMAGED      {finding}");
    }
    for (what, text) in [
        ("DAMAGED", &state.file.findings.incomplete),
        ("SET ASIDE", &state.file.damaged_copy),
        ("REPLACED", &state.file.replaced_by),
    ] {
        if let Some(text) = text {
            let _infallible = writeln!(page, "  {what:<12} {text}");
        }
    }
    let _infallible = writeln!(page, "  audit        {}", audit(&state.audit));
}

fn audit(audit: &AuditState) -> String {
    let AuditState { lines, removed, verified_to, head, broken, incomplete, .. } = audit;
    let mut text = match broken {
        None => format!("{lines} lines hold, up to line {verified_to} with the hash {head}"),
        Some(why) => format!("DOES NOT HOLD behind line {verified_to}: {why}"),
    };
    if *removed > 0 {
        text.push_str(&format!("; the {removed} lines before were removed, as root had set it"));
    }
    if let Some(why) = incomplete {
        text.push_str(&format!("; LATER LINES MAY BE MISSING: {why}"));
    }
    text
}

fn records(page: &mut String, state: &RescueState, now: Timestamp) {
    let names: BTreeMap<&str, &str> =
        state.guests.rows.iter().map(|guest| (guest.uid.as_str(), guest.name.as_str())).collect();
    let name = |uid: &str| names.get(uid).map_or_else(|| uid.to_owned(), |name| (*name).to_owned());
    let since = |at: Option<Timestamp>| at.map_or_else(|| "at an unknown time".to_owned(), |at| ago(at, now));
    list(page, "OPEN OPERATIONS", &state.open, |one| operation(one, &name(&one.guest), now));
    list(page, "PARKED OPERATIONS", &state.parked, |one| {
        let step = one.step.as_deref().unwrap_or("no step");
        let vmid = one.vmid.map(|vmid| format!(" ({vmid})")).unwrap_or_default();
        format!(
            "{} of {}{vmid} at {step}, {}: {}",
            one.kind.as_str(),
            one.name.as_str(),
            ago(one.since, now),
            one.problem.message
        )
    });
    list(page, "PROGRAMS THAT MAY BE STOPPED", &state.windows, |one| {
        format!("{}, window granted {}", name(&one.guest), since(one.granted_at))
    });
    list(page, "GUESTS", &state.guests, |one| {
        let vmid = one.vmid.map_or_else(|| "no VMID".to_owned(), |vmid| vmid.to_string());
        let frozen = if one.access == "frozen" { ", FROZEN" } else { "" };
        format!("{} ({vmid}) of {}, {}{frozen}, {}", one.name, one.customer, one.place, one.uid)
    });
    list(page, "NEWEST BACKUPS", &state.backups, |one| {
        let Rows { rows: tests, .. } = &state.tests;
        let test = tests.iter().find(|test| test.guest == one.guest && test.archive == one.archive);
        let tested = test
            .map(|test| format!(", restore test {}: {}", since(test.at), test.verdict))
            .unwrap_or_default();
        format!(
            "{} on {}: {}, {}, 1 of {}{tested}",
            name(&one.guest),
            one.storage,
            one.archive,
            since(one.taken_at),
            one.count
        )
    });
    list(page, "STORAGE TARGETS", &state.targets, |one| {
        let backend = one.backend.as_deref().unwrap_or("an approval that is not understood");
        format!("{}, {}: {backend}", one.name, one.state)
    });
}

fn operation(one: &OpenOperation, guest: &str, now: Timestamp) -> String {
    let opened = one.opened_at.map_or_else(|| "at an unknown time".to_owned(), |at| ago(at, now));
    let Some(view) = &one.view else {
        let why = one.unreadable.as_deref().unwrap_or("its journal is gone");
        return format!("{} of {guest}, opened {opened}: NOT READABLE: {why}", one.kind);
    };
    let vmid = view.vmid.map(|vmid| format!(" ({vmid})")).unwrap_or_default();
    let mut text =
        format!("{} of {guest}{vmid}, {}, opened {opened}, {}", one.kind, view.status.as_str(), one.id);
    for step in &view.steps {
        let status = match step.status {
            StepStatus::Pending => "not begun",
            StepStatus::Intended => "BEGUN, its effect may have happened",
            StepStatus::Done => "done",
            StepStatus::Failed => "failed",
            StepStatus::Undoing => "being taken back",
            StepStatus::Undone => "taken back",
        };
        let upid = step.upid.as_ref().map(|upid| format!(", task {upid}")).unwrap_or_default();
        let _infallible = write!(text, "\n      {:<20} {status}{upid}", step.name);
    }
    if let Some(recover) = &one.recover {
        let _infallible = write!(text, "\n      at its start the agent {}", planned(recover));
    }
    text
}

fn planned(recover: &Recover) -> String {
    match recover {
        Recover::Wait => "leaves it in its lane".to_owned(),
        Recover::GoOn => "goes on with the next step".to_owned(),
        Recover::Probe { question, .. } => format!("asks first: {question}"),
        Recover::Adopt { upid, .. } => format!("follows task {upid}"),
        Recover::Undo => "takes back what it made".to_owned(),
        Recover::Park { reason, .. } => format!("parks it: {reason}"),
        Recover::Conclude => "writes down its end".to_owned(),
    }
}

/// A list with what is missing of it. An empty list that was read whole is left out.
fn list<T>(page: &mut String, title: &str, rows: &Rows<T>, line: impl Fn(&T) -> String) {
    if rows.rows.is_empty() && rows.incomplete.is_none() && rows.not_understood == 0 {
        return;
    }
    let _infallible = writeln!(page, "\n{title}");
    for row in rows.rows.iter().take(SHOWN_MAX) {
        let _infallible = writeln!(page, "  {}", line(row));
    }
    let more = rows.rows.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        let _infallible = writeln!(page, "  {more} more: --output json");
    }
    if rows.not_understood > 0 {
        let _infallible = writeln!(page, "  NOT UNDERSTOOD: {} rows", rows.not_understood);
    }
    if let Some(why) = &rows.incomplete {
        let _infallible = writeln!(page, "  INCOMPLETE: {why}");
    }
}
