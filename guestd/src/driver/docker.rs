//! State of containers, by id.

use std::time::Duration;

use super::{Ending, Group, LOOK, Part, PartHealth, PartState, ReadError};
use crate::program::{Call, ProgramOutput};

/// What there may be none of is asked for with `index`: a container without a health check or a grace of its own has no such
/// key, and Docker refuses a template that names one which is not there.
const FORM: &str = "{{.Id}} {{.State.Status}} {{.State.ExitCode}} {{with index .State \"Health\"}}{{.Status}}{{else}}none{{end}} {{.State.StartedAt}} {{with index .Config \"StopTimeout\"}}{{.}}{{else}}-{{end}} {{.State.OOMKilled}} {{.HostConfig.RestartPolicy.Name}}";

/// What Docker waits where nobody says how long.
const GRACE: Duration = Duration::from_secs(10);

/// How a process ends that is killed.
const KILLED: &str = "137";

/// How one ends that was killed, interrupted or told to end.
const SIGNALLED: [&str; 3] = [KILLED, "130", "143"];

/// Asks for one line a container.
pub fn check<'a>(ids: impl Iterator<Item = &'a String>) -> Call {
    let words = ["docker", "inspect", "--type", "container", "--format", FORM];
    Call::new(words.into_iter().chain(ids.map(String::as_str)), LOOK)
}

/// Asks for the services of a project that run now, one a line.
pub fn services(project: &str) -> Call {
    let of = format!("label=com.docker.compose.project={project}");
    let words = ["docker", "ps", "--filter", &of, "--filter", "label=com.docker.compose.oneoff=False"];
    let form = ["--filter", "status=running", "--format", "{{.Label \"com.docker.compose.service\"}}"];
    Call::new(words.into_iter().chain(form), LOOK)
}

/// Asks for each stop of a container since it was started: Docker keeps what happened last, and a program that ended by itself
/// was not stopped.
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

/// Docker starts what it should keep running as often as it ends, unless somebody stopped it: what stands still then, was
/// stopped. Of everything else only its end is told, and some programs end badly when they are stopped.
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
