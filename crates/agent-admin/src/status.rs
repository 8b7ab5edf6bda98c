//! `agentd status`: the agent, its guests and operations.
//!
//! Exit code 0: shown. 69: no agent runs. Problems that need a person come first, as text.

mod fields;
mod tunnels;

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use holdfast_protocol::host_maintenance::{HostMaintenancePhase, HostMaintenanceReport};
use holdfast_protocol::operation::{OperationStatus, OperationView, StepStatus};
use holdfast_protocol::operation_tries::{Tries, tries};
use holdfast_protocol::protection::Posture;
use holdfast_protocol::report::{AssignedShare, GuestReport, GuestStatus, Running};
use jiff::{SignedDuration, Timestamp};

use super::Output;
use super::ago::ago;
use crate::model::token_age::TokenAge;
use crate::model::view::{GrowthLine, HeavyWork};
use crate::port::admin_socket::{self, AgentStatus, Answer, ObservedTimes, Question, StatusError};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// An observation of Proxmox older than this gets a notice: several cycles were missed.
const OLD_LOOK: SignedDuration = SignedDuration::from_secs(120);

/// A table of this width still fits two thirds of a usual terminal.
const NOTE_CHARS_MAX: usize = 60;

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Everything is read from the running agent and nothing from files, so what is shown is true now; `seen` says when \
Proxmox was last read. A guest's status is managed, absent (on its way), being made, unmanaged (the document no longer \
names it; it is kept), missing, foreign (not ours, never touched), broken or parked (waiting for a person).")]
pub struct StatusArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// Show the fields of this guest, by its name, number or uid: the document's value, Proxmox's value, the last
    /// applied value.
    guest: Option<String>,
    /// Tables for people, or JSON (`holdfast.status/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum StatusCommandError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Status(#[from] StatusError),
}

impl StatusCommandError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Status(error) => error.exit_code(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`StatusCommandError`].
pub fn run(arguments: &StatusArguments) -> Result<(), StatusCommandError> {
    let settings = Settings::load(&arguments.config)?;
    if let Some(guest) = &arguments.guest {
        let question = Question::Fields { guest: guest.clone() };
        let Answer::Fields(view) = admin_socket::put(&settings.state.dir, question)? else {
            return Err(StatusError::Other.into());
        };
        match arguments.output {
            Output::Json => super::print_json(&view),
            Output::Table => print!("{}", fields::page(&view)),
        }
        return Ok(());
    }
    let status = admin_socket::ask(&settings.state.dir)?;
    match arguments.output {
        Output::Json => super::print_json(&status),
        Output::Table => print!("{}", page(&status)),
    }
    Ok(())
}

/// The whole page for people.
fn page(status: &AgentStatus) -> String {
    let mut page = String::new();
    head(&mut page, status);
    attention(&mut page, status);
    if let Some(guests) = status.sections.guests.as_ref().filter(|guests| !guests.is_empty()) {
        section(&mut page, "Guests", guest_table(guests, status.at));
    }
    if let Some(targets) = status.sections.storage.as_ref().filter(|all| !all.is_empty()) {
        section(&mut page, "Storage", super::storage::table(targets, status.at));
        page.push_str(&super::storage::off_site(targets));
    }
    if let Some(agent) = status.sections.agent.as_ref().filter(|agent| !agent.tunnels.is_empty()) {
        section(&mut page, "Tunnels", tunnels::table(&agent.tunnels, status.at));
    }
    if let Some(operations) = status.sections.operations.as_ref().filter(|all| !all.is_empty()) {
        section(&mut page, "Operations", operation_table(operations, status.at));
    }
    let lanes = lane_lines(status);
    if !lanes.is_empty() {
        page.push_str("\nLanes\n");
        for line in lanes {
            // Writing into a String cannot fail.
            let _infallible = writeln!(page, "  {line}");
        }
    }
    page
}

/// The waiting operations, a line each.
fn lane_lines(status: &AgentStatus) -> Vec<String> {
    let sections = &status.sections;
    let operation = |id| sections.operations.iter().flatten().find(|operation| operation.id == id);
    let called = |id| match operation(id) {
        Some(operation) => format!("{} of {}", operation.kind.as_str(), operation.name),
        None => format!("operation {id}"),
    };
    let mut lines = Vec::new();
    for lane in &status.lanes {
        let guest = sections.guests.iter().flatten().find(|guest| guest.uid == Some(lane.guest));
        let name = guest.map_or_else(|| lane.guest.to_string(), |guest| guest.name.clone());
        let behind = match lane.holds {
            Some(id) => format!("behind {}", called(id)),
            None => "next".to_owned(),
        };
        let waits = lane.waits.iter();
        let waits =
            waits.map(|one| format!("{} (asked {})", one.kind.as_str(), ago(one.asked_at, status.at)));
        lines.push(format!("{name}, {behind}: {}", waits.collect::<Vec<_>>().join(", ")));
    }
    let heavy = status.heavy.waiting.iter();
    lines.extend(heavy.map(|token| {
        let place = match token.work {
            HeavyWork::Archive => "a place at heavy work",
            HeavyWork::Backup => "the place for backups, of which Proxmox takes one at a time",
        };
        format!("{} waits for {place}", called(token.operation))
    }));
    lines
}

