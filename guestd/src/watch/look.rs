//! One look at a stack while nothing is done to it: its parts, how they ended, its own check.

use holdfast_protocol::local::MountView;
use holdfast_protocol::strict::chain;
use tracing::debug;

use super::judge::{Check, Seen, State, is_down, judge};
use crate::board;
use crate::driver::{self, Ending, Engine, Part};
use crate::place::Place;
use crate::program::run_well;
use crate::quiesce::act::{self, ActError, Looked};
use crate::quiesce::mounts;
use crate::stacks::{Stack, Stacks};

/// Looks.
pub async fn look(place: &Place, stacks: &Stacks, stack: &Stack, volumes: &[MountView]) -> Seen {
    let unknown = |why: String| Seen::Wrong(State::Unknown, why);
    let volumes = match mounts::volumes(stack, volumes) {
        Ok(volumes) => volumes,
        Err(error) => return unknown(chain(&error)),
    };
    let Looked { engine, mut parts, .. } = match act::look(place, stack, &volumes).await {
        Ok(looked) => looked,
        Err(error) => return unknown(brief(&error)),
    };
    parts.retain(|part| stacks.is_of(stack, &part.id));
    if let Err(error) = find_endings(place, engine, &mut parts).await {
        return unknown(brief(&error));
    }
    let check = match &stack.hooks.health {
        Some(argv) if parts.iter().any(|part| part.state.is_up()) => {
            let call = act::hook(argv, stack.name.as_str(), &volumes.env, stack.limits.hook);
            run_well(&call).await.map_or_else(|error| Check::Unwell(error.brief()), |_| Check::Well)
        }
        Some(_) | None => Check::None,
    };
    judge(engine, &parts, check)
}

fn brief(error: &ActError) -> String {
    if let ActError::Program(error) = error { error.brief() } else { chain(error) }
}

/// Compose tells only with which code a container ended. Docker knows what should have started it again, and whether somebody
/// stopped it; that it keeps for a while only, so it is written down here.
async fn find_endings(place: &Place, engine: Engine, parts: &mut [Part]) -> Result<(), ActError> {
    let open = |part: &Part| is_down(part) && part.ending == Ending::Unknown;
    if engine == Engine::Systemd || !parts.iter().any(open) {
        return Ok(());
    }
    let groups = driver::groups(parts.iter().filter(|part| open(part)));
    let known = act::check(engine, &groups).await?;
    for part in parts.iter_mut().filter(|part| open(part)) {
        let Some(known) = known.iter().find(|known| known.id == part.id) else { continue };
        // It may be up again since.
        (part.state, part.ending) = (known.state, known.ending);
        if !open(part) {
            continue;
        }
        let run = format!("{} {}", known.id, known.run);
        part.ending = if board::load(place).stopped.contains(&run) {
            Ending::Clean
        } else {
            ask(place, known, &run).await
        };
    }
    Ok(())
}

async fn ask(place: &Place, part: &Part, run: &str) -> Ending {
    let Some(call) = driver::stops(part) else { return Ending::Unknown };
    match run_well(&call).await {
        Ok(said) if said.out.trim().is_empty() => Ending::Failure,
        Ok(_) => {
            board::update(place, |told| told.keep_stopped(run.to_owned()));
            Ending::Clean
        }
        Err(error) => {
            debug!(error = chain(&error), "whether somebody stopped it cannot be told");
            Ending::Unknown
        }
    }
}
