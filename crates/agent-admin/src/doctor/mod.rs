//! `agentd doctor`: checks that the agent has what it needs.
//!
//! Input: the settings. Output: one line for each check, with the fix, and exit code 0 or 1. It only reads, with the
//! agent's own tokens, so it sees exactly what the agent will see. Deliberately absent: fixing faults.

mod addresses;
mod check;
mod entries;
mod helper;
mod here;
pub mod judge;
mod read_only_entries;
mod row;
mod test_bridge;
mod trust;
mod tunnels;

use std::sync::Arc;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::Output;
use super::drop_privileges::{self, StepDownError};
use crate::port::bridge::Bridges;
use crate::port::helper::Helper;
use crate::port::pve::{PveClient, RealPace, SetUpError};
use crate::settings::pve_settings;
use crate::settings::{ConfigPath, SecretFileError, Settings, SettingsError};
pub use check::examine;
pub use row::{Check, State};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// Table for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Why there is no clean bill of health.
#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Root could not step down.
    #[error(transparent)]
    StepDown(#[from] StepDownError),
    /// A token's secret.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The client.
    #[error(transparent)]
    Client(#[from] SetUpError),
    /// The runtime.
    #[error("the program cannot start its runtime")]
    Runtime(#[source] std::io::Error),
    /// Checks failed; they were printed.
    #[error("{0} of the checks above failed")]
    Failed(usize),
}

impl DoctorError {
    /// 1 for failed checks, sysexits for an error that prevented them.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Settings(_) | Self::Secret(_) | Self::Client(_) => 78,
            Self::StepDown(_) => 77,
            Self::Runtime(_) => 71,
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    failed: usize,
    checks: &'a [Check],
}

/// Runs the command.
///
/// # Errors
/// [`DoctorError::Failed`] when a check failed.
pub fn run(arguments: &DoctorArguments) -> Result<(), DoctorError> {
    let settings = Settings::load(&arguments.config)?;
    drop_privileges::to_owner_of(&settings.state.dir)?;
    let client = PveClient::new(&pve_settings(&settings)?, Arc::new(RealPace::default()))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DoctorError::Runtime)?;
    let mut checks = runtime.block_on(examine(&client, &settings));
    checks.extend(runtime.block_on(here::checks(&settings, super::now())));
    checks.push(check::records(&settings.state.dir));
    checks.extend(entries::checks(&settings.state.dir));
    checks.extend(addresses::checks(&settings.state.dir));
    checks.push(trust::files(&settings));
    checks.extend(test_bridge::check(settings.scratch.as_ref(), &Bridges::of_the_kernel()));
    checks.extend(helper::judge(runtime.block_on(Helper::shipped().status())));
    let failed = checks.iter().filter(|check| check.state == State::Failed).count();
    match arguments.output {
        Output::Json => super::print_json(&Report { schema: "holdfast.doctor/v1", failed, checks: &checks }),
        Output::Table => print!("{}", text(&checks)),
    }
    if failed == 0 { Ok(()) } else { Err(DoctorError::Failed(failed)) }
}

/// For people: a table, and below it the fixes for failed checks.
fn text(checks: &[Check]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    for check in checks {
        let sign = match check.state {
            State::Good => "ok",
            State::Failed => "FAILED",
            State::Notice => "notice",
            State::Unknown => "unknown",
        };
        table.add_row([sign, check.name.as_str(), check.detail.as_str()]);
    }
    let mut text = format!("{}\n", table.trim_fmt());
    let mut lines: Vec<&str> = Vec::new();
    for line in checks.iter().flat_map(|check| &check.mend) {
        if !lines.contains(&line.as_str()) {
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        text.push_str("\nTo mend it, as root on the node (or run `agentd setup` again):\n");
        lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::pin::{Pin, PinKind};

    use super::*;
    use crate::port::pve::PveError;

    #[test]
    fn what_a_person_reads() {
        let check = |state, name: &str, detail: &str, mend: &[&str]| Check {
            state,
            name: name.to_owned(),
            detail: detail.to_owned(),
            mend: mend.iter().map(|line| (*line).to_owned()).collect(),
        };
        let checks = [
            check(State::Good, "version", "9.2.11", &[]),
            check(
                State::Failed,
                "observe on /pool/holdfast",
                "VM.Audit is missing: see guests and their state",
                &["pveum a", "pveum b"],
            ),
            check(
                State::Failed,
                "observe on /nodes/pve1",
                "Sys.Audit is missing: see the node and its tasks",
                &["pveum a", "pveum c"],
            ),
            check(State::Unknown, "golden 2026.11.1", "Proxmox did not answer", &[]),
        ];
        insta::assert_snapshot!(text(&checks));
    }

    /// The clock needs a person for another reason: neither hides the other.
    #[test]
    fn a_new_certificate_key_is_mended_by_a_line_of_its_own() {
        let offered = Pin::of(PinKind::Spki, b"another key");
        let clock = Check {
            mend: vec!["apt-get install chrony".to_owned()],
            ..Check::new(State::Failed, "clock", "unkept")
        };
        let page = text(&[check::unanswered(&PveError::PinMismatch { offered }), clock]);
        let below = page.split("To mend it").nth(1).unwrap();
        assert!(below.contains("agentd setup ...") && below.contains("chrony"), "{page}");
    }
}
