//! `agentd parked list|retry|forget`: parked operations.
//!
//! Exit code 0: shown or done. 1: the agent refused, or the person did not agree. 69: no agent runs; only the agent
//! writes, so nothing can be answered without it. A retried operation continues from the step at which it was parked,
//! and reads the actual state before it does anything. A forgotten one is left as it is, and the reason is kept in the
//! audit.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;

use super::Output;
use super::ago::ago;
use crate::model::parked::{ParkedEntry, Way};
use crate::port::admin_socket::{self, Answer, Question, StatusError, Waiting};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct ParkedArguments {
    #[command(subcommand)]
    command: ParkedCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ParkedCommand {
    /// Show the operations that wait for a person: guest, step, cause, since when, and what to run.
    List(ListArguments),
    /// Try an operation again, from the step at which it was parked, after you fixed the cause.
    Retry(RetryArguments),
    /// End an operation: its remains on the node are left to you, and the guest is planned anew from the observed
    /// state.
    Forget(ForgetArguments),
}

/// The arguments of `list`.
#[derive(Debug, clap::Args)]
struct ListArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// Text for people, or JSON (`holdfast.parked/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// The arguments of `retry`.
#[derive(Debug, clap::Args)]
struct RetryArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The operation's id, or the guest's name or number.
    which: String,
}

/// The arguments of `forget`.
#[derive(Debug, clap::Args)]
struct ForgetArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The operation's id, or the guest's name or number.
    which: String,
    /// The reason, for the audit.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    waiting: &'a Waiting,
}

/// The operations that an id, a name or a number selects.
#[derive(Debug)]
enum Chosen<'a> {
    Operation(&'a ParkedEntry),
    /// A guest that would not stay up.
    Guest(GuestUid, &'a str),
}

/// Why nothing was shown or done.
#[derive(Debug, thiserror::Error)]
pub enum ParkedError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Agent(#[from] StatusError),
    /// Nothing fits.
    #[error("nothing parked is called {0:?}: `agentd parked list` shows what there is")]
    NoSuch(String),
    /// More than one fits.
    #[error("{which:?} has {count} parked operations: name one by its id, as `agentd parked list` shows it")]
    Several {
        /// The requested name.
        which: String,
        /// How many.
        count: usize,
    },
    /// A guest is not an operation.
    #[error(
        "{0:?} would not stay up: that is not forgotten; mend it and retry, or have the document stop it"
    )]
    NotForgotten(String),
    /// There is no terminal to ask at.
    #[error("there is no terminal to ask at: add --yes")]
    NoOneToAsk,
    /// The terminal failed.
    #[error("the terminal failed")]
    Terminal(#[source] std::io::Error),
    /// The operator said no.
    #[error("nothing was forgotten")]
    Declined,
}

impl ParkedError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Agent(error) => error.exit_code(),
            Self::NoSuch(_) | Self::Several { .. } | Self::NotForgotten(_) | Self::NoOneToAsk => 64,
            Self::Terminal(_) => 74,
            Self::Declined => 1,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`ParkedError`].
pub fn run(arguments: &ParkedArguments) -> Result<(), ParkedError> {
    match &arguments.command {
        ParkedCommand::List(arguments) => list(arguments),
        ParkedCommand::Retry(arguments) => retry(arguments),
        ParkedCommand::Forget(arguments) => forget(arguments),
    }
}

fn waiting(settings: &Settings) -> Result<Waiting, ParkedError> {
    match admin_socket::put(&settings.state.dir, Question::Parked)? {
        Answer::Parked(waiting) => Ok(waiting),
        _ => Err(StatusError::Other.into()),
    }
}

fn list(arguments: &ListArguments) -> Result<(), ParkedError> {
    let waiting = waiting(&Settings::load(&arguments.config)?)?;
    match arguments.output {
        Output::Json => super::print_json(&Document { schema: "holdfast.parked/v1", waiting: &waiting }),
        Output::Table => print!("{}", page(&waiting, super::now())),
    }
    Ok(())
}

