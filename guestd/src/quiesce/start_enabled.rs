//! Start of all stacks that should run, without a marker.
//!
//! Restore tests use it, and a guest whose marker cannot be read.

use std::time::Duration;

use holdfast_protocol::local::MountView;

use super::marker::Stopped;
use super::mounts::{self, NoVolume, Volumes};
use super::stack::{self, StackError, StackState, StartHistory};
use crate::driver::{Group, PartState, groups};
use crate::paths::Paths;
use crate::stacks::{self, DefaultState, Stack, StacksError};

/// Why a stack was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartEnabledError {
    #[error(transparent)]
    Act(#[from] StackError),
    #[error(transparent)]
    Volume(#[from] NoVolume),
}

/// Starts what of one stack does not run, jobs that are done excepted. Gives what should run now.
pub async fn start(
    paths: &Paths,
    stack: &Stack,
    volumes: &[MountView],
) -> Result<(Volumes, Vec<Group>), StartEnabledError> {
    let volumes = mounts::volumes(stack, volumes)?;
    let StackState { engine, parts, home } = stack::inspect(paths, stack, &volumes).await?;
    let all = groups(parts.iter().filter(|part| part.state != PartState::Done));
    let stopped = Stopped {
        name: stack.name.clone(),
        engine,
        groups: all.clone(),
        flapping: Vec::new(),
        home,
        stop_limit_s: stack.limits.stop.as_secs(),
        start_limit_s: stack.limits.start.as_secs(),
        hook_limit_s: stack.limits.hook.as_secs(),
        post_resume: None,
        env: volumes.env.clone(),
        mounts: volumes.mounts.clone(),
    };
    if !all.is_empty() {
        stack::start(paths, &stopped, &mut StartHistory::default()).await?;
    }
    Ok((volumes, all))
}

/// Starts all that should run. Returns what it did, as text. There is no agent here: it uses the volumes that the last
/// window knew.
pub async fn start_all(paths: &Paths) -> Result<String, StacksError> {
    let (mut started, mut left) = (Vec::new(), Vec::new());
    let volumes = mounts::remembered(paths);
    for stack in stacks::load(paths)?.stacks.iter().filter(|stack| stack.wanted == DefaultState::Running) {
        match tokio::time::timeout(TIME_MAX, start(paths, stack, &volumes)).await {
            Ok(Ok(_)) => started.push(stack.name.to_string()),
            Ok(Err(error)) => {
                left.push(format!("{}: {}", stack.name, holdfast_protocol::json::chain(&error)))
            }
            Err(_) => left.push(format!("{}: it took too long", stack.name)),
        }
    }
    Ok(format!("started: {}; not started: {}", listed(&started), listed(&left)))
}

/// Of one stack.
const TIME_MAX: Duration = Duration::from_secs(600);

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
