//! Actions on one stack: inspect, stop, start, check health.
//!
//! No decisions are made here.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdfast_protocol::json::chain;

use super::marker::Stopped;
use super::mounts::{Mounts, Volumes};
use crate::driver::{self, Baseline, Engine, Group, Home, Part, PartHealth, PartState, ReadError};
use crate::paths::Paths;
use crate::program::{self, Call, ProgramError, run, run_well};
use crate::stacks::Stack;

/// Why something was not done to a stack.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The program that should have done it.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// What it answered.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A stop was requested, and it still runs.
    #[error("{names} are still running after the stop")]
    StillRuns { names: String },
    /// The others took all of the time.
    #[error("no time left to stop {name}")]
    NoTime { name: String },
    /// A start was requested, and it does not run.
    #[error("{names} are not running after the start")]
    NotUp { names: String },
    /// It was up, and is up again.
    #[error("{names} failed after the start, and were restarted")]
    FellOver { names: String },
    /// It would write onto the root disk.
    #[error("{mount} is not mounted: its data would be written to the root disk; mount the volume")]
    NotMounted { mount: String },
    /// It is not there to be started.
    #[error("{names} were removed while they were stopped: {way}")]
    Removed { names: String, way: String },
}

/// What there is of a stack.
#[derive(Debug)]
pub struct StackState {
    pub engine: Engine,
    /// All of them, in the order in which they start.
    pub parts: Vec<Part>,
    pub home: Option<Home>,
}

/// Inspects the parts of a stack.
pub async fn inspect(paths: &Paths, stack: &Stack, volumes: &Volumes) -> Result<StackState, StackError> {
    let driver = driver::of(stack, paths, &volumes.env);
    let (mut said, mut calls) = (Vec::new(), driver.look());
    while !calls.is_empty() {
        for call in &calls {
            said.push(run_well(call).await?);
        }
        calls = driver.look_on(&said);
    }
    Ok(StackState { engine: driver.engine(), parts: driver.parts(&said)?, home: driver.home(&said) })
}

/// How parts are, by what they are.
pub async fn check(engine: Engine, groups: &[Group]) -> Result<Vec<Part>, StackError> {
    let said = run(&engine.check(groups)).await?;
    engine.checked(groups, &said).map_err(|error| match said.err.trim() {
        "" => StackError::Read(error),
        err => StackError::Program(ProgramError::Failed {
            line: engine.check(groups).argv.into_iter().take(2).collect::<Vec<_>>().join(" "),
            how: "an incomplete answer".to_owned(),
            words: program::words(err),
        }),
    })
}

/// Stops exactly these, the last first, and checks that they are stopped. All of it takes no longer than `limit`.
/// Returns the names of the parts that were killed instead of ending by themselves.
pub async fn stop(engine: Engine, groups: &[Group], limit: Duration) -> Result<String, StackError> {
    let begin = Instant::now();
    let before = check(engine, groups).await?;
    for group in groups.iter().rev() {
        let left = limit.saturating_sub(begin.elapsed());
        // A part that is stopped and then not waited for would stop after we return.
        if left.is_zero() {
            return Err(StackError::NoTime { name: group.name.clone() });
        }
        run_well(&engine.stop_within(group, &before, left)).await?;
    }
    let after = check(engine, groups).await?;
    match names(&after, |part| part.state.is_up()) {
        up if up.is_empty() => Ok(names(&after, |part| part.state == PartState::Killed)),
        names => Err(StackError::StillRuns { names }),
    }
}

/// What is known of each part from earlier checks of this resume.
#[derive(Debug, Default)]
pub struct StartHistory {
    known: Baseline,
    /// How often it was started.
    counts: BTreeMap<String, u32>,
    /// Which of its runs was seen last.
    runs: BTreeMap<String, String>,
}

/// A part that ends well by itself each time it is started is a job that is done: it is started twice, and then let be.
const JOB_STARTS: u32 = 2;