fn retry(arguments: &RetryArguments) -> Result<(), ParkedError> {
    let settings = Settings::load(&arguments.config)?;
    let waiting = waiting(&settings)?;
    let (question, what) = match chosen(&waiting, &arguments.which)? {
        Chosen::Operation(entry) => {
            (Question::Retry { operation: entry.operation, entries: entry.entries }, title(entry))
        }
        Chosen::Guest(guest, name) => (Question::Forgive { guest }, format!("start of {name}")),
    };
    match admin_socket::put(&settings.state.dir, question)? {
        Answer::Done(_) | Answer::Forgiven => {
            println!("{what} is tried again: watch it with `agentd status`")
        }
        _ => return Err(StatusError::Other.into()),
    }
    Ok(())
}

fn forget(arguments: &ForgetArguments) -> Result<(), ParkedError> {
    let settings = Settings::load(&arguments.config)?;
    let waiting = waiting(&settings)?;
    let Chosen::Operation(entry) = chosen(&waiting, &arguments.which)? else {
        return Err(ParkedError::NotForgotten(arguments.which.clone()));
    };
    println!("{}\n{}", reported(entry, super::now()), leaves(entry));
    if !arguments.yes {
        agreed()?;
    }
    let reason = arguments.reason.clone();
    let question = Question::Forget { operation: entry.operation, entries: entry.entries, reason };
    match admin_socket::put(&settings.state.dir, question)? {
        Answer::Done(_) => println!("{} is ended; the reason is in the audit", title(entry)),
        _ => return Err(StatusError::Other.into()),
    }
    Ok(())
}

fn agreed() -> Result<(), ParkedError> {
    if !std::io::stdin().is_terminal() {
        return Err(ParkedError::NoOneToAsk);
    }
    print!("Forget it? [y/N] ");
    std::io::stdout().flush().map_err(ParkedError::Terminal)?;
    let mut said = String::new();
    std::io::stdin().read_line(&mut said).map_err(ParkedError::Terminal)?;
    if matches!(said.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(ParkedError::Declined) }
}

/// The one that is meant.
fn chosen<'a>(waiting: &'a Waiting, which: &str) -> Result<Chosen<'a>, ParkedError> {
    let meant = |entry: &&ParkedEntry| {
        which.parse::<OperationId>().is_ok_and(|id| id == entry.operation)
            || entry.name.as_str() == which
            || entry.vmid.is_some_and(|vmid| vmid.to_string() == which)
    };
    let would_not_stay = |guest: &&GuestReport| {
        guest.name == which || guest.vmid.is_some_and(|vmid| vmid.to_string() == which)
    };
    let guests = waiting.broken.iter().filter(would_not_stay);
    let guests = guests.filter_map(|guest| Some(Chosen::Guest(guest.uid?, guest.name.as_str())));
    let mut found: Vec<Chosen<'a>> =
        waiting.parked.iter().filter(meant).map(Chosen::Operation).chain(guests).collect();
    match (found.pop(), found.len()) {
        (None, _) => Err(ParkedError::NoSuch(which.to_owned())),
        (Some(only), 0) => Ok(only),
        (Some(_), others) => Err(ParkedError::Several { which: which.to_owned(), count: others + 1 }),
    }
}

fn title(entry: &ParkedEntry) -> String {
    let vmid = entry.vmid.map(|vmid| format!(" ({vmid})")).unwrap_or_default();
    let step = match (&entry.step, entry.way) {
        (Some(step), Way::Forth) => format!(", at {step}"),
        (Some(step), Way::Back) => format!(", taking back {step}"),
        (None, _) => String::new(),
    };
    format!("{} of {}{vmid}{step}", entry.kind.as_str(), entry.name)
}