fn section(page: &mut String, title: &str, table: Table) {
    // Writing into a String cannot fail.
    let _infallible = writeln!(page, "\n{title}\n{table}");
}

fn head(page: &mut String, status: &AgentStatus) {
    let at = status.at;
    let seen = status.seen_at.map_or_else(|| "never".to_owned(), |seen| ago(seen, at));
    let hub = match (&status.contact.problem, status.contact.reached_at) {
        (None, Some(reached)) => format!("reached {}", ago(reached, at)),
        (None, None) => "not reached yet".to_owned(),
        (Some(problem), Some(reached)) => {
            format!("last reached {}, since then: {problem}", ago(reached, at))
        }
        (Some(problem), None) => format!("not reached: {problem}"),
    };
    let held = status.sections.desired.as_ref().map_or(0, |desired| desired.held.number());
    let version = status.sections.agent.as_ref().map_or("", |agent| agent.version.as_str());
    let _infallible = write!(
        page,
        "host     {} (agentd {version}), fingerprint {}\nhub      {}: {hub}\ndesired  generation {held}\nproxmox  seen {seen}\n",
        status.host_name, status.fingerprint, status.hub
    );
    let agent = status.sections.agent.as_ref();
    if let Some(report) = agent.and_then(|agent| agent.maintenance.as_ref()) {
        let _infallible = writeln!(page, "drain    {}", drain(report, at));
    }
    if let Some(found) = found(&status.times, at) {
        let _infallible = writeln!(page, "facts    {found}");
    }
    if !status.tokens.is_empty() {
        let said = |age: &TokenAge| {
            let late = if age.late_since(at).is_some() { " (late)" } else { "" };
            format!("{} {} d{late}", age.role, age.days(at))
        };
        let said: Vec<String> = status.tokens.iter().map(said).collect();
        let _infallible = writeln!(page, "tokens   for Proxmox, by age: {}", said.join(", "));
    }
    let shares = status.sections.host.as_ref().map(|host| host.assigned_shares()).unwrap_or_default();
    if !shares.is_empty() {
        let said = |share: &AssignedShare| {
            let beyond = if share.is_over() { format!(", above {} %", share.level) } else { String::new() };
            format!("{share}{beyond}")
        };
        let said: Vec<String> = shares.iter().map(said).collect();
        let _infallible = writeln!(page, "given    to guests: {}", said.join("; "));
    }
    if !status.growth.is_empty() {
        let used = |line: &GrowthLine| format!("{} of {} {}", line.used, line.limit, line.unit);
        let used = status.growth.iter().map(used).collect::<Vec<_>>().join(", ");
        let _infallible = writeln!(page, "growth   by documents in the last 24 h: {used}");
    }
}

/// Why nothing is begun, or what did not come back.
fn drain(report: &HostMaintenanceReport, at: Timestamp) -> String {
    let names: Vec<&str> = report.not_back.iter().map(|name| name.as_str()).collect();
    let until = report.until.strftime("%Y-%m-%d %H:%M UTC");
    let open = report.open_operations;
    let text = match report.phase {
        HostMaintenancePhase::Draining => {
            format!("maintenance until {until}: {open} operations are under way, and nothing new begins")
        }
        HostMaintenancePhase::Drained => format!("maintenance until {until}: drained, and nothing begins"),
        HostMaintenancePhase::Incomplete => format!("the maintenance ended {}", ago(report.until, at)),
    };
    if names.is_empty() { text } else { format!("{text}; not back: {}", names.join(", ")) }
}

