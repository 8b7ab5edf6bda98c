//! How containers are, by their ids.

use std::time::Duration;

use super::{Group, LOOK, Part, PartHealth, PartState, ReadError};
use crate::program::{Call, Said};

/// What there may be none of is asked for with `index`: a container without a health check or a grace of its own has no such
/// key, and Docker refuses a template that names one which is not there.
const FORM: &str = "{{.Id}} {{.State.Status}} {{.State.ExitCode}} {{with index .State \"Health\"}}{{.Status}}{{else}}none{{end}} {{.State.StartedAt}} {{with index .Config \"StopTimeout\"}}{{.}}{{else}}-{{end}}";

/// What Docker waits where nobody says how long.
const GRACE: Duration = Duration::from_secs(10);

/// How a process ends that is killed.
const KILLED: &str = "137";

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

/// What the lines say. A container without a line is gone when Docker says so, and not known otherwise.
pub fn checked(groups: &[Group], said: &Said) -> Result<Vec<Part>, ReadError> {
    let mut parts = Vec::new();
    for group in groups {
        for id in &group.ids {
            let line = said.out.lines().find_map(|line| line.strip_prefix(id.as_str())?.strip_prefix(' '));
            let (id, name) = (id.clone(), group.name.clone());
            let part = match line {
                Some(line) => read(id, name, line),
                None if is_gone(&said.err, &id) => {
                    let (state, says) = (PartState::Gone, PartHealth::Silent);
                    Part { id, name, state, says, grace: None, run: String::new() }
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
    let says = match words.next() {
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
    Part { id, name, state, says, grace: Some(grace), run }
}

fn is_gone(err: &str, id: &str) -> bool {
    err.lines().any(|line| line.contains(id) && line.to_ascii_lowercase().contains("no such"))
}