/// What becomes of the guest when it is forgotten.
fn leaves(entry: &ParkedEntry) -> &'static str {
    use holdfast_protocol::operation::OperationKind;
    match entry.kind {
        OperationKind::Provision => {
            "Forgetting it: what stands of it on the node stays there and is yours to clear; the agent makes the guest anew under \
             another number, if the document still wants it.\n"
        }
        OperationKind::RebaseGuest => {
            "Forgetting it: both containers stay as they are, and so do the volumes, with whichever of them has them now. Look at \
             both first (`pct config`): the agent goes on with the number in its records.\n"
        }
        OperationKind::AdoptGuest
        | OperationKind::AttachVolume
        | OperationKind::Backup
        | OperationKind::Destroy
        | OperationKind::DiscardCopy
        | OperationKind::ExpireSnapshot
        | OperationKind::Grow
        | OperationKind::ReassignVolume
        | OperationKind::QuiescedBackup
        | OperationKind::PruneBackup
        | OperationKind::Reconfigure
        | OperationKind::RestoreCopy
        | OperationKind::RestartGuest
        | OperationKind::RestoreTest
        | OperationKind::RollBack
        | OperationKind::Snapshot
        | OperationKind::Start
        | OperationKind::Stop
        | OperationKind::SwapGuest
        | OperationKind::UpdateController => {
            "Forgetting it: the guest stays as it is, and the agent again does what the document says, from what it sees.\n"
        }
    }
}

/// One entry: operation, since when, why, and the command to run.
fn reported(entry: &ParkedEntry, now: Timestamp) -> String {
    format!(
        "{}\n  since  {} ({})\n  why    {}\n  you    {}\n",
        title(entry),
        entry.since.strftime("%Y-%m-%d %H:%M:%S UTC"),
        ago(entry.since, now),
        entry.problem,
        entry.remedy,
    )
}

