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
use agent_slots::withdrawal::TrialWithdrawal;
use held_files::held_folder::HeldFolder;
use holdfast_protocol::json;
use serde::Deserialize;

use crate::settings::Settings;
use crate::unit::{self, AgentUnit};

const HEALTH: &[u8] = br#"{"schema":"holdfast.admin/v1","question":"health"}"#;
const WITHDRAWAL: &[u8] = br#"{"schema":"holdfast.admin/v1","question":"trial_withdrawal"}"#;
const ANSWER_BYTES_MAX: usize = 16 * 1024;
const WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Health(AgentHealth),
    TrialWithdrawal(Option<TrialWithdrawal>),
}

/// Looks at the agent; `program` is the one that should run.
pub fn look(settings: &Settings, program: &Path) -> Evidence {
    let pid = match process(settings, program) {
        Ok(pid) => pid,
        Err(evidence) => return *evidence,
    };
    match ask(&settings.paths.agent_state, pid, HEALTH) {
        Ok(Answer::Health(health)) => Evidence::Answered(health),
        Ok(Answer::TrialWithdrawal(_)) => Evidence::Silent("it answered another question".to_owned()),
        Err(why) => Evidence::Silent(why),
    }
}

/// What the build on trial, in this program, says of its own offer. Anything else than a clear answer is no withdrawal.
pub fn withdrawal(settings: &Settings, program: &Path) -> Option<TrialWithdrawal> {
    let pid = process(settings, program).ok()?;
    match ask(&settings.paths.agent_state, pid, WITHDRAWAL) {
        Ok(Answer::TrialWithdrawal(withdrawal)) => withdrawal,
        Ok(Answer::Health(_)) | Err(_) => None,
    }
}

/// The process of the agent, where it runs this program.
fn process(settings: &Settings, program: &Path) -> Result<u32, Box<Evidence>> {
    let elsewhere = |evidence| Err(Box::new(evidence));
    let pid = match unit::agent(settings) {
        Ok(AgentUnit::Runs { pid }) => pid,
        Ok(AgentUnit::Stopped) => return elsewhere(Evidence::Stopped),
        Ok(AgentUnit::Down(state)) => return elsewhere(Evidence::Silent(format!("its unit is {state}"))),
        Err(error) => return elsewhere(Evidence::Silent(json::chain(&error))),
    };
    match std::fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(runs) if runs == program => Ok(pid),
        Ok(runs) => elsewhere(Evidence::OtherProgram(runs.display().to_string())),
        Err(error) => elsewhere(Evidence::Silent(format!("its program is not known: {error}"))),
    }
}

fn ask(state: &Path, pid: u32, question: &[u8]) -> Result<Answer, String> {
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
    stream.write_all(question).map_err(|error| failed("its socket", &error))?;
    stream.shutdown(Shutdown::Write).map_err(|error| failed("its socket", &error))?;
    let mut bytes = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed("its answer", &error))?;
    let answer = json::parse("the agent's answer", &bytes, ANSWER_BYTES_MAX);
    answer.map_err(|error| json::chain(&error))
}
