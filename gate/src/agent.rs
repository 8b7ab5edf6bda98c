//! The question to the running agent whether it is healthy.
//!
//! In: the agent's socket and the process that systemd started. Out: its answer, held to that process and its program.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use agent_slots::health::{AgentHealth, Evidence};
use held_files::held_folder::HeldFolder;
use holdfast_protocol::json;
use serde::Deserialize;

use crate::settings::Settings;
use crate::unit::{self, AgentUnit};

const QUESTION: &[u8] = br#"{"schema":"holdfast.admin/v1","question":"health"}"#;
const ANSWER_BYTES_MAX: usize = 16 * 1024;
const WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Health(AgentHealth),
}

/// Looks at the agent; `program` is the one that should run.
pub fn look(settings: &Settings, program: &Path) -> Evidence {
    let pid = match unit::agent(settings) {
        Ok(AgentUnit::Runs { pid }) => pid,
        Ok(AgentUnit::Stopped) => return Evidence::Stopped,
        Ok(AgentUnit::Down(state)) => return Evidence::Silent(format!("its unit is {state}")),
        Err(error) => return Evidence::Silent(json::chain(&error)),
    };
    match std::fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(runs) if runs == program => {}
        Ok(runs) => return Evidence::OtherProgram(runs.display().to_string()),
        Err(error) => return Evidence::Silent(format!("its program is not known: {error}")),
    }
    match ask(&settings.paths.agent_state, pid) {
        Ok(health) => Evidence::Answered(health),
        Err(why) => Evidence::Silent(why),
    }
}

fn ask(state: &Path, pid: u32) -> Result<AgentHealth, String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let folder = HeldFolder::open(state).map_err(|error| failed("its folder", &error))?;
    let socket = folder.socket(OsStr::new("agent.sock")).map_err(|error| failed("its socket", &error))?;
    let mut stream = UnixStream::connect(socket.path()).map_err(|error| failed("its socket", &error))?;
    let peer =
        rustix::net::sockopt::socket_peercred(&stream).map_err(|error| failed("its socket", &error))?;
    if u32::try_from(peer.pid.as_raw_nonzero().get()) != Ok(pid) {
        return Err("another process holds its socket".to_owned());
    }
    stream.set_read_timeout(Some(WAIT_MAX)).map_err(|error| failed("its socket", &error))?;
    stream.set_write_timeout(Some(WAIT_MAX)).map_err(|error| failed("its socket", &error))?;
    stream.write_all(QUESTION).map_err(|error| failed("its socket", &error))?;
    stream.shutdown(Shutdown::Write).map_err(|error| failed("its socket", &error))?;
    let mut bytes = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed("its answer", &error))?;
    let answer = json::parse("the agent's answer", &bytes, ANSWER_BYTES_MAX);
    let Answer::Health(health) = answer.map_err(|error| json::chain(&error))?;
    Ok(health)
}