impl StartHistory {
    /// Of exactly what ran.
    pub fn of_stopped() -> Self {
        Self { known: Baseline::BeforeStop, ..Self::default() }
    }

    fn lacks(&self, part: &Part) -> bool {
        match part.state {
            // A part that fails is restarted by its engine.
            PartState::Running | PartState::Restarting | PartState::Gone => false,
            PartState::Stopped | PartState::Killed | PartState::Stopping => true,
            PartState::Done => self.counts.get(&part.id).is_none_or(|count| *count < JOB_STARTS),
        }
    }
}

/// Starts what of it does not run, and sees how it is then.
pub async fn start(paths: &Paths, stack: &Stopped, starts: &mut StartHistory) -> Result<(), StackError> {
    let mounts = Mounts::read(paths).ok();
    if let Some(mount) = stack.mounts.iter().find(|mount| mounts.as_ref().is_none_or(|all| !all.has(mount))) {
        return Err(StackError::NotMounted { mount: mount.to_string() });
    }
    let before = check(stack.engine, &stack.groups).await?;
    let lacking = driver::groups(before.iter().filter(|part| starts.lacks(part)));
    if lacking.is_empty() {
        return settled(stack, &before, starts).await;
    }
    let mut first = None;
    // A part that fails to start does not keep the other parts down.
    for call in stack.engine.start(&lacking, starts.known, Duration::from_secs(stack.start_limit_s)) {
        if let Err(error) = run_well(&call).await {
            first.get_or_insert(error);
        }
    }
    for id in lacking.into_iter().flat_map(|group| group.ids) {
        *starts.counts.entry(id).or_default() += 1;
    }
    if let Some(error) = first {
        return Err(error.into());
    }
    let after = check(stack.engine, &stack.groups).await?;
    match names(&after, |part| starts.lacks(part)) {
        down if down.is_empty() => settled(stack, &after, starts).await,
        names => Err(StackError::NotUp { names }),
    }
}

/// An error when one of these parts failed since the last check, or cannot be started. A part that fails all the time,
/// and did so before it was stopped, counts as unchanged.
async fn settled(stack: &Stopped, parts: &[Part], starts: &mut StartHistory) -> Result<(), StackError> {
    require_all_present(stack, parts).await?;
    let waited_for = |part: &Part| !stack.flapping.contains(&part.id);
    let restarting = names(parts, |part| part.state == PartState::Restarting && waited_for(part));
    let other = |part: &Part| starts.runs.get(&part.id).is_some_and(|run| *run != part.run);
    let fell = names(parts, |part| part.state == PartState::Running && waited_for(part) && other(part));
    starts.runs.extend(parts.iter().map(|part| (part.id.clone(), part.run.clone())));
    match (restarting.is_empty(), fell.is_empty()) {
        (false, _) => Err(StackError::NotUp { names: restarting }),
        (true, false) => Err(StackError::FellOver { names: fell }),
        (true, true) => Ok(()),
    }
}

/// The names of those parts, as people use them.
pub fn names(parts: &[Part], which: impl Fn(&Part) -> bool) -> String {
    let mut names: Vec<&str> =
        parts.iter().filter(|part| which(part)).map(|part| part.name.as_str()).collect();
    names.dedup();
    names.join(", ")
}

/// A hook of a stack.
pub fn hook(argv: &[String], stack: &str, env: &[(String, String)], limit: Duration) -> Call {
    let mut env = env.to_vec();
    env.push(("HOLDFAST_STACK".to_owned(), stack.to_owned()));
    Call { argv: argv.to_vec(), env, folder: Some("/".into()), limit }
}

/// How a stack is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It runs, and a check says that it is well.
    Well,
    /// It runs, and nothing says more.
    Runs,
    /// It may yet be well.
    Starting(String),
    /// It is not.
    Unwell(String),
}

