//! Execution of other programs with bounded time and output.
//!
//! What comes in: an argument list (never a shell's line), a folder, a few variables and a bound of time. What goes
//! out: how it ended and the beginning of its output. Each program gets its own process group, which is killed as a
//! whole when its time is over. Deliberately absent: our own environment, which may contain the bootstrap token.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use holdfast_protocol::json::chain;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::watchdog;

/// Of each of the two outputs this much is kept. A list of a hundred containers has 60 KiB.
const OUTPUT_BYTES_MAX: usize = 512 * 1024;

/// How much of the output is shown in a message for people.
const WORDS_MAX: usize = 300;

/// How long the pipes are read after the end; a grandchild may hold them open for ever.
const PIPE_WAIT: Duration = Duration::from_secs(1);

/// Variables that are handed on, where they are set.
const HANDED_ON: [&str; 6] =
    ["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG", "DBUS_SYSTEM_BUS_ADDRESS", "SYSTEMD_BUS_TIMEOUT"];

/// One program to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables in addition to the few that are passed on.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub folder: Option<PathBuf>,
    /// It is killed after this time.
    pub limit: Duration,
}

impl Call {
    /// A call without a folder or variables of its own.
    pub fn new<'a>(argv: impl IntoIterator<Item = &'a str>, limit: Duration) -> Self {
        let argv = argv.into_iter().map(str::to_owned).collect();
        Self { argv, env: Vec::new(), folder: None, limit }
    }

    pub fn line(&self) -> String {
        self.argv.join(" ")
    }

    fn program(&self) -> String {
        self.argv.first().cloned().unwrap_or_default()
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitState {
    /// With code 0.
    Well,
    /// It ended with another code, or by a signal; the text says which.
    Badly(String),
}

/// What a program said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    pub ended: ExitState,
    pub out: String,
    pub err: String,
}

/// Why a program did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not there, or the kernel has no place for it.
    #[error("`{program}` cannot be started: is it installed, and in PATH?")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    /// It took too long and was killed.
    #[error("`{line}` did not end within {} s and was killed", limit.as_secs())]
    TooSlow { line: String, limit: Duration },
    /// It could not be waited for.
    #[error("cannot wait for `{program}`")]
    Wait {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("`{line}` ended with {how}{}", suffix(words))]
    Failed {
        line: String,
        /// With which code or signal.
        how: String,
        /// The end of what it said.
        words: String,
    },
}

/// Of what a program said last, this much is enough to know it by.
const BRIEF_BYTES: usize = 70;

impl ProgramError {
    /// A short message: calls are long, and the end of a program's output matters most.
    pub fn brief(&self) -> String {
        let Self::Failed { line, how, words } = self else { return chain(self) };
        let is_name = |(at, word): &(usize, &str)| *at == 0 || !word.starts_with(['-', '/']);
        let name: Vec<&str> =
            line.split(' ').enumerate().take_while(is_name).take(2).map(|(_, word)| word).collect();
        let from = words.ceil_char_boundary(words.len().saturating_sub(BRIEF_BYTES));
        let cut = if from == 0 { "" } else { "…" };
        format!("`{}` ended with {how}: {cut}{}", name.join(" "), words.get(from..).unwrap_or_default())
    }
}

