//! The agent's unit, through systemctl.

use std::process::{Command, Stdio};

use crate::settings::Settings;

const AGENT: &str = "agentd.service";
const WATCH: &str = "holdfast-agent-gate.service";

/// Why systemd was not asked, or did not do it.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    #[error("systemctl cannot be run")]
    Run(#[source] std::io::Error),
    #[error("`systemctl {line}` failed: {said}")]
    Failed { line: String, said: String },
}

/// The state of the agent's unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentUnit {
    /// Its main process.
    Runs { pid: u32 },
    /// Nobody wants it to run.
    Stopped,
    /// It starts, restarts, or failed.
    Down(String),
}

/// What systemd says of the agent.
///
/// # Errors
/// [`UnitError`].
pub fn agent(settings: &Settings) -> Result<AgentUnit, UnitError> {
    let text = systemctl(settings, &["show", AGENT, "--property=ActiveState,SubState,MainPID,Result"])?;
    let of = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default()
    };
    let pid = of("MainPID").parse::<u32>().ok().filter(|pid| *pid != 0);
    Ok(match (of("ActiveState"), pid) {
        ("active", Some(pid)) => AgentUnit::Runs { pid },
        ("inactive", _) => AgentUnit::Stopped,
        (state, _) => AgentUnit::Down(format!("{state} ({}, {})", of("SubState"), of("Result"))),
    })
}

/// Starts the watch, without waiting.
///
/// # Errors
/// [`UnitError`].
pub fn start_watch(settings: &Settings) -> Result<(), UnitError> {
    systemctl(settings, &["start", "--no-block", WATCH]).map(drop)
}

/// Starts the agent again, from whatever state.
///
/// # Errors
/// [`UnitError`].
pub fn restart_agent(settings: &Settings) -> Result<(), UnitError> {
    systemctl(settings, &["reset-failed", AGENT]).map(drop)?;
    systemctl(settings, &["restart", "--no-block", AGENT]).map(drop)
}

#[expect(clippy::disallowed_methods, reason = "systemd's own command, with fixed words")]
fn systemctl(settings: &Settings, words: &[&str]) -> Result<String, UnitError> {
    let output = Command::new(&settings.paths.systemctl)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(UnitError::Run)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).chars().take(300).collect();
    Err(UnitError::Failed { line: words.join(" "), said })
}