/// How old the facts are. What has not been found yet is left out.
fn found(times: &ObservedTimes, at: Timestamp) -> Option<String> {
    let all = [
        ("who runs", times.round),
        ("configurations at most", times.configurations),
        ("storages", times.storages),
        ("version", times.version),
        ("permissions", times.permissions),
    ];
    let said = all.into_iter().filter_map(|(what, when)| Some(format!("{what} {}", ago(when?, at))));
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn attention(page: &mut String, status: &AgentStatus) {
    let mut lines: Vec<String> = Vec::new();
    let sections = &status.sections;
    lines.extend(sections.agent.iter().flat_map(|agent| &agent.problems).map(ToString::to_string));
    if status.seen_at.is_some_and(|seen| status.at.duration_since(seen) > OLD_LOOK) {
        lines.push("what is shown of the guests is old: Proxmox was not seen whole since".to_owned());
    }
    if let Some(refused) = sections.desired.as_ref().and_then(|desired| desired.refused.as_ref()) {
        let number = refused.generation.map_or_else(String::new, |number| format!(" {number}"));
        lines.push(format!("the document{number} was refused: {}", refused.problem));
    }
    for guest in sections.guests.iter().flatten() {
        lines.extend(guest.conditions.iter().map(|c| format!("{}: {} [{}]", guest.name, c.message, c.code)));
    }
    for operation in sections.operations.iter().flatten() {
        if let (OperationStatus::Parked, Some(problem)) = (operation.status, &operation.problem) {
            lines.push(format!("{} of {} is parked: {problem}", operation.kind.as_str(), operation.name));
        }
    }
    for held in sections.waiting.iter().flatten() {
        lines.push(format!("waits for a signature: {} ({})", held.effect, held.reason));
    }
    if !lines.is_empty() {
        page.push_str("\nNeeds a person\n");
        for line in lines {
            let _infallible = writeln!(page, "  ! {line}");
        }
    }
}

pub(crate) fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(head);
    table
}

fn guest_table(guests: &[GuestReport], at: Timestamp) -> Table {
    let mut rows = table(&["NAME", "VMID", "STATUS", "RUN", "SIZE", "ADDRESS", "CONTROLLER", "PROTECTED"]);
    for guest in guests {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let size = guest.size.as_ref().map(|size| {
            format!("{} CPU, {} MiB, {} GiB", size.cores.get(), size.memory_mib.get(), size.rootfs_gib.get())
        });
        let controller = guest
            .controller
            .as_ref()
            .map(|c| format!("{} {:?} {}", c.version, c.health, ago(c.hello_at, at)));
        rows.add_row([
            guest.name.clone(),
            or_dash(guest.vmid.map(|vmid| vmid.to_string())),
            status(guest).to_owned(),
            running(guest.run).to_owned(),
            or_dash(size),
            or_dash(guest.address.map(|address| address.to_string())),
            or_dash(controller.map(|text| text.to_lowercase())),
            or_dash(posture(guest)),
        ]);
    }
    rows
}

/// How well it is protected, with the first reason where it is not.
fn posture(guest: &GuestReport) -> Option<String> {
    let report = guest.protection.as_deref()?.posture.as_ref()?;
    let word = report.is.as_str();
    let why = report.why.first().filter(|_| report.is != Posture::Protected);
    Some(why.map_or_else(|| word.to_owned(), |why| format!("{word}: {}", shortened(why))))
}

fn operation_table(operations: &[OperationView], at: Timestamp) -> Table {
    let mut rows = table(&["OPERATION", "GUEST", "STATUS", "STEP", "NOTE", "OPENED"]);
    // Operations under way first, then ended ones, newest first.
    let (open, ended): (Vec<_>, Vec<_>) =
        tries(operations).into_iter().partition(|line| !line.last.status.is_end());
    for Tries { last: operation, count, first_at } in open.into_iter().chain(ended.into_iter().rev()) {
        let done = operation.steps.iter().filter(|step| step.status == StepStatus::Done).count();
        let current = operation.steps.iter().find(|step| step.status != StepStatus::Done);
        let step = match current {
            Some(step) if !operation.status.is_end() => {
                format!("{} {done}/{}", step.name, operation.steps.len())
            }
            _ => format!("{done}/{}", operation.steps.len()),
        };
        let note = operation.problem.as_ref().map(ToString::to_string);
        let note = note.or_else(|| current.and_then(|step| step.note.clone())).unwrap_or_default();
        let note = match count {
            1 => shortened(&note),
            more => format!("{more} tries, the first {}: {}", ago(first_at, at), shortened(&note)),
        };
        let status = format!("{:?}", operation.status).to_lowercase();
        rows.add_row([
            operation.kind.as_str().to_owned(),
            operation.name.to_string(),
            status,
            step,
            note,
            ago(operation.opened_at, at),
        ]);
    }
    rows
}

/// One line of a table; the full text is in the JSON, and above the table when a person is needed.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(NOTE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A guest that is not there and has a number is being made.
const fn status(guest: &GuestReport) -> &'static str {
    match guest.status {
        GuestStatus::Absent if guest.vmid.is_some() => "being made",
        GuestStatus::Managed => "managed",
        GuestStatus::Unmanaged => "unmanaged",
        GuestStatus::Absent => "absent",
        GuestStatus::Missing => "missing",
        GuestStatus::Foreign => "foreign",
        GuestStatus::Broken => "broken",
        GuestStatus::Parked => "parked",
        GuestStatus::RestoredCopy => "restored copy",
    }
}

const fn running(run: Running) -> &'static str {
    match run {
        Running::Running => "running",
        Running::Stopped => "stopped",
        Running::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests;