fn suffix(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

/// Runs a program to its end, within its bound.
pub async fn run(call: &Call) -> Result<ProgramOutput, ProgramError> {
    watchdog::within(call.limit);
    let mut child = start(call)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let whole = async {
        let (mut said_out, mut said_err) = (Vec::new(), Vec::new());
        let ended = {
            let reading = async { tokio::join!(read(out, &mut said_out), read(err, &mut said_err)) };
            tokio::pin!(reading);
            tokio::select! {
                ended = child.wait() => {
                    // What is left in the pipes, but not what a grandchild may yet write.
                    let _ = tokio::time::timeout(PIPE_WAIT, reading).await;
                    ended
                }
                _ = &mut reading => child.wait().await,
            }
        };
        (ended, said_out, said_err)
    };
    let ended = tokio::time::timeout(call.limit, whole).await;
    let Ok((ended, out, err)) = ended else {
        kill(&mut child).await;
        return Err(ProgramError::TooSlow { line: call.line(), limit: call.limit });
    };
    let ended = match ended {
        Ok(status) if status.success() => ExitState::Well,
        Ok(status) => ExitState::Badly(status.to_string()),
        Err(source) => return Err(ProgramError::Wait { program: call.program(), source }),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(ProgramOutput { ended, out: text(out), err: text(err) })
}

/// Runs a program that must end with code 0.
pub async fn run_well(call: &Call) -> Result<ProgramOutput, ProgramError> {
    let said = run(call).await?;
    match &said.ended {
        ExitState::Well => Ok(said),
        ExitState::Badly(how) => {
            let spoken = if said.err.trim().is_empty() { &said.out } else { &said.err };
            Err(ProgramError::Failed { line: call.line(), how: how.clone(), words: words(spoken) })
        }
    }
}

/// The end of what a program said, in one line that draws nothing on a terminal.
pub fn words(text: &str) -> String {
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let skipped = line.chars().count().saturating_sub(WORDS_MAX);
    line.chars().skip(skipped).collect()
}

/// The beginning of a sentence, in one line without control characters, within this many bytes.
pub fn beginning(text: &str, bytes_max: usize) -> String {
    let mut line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.truncate(line.floor_char_boundary(bytes_max));
    line
}

#[expect(
    clippy::disallowed_methods,
    reason = "what stacks are made of is started and stopped by other programs"
)]
fn start(call: &Call) -> Result<Child, ProgramError> {
    let mut command = Command::new(call.program());
    command.args(call.argv.iter().skip(1)).env_clear();
    command.envs(HANDED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.env("LC_ALL", "C.UTF-8");
    command.envs(call.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &call.folder {
        command.current_dir(folder);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    command.spawn().map_err(|source| ProgramError::Start { program: call.program(), source })
}

/// Keeps the beginning, and reads on, so that the program never blocks on a full pipe.
async fn read(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let mut piece = [0; 4096];
    while let Ok(count) = pipe.read(&mut piece).await {
        let (Some(piece), true) = (piece.get(..count), count > 0) else { return };
        let room = OUTPUT_BYTES_MAX.saturating_sub(kept.len());
        kept.extend(piece.iter().take(room));
    }
}

/// The whole group: what the program itself started must not go on behind our back.
async fn kill(child: &mut Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        // Gone already is as good.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.start_kill();
    let _ = tokio::time::timeout(PIPE_WAIT, child.wait()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Call {
        Call::new(["/bin/sh", "-c", script], limit)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn output_and_exit_status_are_returned() {
        let said = run(&sh("echo out; echo err >&2; exit 3", LONG)).await.unwrap();
        assert_eq!((said.out.as_str(), said.err.as_str()), ("out\n", "err\n"));
        assert!(matches!(&said.ended, ExitState::Badly(how) if how.contains('3')), "{said:?}");
        let error = run_well(&sh("printf 'a\\033[2Jb\\nc' >&2; exit 1", LONG)).await.unwrap_err();
        assert!(error.to_string().ends_with("a [2Jb c"), "{error}");
        let missing = run(&Call::new(["/no/such/program"], LONG)).await.unwrap_err();
        assert!(matches!(missing, ProgramError::Start { .. }));
    }

    #[test]
    fn a_brief_error_names_the_program_and_what_it_said_last() {
        let failed = |line: &str, words: &str| ProgramError::Failed {
            line: line.to_owned(),
            how: "exit status: 1".to_owned(),
            words: words.to_owned(),
        };
        let long = format!("{}Is the daemon running?", "Cannot connect to the Docker daemon. ".repeat(3));
        let brief = failed("docker compose --project-directory /srv/app ps", &long).brief();
        assert!(brief.starts_with("`docker compose` ended with exit status: 1: …"), "{brief}");
        assert!(brief.ends_with("Is the daemon running?") && brief.len() < 128, "{brief}");
        assert_eq!(failed("/srv/check -x", "no").brief(), "`/srv/check` ended with exit status: 1: no");
    }

    #[tokio::test]
    async fn the_whole_group_ends_with_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pid");
        // The grandchild would hold the pipes open and live on.
        let script = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", note.display());
        let error = run(&sh(&script, Duration::from_secs(3))).await.unwrap_err();
        assert!(matches!(error, ProgramError::TooSlow { .. }), "{error}");
        let pid = std::fs::read_to_string(&note).unwrap();
        let alive = || {
            // Gone, or dead and not yet reaped by the process that inherited it.
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok();
            stat.is_some_and(|stat| !stat.contains(") Z") && !stat.contains(") X"))
        };
        let begin = std::time::Instant::now();
        while alive() {
            assert!(begin.elapsed() < LONG, "the grandchild lives on");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn output_is_bounded_and_grandchildren_do_not_block() {
        let said = run(&sh("head -c 2000000 /dev/zero", LONG)).await.unwrap();
        assert_eq!(said.out.len(), OUTPUT_BYTES_MAX);
        let begin = std::time::Instant::now();
        let said = run(&sh("echo up; sleep 30 &", LONG)).await.unwrap();
        assert_eq!((said.out.as_str(), &said.ended), ("up\n", &ExitState::Well));
        assert!(begin.elapsed() < LONG, "it was not waited for");
    }

    #[tokio::test]
    async fn our_own_environment_stays_here() {
        let said = run(&sh("env", LONG)).await.unwrap();
        assert!(!said.out.contains("CARGO"), "{}", said.out);
    }
}
