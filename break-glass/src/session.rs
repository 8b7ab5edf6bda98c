//! One recorded session of a person, as the forced command of sshd.
//!
//! In: what sshd started, with what the person typed in its environment. Out: a login shell of root, one command, or the
//! program that root named, beneath `script`, which records what goes in and out. Without an open way, with too many
//! sessions, or without room for a recording, nothing begins. What is recorded may hold what a person typed unseen.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use holdfast_protocol::id::JobId;
use rustix::fs::Mode;

use crate::entry::quoted;
use crate::files::{Files, FilesError, NotedSession};
use crate::log::Action;
use crate::moment::Moment;
use crate::processes::{self, ProcessId};
use crate::settings::RecordingSettings;
use crate::state::{Event, OpenWay};

const SCRIPT: &str = "/usr/bin/script";

/// Sessions at the same time.
const SESSIONS_MAX: usize = 4;

/// Recordings that are counted and pruned.
const RECORDINGS_MAX: usize = 100_000;

const MIB: u64 = 1024 * 1024;

/// Why no session begins, or how one failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("no way into this host is open: sign an order, and come back")]
    NotOpen,
    #[error("break-glass was turned off by root")]
    Off,
    #[error("{SESSIONS_MAX} sessions are open already: end one of them")]
    Full,
    #[error(
        "recordings fill {0} MiB, which is as much as root's settings let them: root moves them away first"
    )]
    Recordings(u64),
    #[error("this process is not in the kernel's table")]
    Unknown,
    #[error("a session cannot be recorded: install util-linux's `script`")]
    Script(#[source] std::io::Error),
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// A session that may begin.
struct Permit {
    job: JobId,
    first: ProcessId,
    noted: NotedSession,
    command: String,
    recording: PathBuf,
    mib_max: u16,
}

/// Runs one session to its end.
///
/// # Errors
/// [`SessionError`]; nothing was run then.
pub fn run(files: &Files, typed: Option<&str>, peer: &str) -> Result<ExitStatus, SessionError> {
    let Permit { job, first, mut noted, command, recording, mib_max } = begin(files, typed, peer)?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    #[expect(clippy::disallowed_methods, reason = "util-linux's script records the session")]
    let mut script = Command::new(SCRIPT);
    let file = |kind: &str| recording.with_extension(kind);
    script.args(["--quiet", "--flush", "--return", "--logging-format", "advanced"]);
    script.arg("--output-limit").arg(format!("{mib_max}M"));
    script.arg("--log-io").arg(file("io")).arg("--log-timing").arg(file("timing"));
    script.arg("--command").arg(&command);
    // What `script` gives the command to, whatever the account has.
    script.env("SHELL", "/bin/bash");
    // What the session starts and leaves behind ends with it: nothing of it is recorded any more.
    processes::adopt_orphans().map_err(SessionError::Script)?;
    let child = script.spawn();
    let ended = child.and_then(|mut child| {
        let pid = i32::try_from(child.id()).ok().and_then(processes::of);
        noted.processes.extend(pid.map(|process| process.id));
        // Without this line it is found by descent.
        let _unnoted = files.note_session(first, &noted);
        child.wait()
    });
    let left = processes::end_descendants(first);
    finish(files, (job, first), &ended, left.len())?;
    ended.map_err(SessionError::Script)
}

fn begin(files: &Files, typed: Option<&str>, peer: &str) -> Result<Permit, SessionError> {
    let _lock = files.lock()?;
    let now = files.now()?;
    let state = files.state(&now)?;
    let open = state.open.clone().filter(|_| state.left_s(&now).is_some_and(|left| left > 0));
    let open = open.ok_or(SessionError::NotOpen)?;
    let settings = files.settings()?.filter(|settings| settings.enabled).ok_or(SessionError::Off)?;
    if live(files, &now)? >= SESSIONS_MAX {
        return Err(SessionError::Full);
    }
    let RecordingSettings { mib_max, total_mib_max, .. } = settings.recordings;
    let total = total(&files.recordings())? / MIB;
    if total >= u64::from(total_mib_max) {
        return Err(SessionError::Recordings(total));
    }
    let own = i32::try_from(std::process::id()).ok().and_then(processes::of).ok_or(SessionError::Unknown)?;
    let job = open.order.job;
    let noted =
        NotedSession { job, boot: now.boot.clone(), processes: vec![own.id], group: processes::own_group() };
    let number = open.order.sessions.saturating_add(1);
    let recording = files.recordings().join(format!("{job}-{number}"));
    let detail = format!("session {number} from {peer}: {}", typed.unwrap_or("a login shell"));
    files.append(now.wall, (Action::SessionBegan, Some(job)), &detail)?;
    files.note_session(own.id, &noted)?;
    let command = command(&open, typed);
    let state = state.next(Event::SessionBegan, &now);
    files.keep_state(&state)?;
    files.keep_status(&state)?;
    Ok(Permit { job, first: own.id, noted, command, recording, mib_max })
}

/// What `script` gives to its shell.
fn command(open: &OpenWay, typed: Option<&str>) -> String {
    let words = |run: &[String]| run.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    match (&open.run, typed) {
        // Root named the program; what the person typed has no part in it.
        (Some(run), _) => format!("exec {}", words(run)),
        (None, Some(typed)) => format!("exec /bin/bash -l -c {}", quoted(typed)),
        (None, None) => "exec /bin/bash -l".to_owned(),
    }
}

fn finish(
    files: &Files,
    (job, first): (JobId, ProcessId),
    ended: &std::io::Result<ExitStatus>,
    left: usize,
) -> Result<(), SessionError> {
    let _lock = files.lock()?;
    let how = match ended {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("with code {code}"),
            (None, signal) => format!("by signal {}", signal.unwrap_or_default()),
        },
        Err(error) => format!("it was not recorded, and did not begin: {error}"),
    };
    let left = if left == 0 { String::new() } else { format!(", {left} processes do not end") };
    files.append(files.now()?.wall, (Action::SessionEnded, Some(job)), &format!("{how}{left}"))?;
    Ok(files.forget_session(first)?)
}