/// Groups the operations with one cause: one kind at one step with one code. Each group has the position of its oldest
/// entry.
fn grouped(all: &[ParkedEntry]) -> Vec<Vec<&ParkedEntry>> {
    let alike = |one: &ParkedEntry, other: &ParkedEntry| {
        (one.kind, &one.step, one.way, one.problem.code)
            == (other.kind, &other.step, other.way, other.problem.code)
    };
    let mut groups: Vec<Vec<&ParkedEntry>> = Vec::new();
    for entry in all {
        match groups.iter_mut().find(|group| group.iter().any(|one| alike(one, entry))) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups
}

/// One cause: its last entry complete, and of each other entry only the parts that differ.
fn group(alike: &[&ParkedEntry], now: Timestamp) -> String {
    let Some((last, others)) = alike.split_last() else { return String::new() };
    let mut text = reported(last, now);
    let retry = |entry: &ParkedEntry| format!("  then   agentd parked retry {}\n", entry.operation);
    text.push_str(&retry(last));
    if !others.is_empty() {
        // Writing into a String cannot fail.
        let _infallible = writeln!(text, "  and    {} more for the same cause:", others.len());
    }
    for entry in others {
        let (title, since, remedy) = (title(entry), ago(entry.since, now), &entry.remedy);
        let _infallible =
            writeln!(text, "         {title}, {since}: {remedy}\n         {}", retry(entry).trim_end());
    }
    text.push('\n');
    text
}

/// The whole page for people.
fn page(waiting: &Waiting, now: Timestamp) -> String {
    if *waiting == Waiting::default() {
        return "nothing waits for a person\n".to_owned();
    }
    let mut page = String::new();
    for guest in &waiting.broken {
        let vmid = guest.vmid.map(|vmid| format!(" ({vmid})")).unwrap_or_default();
        let why: Vec<&str> = guest.conditions.iter().map(|condition| condition.message.as_str()).collect();
        // Writing into a String cannot fail.
        let _infallible =
            writeln!(page, "{}{vmid} would not stay up\n  why    {}\n", guest.name, why.join("; "));
    }
    for alike in grouped(&waiting.parked) {
        page.push_str(&group(&alike, now));
    }
    if !waiting.parked.is_empty() {
        page.push_str("What cannot be mended is ended: agentd parked forget ID --reason WHY\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waiting() -> Waiting {
        let uid = "018f3c1e-6b1f-7c1d-9d0a-000000000001";
        serde_json::from_value(json!({"broken": [
            {"uid": uid, "name": "mail", "vmid": 302, "status": "broken", "run": "stopped", "conditions": [{"code": "BROKEN",
                "message": "it was started 5 times without a healthy hour and does not stay up: mend it, then `agentd parked retry mail`"}]}
        ], "parked": [
            {"operation": "018f3c1e-0000-7000-8000-000000000001", "entries": 9, "kind": "provision", "guest": uid,
                "name": "web-1", "vmid": 300, "step": "restore", "way": "forth",
                "problem": {"code": "LOCKED", "message": "the restore left guest 300 half-made (lock create), outside every pool"},
                "remedy": "pct unlock 300; pct destroy 300", "since": "2026-11-21T02:50:00Z"},
            {"operation": "018f3c1e-0000-7000-8000-000000000002", "entries": 4, "kind": "stop", "guest": uid,
                "name": "db", "vmid": 301, "step": "shut_down", "way": "forth",
                "problem": {"code": "FOREIGN_GUEST", "message": "guest 301 does not carry our mark"},
                "remedy": "pct config 301", "since": "2026-11-20T02:50:00Z"}
        ]}))
        .unwrap()
    }

    #[test]
    fn what_a_person_reads() {
        insta::assert_snapshot!(page(&waiting(), "2026-11-21T03:00:00Z".parse().unwrap()), @r"
        mail (302) would not stay up
          why    it was started 5 times without a healthy hour and does not stay up: mend it, then `agentd parked retry mail`

        provision of web-1 (300), at restore
          since  2026-11-21 02:50:00 UTC (10 min ago)
          why    the restore left guest 300 half-made (lock create), outside every pool [LOCKED]
          you    pct unlock 300; pct destroy 300
          then   agentd parked retry 018f3c1e-0000-7000-8000-000000000001

        stop of db (301), at shut_down
          since  2026-11-20 02:50:00 UTC (24 h ago)
          why    guest 301 does not carry our mark [FOREIGN_GUEST]
          you    pct config 301
          then   agentd parked retry 018f3c1e-0000-7000-8000-000000000002

        What cannot be mended is ended: agentd parked forget ID --reason WHY
        ");
    }

    #[test]
    fn what_was_left_for_one_cause_stands_together() {
        let mut waiting = waiting();
        waiting.broken.clear();
        let mut same = waiting.parked[0].clone();
        same.operation = "018f3c1e-0000-7000-8000-000000000003".parse().unwrap();
        (same.name, same.vmid) = ("web-2".parse().unwrap(), Some(303.try_into().unwrap()));
        same.problem.message =
            "the restore left guest 303 half-made (lock create), outside every pool".to_owned();
        same.remedy = "pct unlock 303; pct destroy 303".to_owned();
        waiting.parked.push(same);
        insta::assert_snapshot!(page(&waiting, "2026-11-21T03:00:00Z".parse().unwrap()), @r"
        provision of web-2 (303), at restore
          since  2026-11-21 02:50:00 UTC (10 min ago)
          why    the restore left guest 303 half-made (lock create), outside every pool [LOCKED]
          you    pct unlock 303; pct destroy 303
          then   agentd parked retry 018f3c1e-0000-7000-8000-000000000003
          and    1 more for the same cause:
                 provision of web-1 (300), at restore, 10 min ago: pct unlock 300; pct destroy 300
                   then   agentd parked retry 018f3c1e-0000-7000-8000-000000000001

        stop of db (301), at shut_down
          since  2026-11-20 02:50:00 UTC (24 h ago)
          why    guest 301 does not carry our mark [FOREIGN_GUEST]
          you    pct config 301
          then   agentd parked retry 018f3c1e-0000-7000-8000-000000000002

        What cannot be mended is ended: agentd parked forget ID --reason WHY
        ");
    }

    #[test]
    fn one_is_named_by_id_name_or_number() {
        let mut waiting = waiting();
        for which in ["018f3c1e-0000-7000-8000-000000000002", "db", "301"] {
            let chosen = chosen(&waiting, which).unwrap();
            assert!(matches!(chosen, Chosen::Operation(entry) if entry.entries == 4), "{which}");
        }
        assert!(matches!(chosen(&waiting, "302"), Ok(Chosen::Guest(_, "mail"))));
        assert!(matches!(chosen(&waiting, "web"), Err(ParkedError::NoSuch(_))));
        waiting.parked.extend(waiting.parked.clone());
        assert!(matches!(chosen(&waiting, "db"), Err(ParkedError::Several { count: 2, .. })));
    }
}
