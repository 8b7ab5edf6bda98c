//! Restore test inside the scratch guest.
//!
//! It checks the isolation, starts the stacks, waits for their health, reads the canaries, and reports.
//!
//! What comes in: the stacks that the backup contains. What goes out: one report, with this guest's own new token. The
//! stacks that were stopped when the backup was taken were started before this, by its marker, as after any boot.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use holdfast_protocol::json::chain;
use holdfast_protocol::local::MountView;
use holdfast_protocol::local::restore_test::{StackCheck, StackHealth, TestReport};
use tracing::{info, warn};

use crate::isolation_check;
use crate::paths::Paths;
use crate::program::words;
use crate::quiesce::canary;
use crate::quiesce::stack::{self, Expected, Health};
use crate::quiesce::start_enabled;
use crate::stacks::{DefaultState, RestoreTest, Stack, Stacks};
use crate::status_file;
use crate::window::calls::Windows;

/// Between two questions about health.
const PAUSE: Duration = Duration::from_secs(1);

/// The length limit of the text about a stack: the texts of the most stacks allowed fit into one body.
const WHY_BYTES_MAX: usize = 256;

/// Tests, and reports. True when the report was delivered, or never will be.
pub async fn run(
    paths: &Paths,
    windows: &Windows<'_>,
    (endpoint, source): (&str, Option<IpAddr>),
    stacks: Result<&Stacks, &str>,
) -> bool {
    let volumes = match windows.storage().await {
        Ok(storage) => storage.volumes,
        Err(error) => {
            warn!(error = chain(&error), "the volumes of this guest are unknown");
            Vec::new()
        }
    };
    let mut report =
        TestReport { guest: None, stacks: Vec::new(), canaries: canary::find(paths), reached: Vec::new() };
    report.reached = isolation_check::reached(endpoint, source).await;
    if let Err(why) = stacks {
        report.stacks.extend(unread(why));
    }
    // What could speak with others is not started.
    let stacks = stacks.ok().filter(|_| report.reached.is_empty());
    let stacks = stacks.map_or(&[][..], |stacks| stacks.stacks.as_slice());
    for stack in stacks.iter().filter(|stack| stack.restore_test == RestoreTest::Check) {
        if let Some(check) = check(paths, stack, &volumes).await {
            info!(stack = %check.stack, health = ?check.health, "tested");
            report.stacks.push(check);
        }
    }
    let said = format!("{} stacks, {} canaries", report.stacks.len(), report.canaries.len());
    match windows.report(&report).await {
        Ok(_) => {
            status_file::update(paths, |status| status.restore_test = Some(format!("reported: {said}")));
            true
        }
        Err(error) => {
            let why = chain(&error);
            warn!(why, "restore test report not acknowledged");
            status_file::update(paths, |status| {
                status.restore_test = Some(format!("{said}; not heard: {why}"))
            });
            // The agent had it already, or will not have it.
            error.code().is_some_and(|code| code != holdfast_protocol::code::ErrorCode::Unavailable)
        }
    }
}

/// A backup whose stacks cannot even be named has not come back, whatever its canaries say.
fn unread(why: &str) -> Option<StackCheck> {
    let stack = "stacks-toml".parse().ok()?;
    Some(StackCheck { stack, health: unhealthy(why), took_ms: 0 })
}

/// One stack. None when it should not run, and does not.
async fn check(paths: &Paths, stack: &Stack, volumes: &[MountView]) -> Option<StackCheck> {
    let begin = Instant::now();
    let health = match stack.wanted {
        DefaultState::Running => {
            match tokio::time::timeout(stack.limits.start * 2, start_enabled::start(paths, stack, volumes))
                .await
            {
                Ok(Ok((known, groups))) => until_well(paths, stack, &known, &groups).await,
                Ok(Err(error)) => unhealthy(&chain(&error)),
                Err(_) => unhealthy("not started in time"),
            }
        }
        DefaultState::Stopped => return None,
    };
    let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    Some(StackCheck { stack: stack.name.clone(), health, took_ms })
}

async fn until_well(
    paths: &Paths,
    stack: &Stack,
    volumes: &crate::quiesce::mounts::Volumes,
    groups: &[crate::driver::Group],
) -> StackHealth {
    // Of a stack without parts this says that it has none.
    let expected = if groups.is_empty() { Expected::All } else { Expected::Parts(groups) };
    match stack::until_well(paths, stack, volumes, (expected, PAUSE)).await {
        Health::Well => StackHealth::Healthy,
        Health::Runs => StackHealth::Runs,
        Health::Starting(why) | Health::Unwell(why) => unhealthy(&why),
    }
}

fn unhealthy(why: &str) -> StackHealth {
    let said = words(why);
    let why = said[..said.floor_char_boundary(WHY_BYTES_MAX)].to_owned();
    StackHealth::Unhealthy { why: if why.is_empty() { "no output".to_owned() } else { why } }
}
