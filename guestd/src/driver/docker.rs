//! State of containers, by id.

use std::time::Duration;

use super::{Ending, Group, LOOK, Part, PartHealth, PartState, ReadError};
use crate::program::{Call, ProgramOutput};

/// Optional keys are read with `index`. A container without a health check or its own grace time has no such key, and
/// Docker refuses a template that names a missing key.
const FORM: &str = "{{.Id}} {{.State.Status}} {{.State.ExitCode}} {{with index .State \"Health\"}}{{.Status}}{{else}}none{{end}} {{.State.StartedAt}} {{with index .Config \"StopTimeout\"}}{{.}}{{else}}-{{end}} {{.State.OOMKilled}} {{.HostConfig.RestartPolicy.Name}}";

/// How long Docker waits where no time is configured.
const GRACE: Duration = Duration::from_secs(10);

/// How a process ends that is killed.
const KILLED: &str = "137";

/// The exit codes of a process that was killed, interrupted or signalled to end.
const SIGNALLED: [&str; 3] = [KILLED, "130", "143"];

/// Prints one line per container.
pub fn check<'a>(ids: impl Iterator<Item = &'a String>) -> Call {
    let words = ["docker", "inspect", "--type", "container", "--format", FORM];
    Call::new(words.into_iter().chain(ids.map(String::as_str)), LOOK)
}

/// Lists the services of a project that run now, one per line.
pub fn services(project: &str) -> Call {
    let of = format!("label=com.docker.compose.project={project}");
    let words = ["docker", "ps", "--filter", &of, "--filter", "label=com.docker.compose.oneoff=False"];
    let form = ["--filter", "status=running", "--format", "{{.Label \"com.docker.compose.service\"}}"];
    Call::new(words.into_iter().chain(form), LOOK)
}

/// Lists each stop of a container since it was started. Docker keeps only its latest events. A program that ended by
/// itself was not stopped.
pub fn stops(id: &str, since: &str) -> Call {
    let of = format!("container={id}");
    let words = ["docker", "events", "--since", since, "--until", "0s", "--filter", "type=container"];
    let form = ["--filter", "event=stop", "--filter", &of, "--format", "{{.Action}}"];
    Call::new(words.into_iter().chain(form), LOOK)
}

/// What the lines say. A container without a line is gone when Docker says so, and not known otherwise.
pub fn checked(groups: &[Group], said: &ProgramOutput) -> Result<Vec<Part>, ReadError> {
    let mut parts = Vec::new();
    for group in groups {
        for id in &group.ids {
            let line = said.out.lines().find_map(|line| line.strip_prefix(id.as_str())?.strip_prefix(' '));
            let (id, name) = (id.clone(), group.name.clone());
            let part = match line {
                Some(line) => read(id, name, line),
                None if is_gone(&said.err, &id) => {
                    let (state, health) = (PartState::Gone, PartHealth::Silent);
                    let ending = Ending::Clean;
                    Part { id, name, state, health, grace: None, run: String::new(), ending }
                }
                None => {
                    return Err(ReadError::Silent { program: "docker inspect", about: group.name.clone() });
                }
            };
            parts.push(part);
        }
    }
    Ok(parts)
}

fn read(id: String, name: String, line: &str) -> Part {
    let mut words = line.split_ascii_whitespace();
    let (status, code) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let state = match (status, code) {
        ("running", _) => PartState::Running,
        ("restarting", _) => PartState::Restarting,
        ("exited", "0") => PartState::Done,
        ("exited", KILLED) => PartState::Killed,
        _ => PartState::Stopped,
    };
    let health = match words.next() {
        Some("healthy") => PartHealth::Well,
        Some("starting") => PartHealth::Starting,
        Some("unhealthy") => PartHealth::Unwell,
        _ => PartHealth::Silent,
    };
    let run = words.next().unwrap_or_default().to_owned();
    // Without one of its own there is no number. A negative one is for ever.
    let grace = match words.next().and_then(|word| word.parse::<i64>().ok()) {
        Some(seconds) => u64::try_from(seconds).map_or(Duration::MAX, Duration::from_secs),
        None => GRACE,
    };
    let (by_memory, policy) = (words.next(), words.next());
    let oom = if by_memory == Some("true") { Oom::Killed } else { Oom::Spared };
    let ending = ending((status, code), oom, policy.unwrap_or_default());
    Part { id, name, state, health, grace: Some(grace), run, ending }
}

/// Whether the kernel killed it for want of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Oom {
    Killed,
    Spared,
}

/// Docker restarts what it should keep running each time it ends, unless it was stopped. So what is not running then
/// was stopped. For everything else only the exit code is known, and some programs exit with an error when they are
/// stopped.
fn ending((status, code): (&str, &str), oom: Oom, policy: &str) -> Ending {
    match (status, policy) {
        ("dead", _) => Ending::Failure,
        ("exited", "always" | "unless-stopped") => Ending::Clean,
        ("exited", _) if oom == Oom::Killed => Ending::Failure,
        ("exited", _) if code == "0" || SIGNALLED.contains(&code) => Ending::Clean,
        ("created" | "paused", _) => Ending::Clean,
        _ => Ending::Unknown,
    }
}

fn is_gone(err: &str, id: &str) -> bool {
    err.lines().any(|line| line.contains(id) && line.to_ascii_lowercase().contains("no such"))
}
