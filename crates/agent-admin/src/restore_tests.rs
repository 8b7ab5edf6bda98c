//! `agentd restore-tests [GUEST]`: results and durations.
//!
//! Exit code 0: shown. 1: there is no such guest. 69: no agent runs. Without a guest there is one line for each tier of
//! each guest that was ever tested; with one, a line for each kept test of it. The columns fit a terminal of 80
//! columns; reasons follow beneath, on lines of their own.

use std::fmt::Write as _;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::{TierTested, Took};
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;
use serde::Serialize;

use super::Output;
use super::ago::ago;
use super::status::table;
use crate::port::admin_socket::{self, Answer, GuestTests, Question, StatusError, TestLine};
use crate::settings::{ConfigPath, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A test restores a backup into an isolated scratch guest, starts it, checks what is in it, and destroys it. `proved` is \
a backup whose stacks were well by their own checks, or whose canaries were unchanged; `booted only` is one that \
boots, with no proof of more; `failed` is one that did not come back; `not run` is one that could not be tried.

RESTORE is Proxmox's work, UP is from the start of the guest to the verdict, BACK IN is both. The trend compares the \
newest test that came back with the median of up to eight before it with the same verdict, both as measured and scaled \
to the newest backup's size. Slower is more than half again as long as the longer of the two, and more than a minute \
longer; faster is as much less than the shorter. It needs four tests. A trend is reported, and changes no guest's \
posture.")]
pub struct RestoreTestsArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// Show each test of this guest, by its name, number or uid.
    guest: Option<String>,
    /// Tables for people, or JSON (`holdfast.restore-tests/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RestoreTestsError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent.
    #[error(transparent)]
    Agent(#[from] StatusError),
}

impl RestoreTestsError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Agent(error) => error.exit_code(),
        }
    }
}

/// The document for programs.
#[derive(Serialize)]
struct Document<T> {
    schema: &'static str,
    #[serde(flatten)]
    reported: T,
}

#[derive(Serialize)]
struct All<'a> {
    guests: Vec<TestedRow<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    guest: &'a GuestTests,
}

/// A guest whose backups were tried.
#[derive(Serialize)]
struct TestedRow<'a> {
    uid: GuestUid,
    name: &'a str,
    tested: &'a [TierTested],
}

/// Runs the command.
///
/// # Errors
/// [`RestoreTestsError`].
pub fn run(arguments: &RestoreTestsArguments) -> Result<(), RestoreTestsError> {
    const SCHEMA: &str = "holdfast.restore-tests/v1";
    let settings = Settings::load(&arguments.config)?;
    let Some(guest) = &arguments.guest else {
        let status = admin_socket::ask(&settings.state.dir)?;
        let guests = status.sections.guests.unwrap_or_default();
        let guests = tried(&guests);
        match arguments.output {
            Output::Json => super::print_json(&Document { schema: SCHEMA, reported: All { guests } }),
            Output::Table => print!("{}", overview(&guests, status.at)),
        }
        return Ok(());
    };
    let question = Question::RestoreTests { guest: guest.clone() };
    let Answer::RestoreTests(guest) = admin_socket::put(&settings.state.dir, question)? else {
        return Err(StatusError::Other.into());
    };
    match arguments.output {
        Output::Json => super::print_json(&Document { schema: SCHEMA, reported: One { guest: &guest } }),
        Output::Table => print!("{}", page(&guest)),
    }
    Ok(())
}

/// Those whose backups were tried, by name.
fn tried(guests: &[GuestReport]) -> Vec<TestedRow<'_>> {
    let tried = guests.iter().filter_map(|guest| {
        let tested = guest.protection.as_ref()?.tested.as_slice();
        Some(TestedRow { uid: guest.uid?, name: &guest.name, tested })
    });
    let mut all: Vec<TestedRow<'_>> = tried.filter(|guest| !guest.tested.is_empty()).collect();
    all.sort_by_key(|guest| guest.name);
    all
}

/// A line for each tier that was ever tried.
fn overview(guests: &[TestedRow<'_>], at: Timestamp) -> String {
    if guests.is_empty() {
        return "no backup was tried yet: a policy says by `restore_test_days` how often one is\n".to_owned();
    }
    let mut rows = table(&["GUEST", "TIER", "LAST", "VERDICT", "BACK IN", "TREND"]);
    for (guest, tested) in guests.iter().flat_map(|guest| guest.tested.iter().map(move |one| (guest, one))) {
        let last = &tested.last;
        rows.add_row([
            guest.name.to_owned(),
            tested.tier.to_string(),
            ago(last.at, at),
            last.verdict.as_str().to_owned(),
            clock(last.took.whole_s()),
            tested.trend.short(),
        ]);
    }
    format!("{rows}\n")
}

/// All of one guest.
fn page(guest: &GuestTests) -> String {
    let mut page = format!("{} ({})\n", guest.name, guest.uid);
    for tested in &guest.tested {
        // Writing into a String cannot fail.
        let _infallible = writeln!(page, "  {:<9} {}", tested.tier.to_string(), tested.trend);
    }
    if guest.tests.is_empty() {
        page.push_str("  no backup of it was tried yet\n");
        return page;
    }
    let _infallible = writeln!(
        page,
        "\n  {:<17} {:<9} {:<17} {:<12} {:>8} {:>8}",
        "WHEN (UTC)", "TIER", "BACKUP OF (UTC)", "VERDICT", "RESTORE", "UP"
    );
    for test in &guest.tests {
        line(&mut page, test);
    }
    page
}

fn line(page: &mut String, test: &TestLine) {
    let Took { restore_s, up_s } = test.took;
    let _infallible = writeln!(
        page,
        "  {:<17} {:<9} {:<17} {:<12} {:>8} {:>8}",
        minute(test.at),
        test.tier.map_or_else(|| "-".to_owned(), |tier| tier.to_string()),
        minute(test.taken_at),
        test.verdict.as_str(),
        clock(restore_s),
        clock(up_s)
    );
    // The parts of a proof are the same each time; they are in the JSON.
    if test.verdict != TestVerdict::Proved {
        let _infallible = writeln!(page, "      {}", test.why);
    }
}

fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

/// As a clock that counts up; hours where there are some.
fn clock(seconds: Option<u64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds @ 0..3_600) => format!("{}:{:02}", seconds / 60, seconds % 60),
        Some(seconds) => format!("{}:{:02}:{:02}", seconds / 3_600, seconds % 3_600 / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests;
