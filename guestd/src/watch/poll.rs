//! Poll of a stack: parts, how they ended, its health check.

use holdfast_protocol::json::chain;
use holdfast_protocol::local::MountView;
use tracing::debug;

use super::assessment::{Assessment, Check, State, assess, is_down};
use crate::driver::{self, Ending, Engine, Part};
use crate::paths::Paths;
use crate::program::run_well;
use crate::quiesce::mounts;
use crate::quiesce::stack::{self, StackError, StackState};
use crate::stacks::{Stack, Stacks};
use crate::status_file;

pub async fn poll(paths: &Paths, stacks: &Stacks, stack: &Stack, volumes: &[MountView]) -> Assessment {
    let unknown = |why: String| Assessment::Unwell(State::Unknown, why);
    let volumes = match mounts::volumes(stack, volumes) {
        Ok(volumes) => volumes,
        Err(error) => return unknown(chain(&error)),
    };
    let StackState { engine, mut parts, .. } = match stack::inspect(paths, stack, &volumes).await {
        Ok(looked) => looked,
        Err(error) => return unknown(brief(&error)),
    };
    parts.retain(|part| stacks.is_of(stack, &part.id));
    if let Err(error) = find_endings(paths, engine, &mut parts).await {
        return unknown(brief(&error));
    }
    let check = match &stack.hooks.health {
        Some(argv) if parts.iter().any(|part| part.state.is_up()) => {
            let call = stack::hook(argv, stack.name.as_str(), &volumes.env, stack.limits.hook);
            run_well(&call).await.map_or_else(|error| Check::Unwell(error.brief()), |_| Check::Well)
        }
        Some(_) | None => Check::None,
    };
    assess(engine, &parts, check)
}

fn brief(error: &StackError) -> String {
    if let StackError::Program(error) = error { error.brief() } else { chain(error) }
}

/// Compose reports only the exit code of a container that ended. Docker knows whether its policy should have started it
/// again, and whether it was stopped. Docker keeps that only for a while, so it is recorded here.
async fn find_endings(paths: &Paths, engine: Engine, parts: &mut [Part]) -> Result<(), StackError> {
    let open = |part: &Part| is_down(part) && part.ending == Ending::Unknown;
    if engine == Engine::Systemd || !parts.iter().any(open) {
        return Ok(());
    }
    let groups = driver::groups(parts.iter().filter(|part| open(part)));
    let known = stack::check(engine, &groups).await?;
    for part in parts.iter_mut().filter(|part| open(part)) {
        let Some(known) = known.iter().find(|known| known.id == part.id) else { continue };
        // It may be up again since.
        (part.state, part.ending) = (known.state, known.ending);
        if !open(part) {
            continue;
        }
        let run = format!("{} {}", known.id, known.run);
        part.ending = if status_file::load(paths).stopped.contains(&run) {
            Ending::Clean
        } else {
            ask(paths, known, &run).await
        };
    }
    Ok(())
}

async fn ask(paths: &Paths, part: &Part, run: &str) -> Ending {
    let Some(call) = driver::stops(part) else { return Ending::Unknown };
    match run_well(&call).await {
        Ok(said) if said.out.trim().is_empty() => Ending::Failure,
        Ok(_) => {
            status_file::update(paths, |status| status.keep_stopped(run.to_owned()));
            Ending::Clean
        }
        Err(error) => {
            debug!(error = chain(&error), "end reason of a container is unknown");
            Ending::Unknown
        }
    }
}