/// Which parts of a stack must run for it to be well.
#[derive(Clone, Copy, Debug)]
pub enum Expected<'a> {
    /// These very ones.
    Parts(&'a [Group]),
    /// Those of these names, whichever they are now.
    Named(&'a [Group]),
    /// All of them.
    All,
}

impl Expected<'_> {
    async fn inspect(self, paths: &Paths, stack: &Stack, volumes: &Volumes) -> Result<Vec<Part>, StackError> {
        let named = |part: &Part, groups: &[Group]| groups.iter().any(|group| group.name == part.name);
        match self {
            Self::Parts(groups) => check(driver::of(stack, paths, &volumes.env).engine(), groups).await,
            Self::All => inspect(paths, stack, volumes).await.map(|looked| looked.parts),
            Self::Named(groups) => {
                let mut parts = inspect(paths, stack, volumes).await?.parts;
                parts.retain(|part| named(part, groups));
                let missing = groups.iter().find(|group| parts.iter().all(|part| part.name != group.name));
                match missing {
                    Some(group) => Err(StackError::NotUp { names: group.name.clone() }),
                    None => Ok(parts),
                }
            }
        }
    }
}

pub async fn health(paths: &Paths, stack: &Stack, volumes: &Volumes, expected: Expected<'_>) -> Health {
    let parts = expected.inspect(paths, stack, volumes).await;
    let parts = match parts {
        Ok(parts) => parts,
        Err(error) => return Health::Unwell(chain(&error)),
    };
    if parts.is_empty() {
        return Health::Unwell("it has no parts: it was never deployed on this guest".to_owned());
    }
    let down =
        names(&parts, |part| !matches!(part.state, PartState::Running | PartState::Done | PartState::Gone));
    if !down.is_empty() {
        return Health::Unwell(format!("{down} are not running"));
    }
    if let Some(argv) = &stack.hooks.health {
        let call = hook(argv, stack.name.as_str(), &volumes.env, stack.limits.hook);
        return run_well(&call).await.map_or_else(|error| Health::Unwell(chain(&error)), |_| Health::Well);
    }
    let unwell = names(&parts, |part| part.health == PartHealth::Unwell);
    let starting = names(&parts, |part| part.health == PartHealth::Starting);
    if !unwell.is_empty() {
        Health::Unwell(format!("{unwell} are unhealthy"))
    } else if !starting.is_empty() {
        Health::Starting(format!("{starting} are still starting"))
    } else if parts.iter().any(|part| part.health == PartHealth::Well) {
        Health::Well
    } else {
        Health::Runs
    }
}

/// Checks until it is well, or its time is over: then returns the last result.
pub async fn until_well(
    paths: &Paths,
    stack: &Stack,
    volumes: &Volumes,
    (expected, pause): (Expected<'_>, Duration),
) -> Health {
    let begin = Instant::now();
    loop {
        match health(paths, stack, volumes, expected).await {
            good @ (Health::Well | Health::Runs) => return good,
            last if begin.elapsed() >= stack.limits.health => return last,
            Health::Starting(_) | Health::Unwell(_) => tokio::time::sleep(pause).await,
        }
    }
}

/// An error when one of these parts is gone, and nothing has taken its place.
async fn require_all_present(stack: &Stopped, parts: &[Part]) -> Result<(), StackError> {
    let is_gone = |part: &Part| part.state == PartState::Gone;
    if !parts.iter().any(is_gone) {
        return Ok(());
    }
    let replaced = match &stack.home {
        Some(home) => run_well(&driver::services(home)).await?.out,
        None => String::new(),
    };
    let names = names(parts, |part| is_gone(part) && !replaced.lines().any(|name| name == part.name));
    if names.is_empty() { Ok(()) } else { Err(StackError::Removed { names, way: way(stack) }) }
}

/// How to have it again, or not.
fn way(stack: &Stopped) -> String {
    let again = match (&stack.home, stack.engine) {
        (Some(home), _) => format!("`{}` makes them again", home.up.join(" ")),
        (None, Engine::Docker) => "make them again".to_owned(),
        (None, Engine::Systemd) => "install them again".to_owned(),
    };
    format!("{again}; if they were removed on purpose, `guestd resume --without-removed`")
}