/// Sessions that still run. What others noted and left behind is taken away.
fn live(files: &Files, now: &Moment) -> Result<usize, FilesError> {
    let table: BTreeSet<ProcessId> =
        processes::all().into_iter().filter(|one| !one.is_dead).map(|one| one.id).collect();
    let mut count = 0;
    for (path, noted) in files.noted_sessions()? {
        if noted.boot == now.boot && noted.processes.iter().any(|id| table.contains(id)) {
            count += 1;
        } else {
            files.remove(&path)?;
        }
    }
    Ok(count)
}

fn recordings(folder: &Path) -> Result<Vec<(PathBuf, fs::Metadata)>, FilesError> {
    let failed = |source| FilesError::Io { verb: "list", path: folder.to_owned(), source };
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)?.take(RECORDINGS_MAX) {
        let entry = entry.map_err(failed)?;
        all.push((entry.path(), entry.metadata().map_err(failed)?));
    }
    Ok(all)
}

fn total(folder: &Path) -> Result<u64, FilesError> {
    Ok(recordings(folder)?.iter().fold(0, |total, (_, about)| about.len().saturating_add(total)))
}

/// Removes recordings that are older than root's settings say. Without settings nothing is removed.
///
/// # Errors
/// [`FilesError`].
pub fn forget_old_recordings(files: &Files, now: &Moment) -> Result<(), FilesError> {
    let Ok(Some(settings)) = files.settings() else { return Ok(()) };
    let keep = Duration::from_secs(u64::from(settings.recordings.keep_days) * 86_400);
    let now = std::time::SystemTime::from(now.wall);
    for (path, about) in recordings(&files.recordings())? {
        let age = about.modified().ok().and_then(|at| now.duration_since(at).ok());
        if age.is_some_and(|age| age > keep) {
            files.remove(&path)?;
        }
    }
    Ok(())
}
