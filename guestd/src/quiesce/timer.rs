//! Resume timer: a transient unit of systemd, armed before anything stops.
//!
//! It lives in PID 1's memory, so neither our death nor a full disk stops it. It fires at the bound, and also each
//! minute: systemd's clock stops during suspend, ours does not. It starts a second name of our program in
//! `/var/lib/holdfast`, so a replaced or removed program does no harm.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::OperationId;

use crate::file::{self, FileError};
use crate::paths::Paths;
use crate::program::{self, Call, ProgramError, run_well};

/// The time limit of a call to systemd.
const LIMIT: Duration = Duration::from_secs(20);

/// How often it checks, in addition to the bound itself.
const EACH_S: u64 = 60;

/// What one resume may take before systemd ends it; it begins again a minute later.
const RESUME_LIMIT: &str = "--property=TimeoutStartSec=1h";

/// Why there is no timer.
#[derive(Debug, thiserror::Error)]
pub enum TimerError {
    /// Our program cannot be laid by.
    #[error("the program for the timer cannot be copied")]
    Program(#[from] FileError),
    #[error("/proc/self/exe cannot be read")]
    OwnProgram(#[source] std::io::Error),
    #[error("systemd did not create the timer")]
    Arm(#[source] ProgramError),
    /// It took it, and does not have it.
    #[error("systemd has no timer {unit} after creating it")]
    NotThere {
        unit: String,
        #[source]
        source: ProgramError,
    },
}

/// The timer of a window.
pub fn unit(window: OperationId) -> String {
    format!("holdfast-resume-{}", window.uuid().simple())
}

/// What the timer and the boot start.
pub fn program_path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("guestd-resume")
}

/// Copies our program. The copy exists before any marker, and is removed after it.
pub fn copy_program(paths: &Paths) -> Result<(), TimerError> {
    // A program that was exchanged while it ran is still what the kernel shows here.
    let own = PathBuf::from("/proc/self/exe");
    let named = std::fs::read_link(&own).map_err(TimerError::OwnProgram)?;
    let source = if named.exists() { named } else { own };
    Ok(file::lay_by(&source, &program_path(paths))?)
}

/// Arms it, and sees that systemd has it.
pub async fn arm(paths: &Paths, unit: &str, left: Duration) -> Result<(), TimerError> {
    run_well(&arm_call(paths, unit, left)).await.map_err(TimerError::Arm)?;
    let there = Call::new(["systemctl", "is-active", "--", &format!("{unit}.timer")], LIMIT);
    let seen = run_well(&there).await;
    seen.map(drop).map_err(|source| TimerError::NotThere { unit: unit.to_owned(), source })
}

fn arm_call(paths: &Paths, unit: &str, left: Duration) -> Call {
    let at = |seconds: u64| format!("--on-active={seconds}s");
    let (program, root) = (program_path(paths), paths.root());
    let program = std::path::absolute(&program).unwrap_or(program);
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let argv = [
        "systemd-run".to_owned(),
        "--quiet".to_owned(),
        "--collect".to_owned(),
        format!("--unit={unit}"),
        "--description=Holdfast resumes stacks that are stopped for a backup".to_owned(),
        // Never later than the bound.
        at(left.as_secs().max(1)),
        at(left.as_secs().clamp(1, EACH_S)),
        format!("--on-unit-inactive={EACH_S}s"),
        "--timer-property=AccuracySec=1s".to_owned(),
        "--property=Type=oneshot".to_owned(),
        RESUME_LIMIT.to_owned(),
        "--".to_owned(),
        program.to_string_lossy().into_owned(),
        "resume".to_owned(),
        "--expired".to_owned(),
        format!("--timer={unit}"),
        "--root".to_owned(),
        root.to_string_lossy().into_owned(),
    ];
    Call { argv: argv.to_vec(), env: Vec::new(), folder: None, limit: LIMIT }
}

/// Takes it back. One that stays does no harm: it finds no marker.
pub async fn disarm(unit: &str) -> Result<(), ProgramError> {
    program::run_well(&Call::new(["systemctl", "stop", "--", &format!("{unit}.timer")], LIMIT))
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_timer_fires_at_the_bound_and_each_minute() {
        let paths = Paths::new(Path::new("/"));
        let line = arm_call(&paths, "u", Duration::from_millis(899_900)).line();
        assert!(line.contains("--on-active=899s --on-active=60s --on-unit-inactive=60s"), "{line}");
        assert!(
            line.ends_with("-- /var/lib/holdfast/guestd-resume resume --expired --timer=u --root /"),
            "{line}"
        );
        let short = arm_call(&paths, "u", Duration::from_millis(30_500)).line();
        assert!(short.contains("--on-active=30s --on-active=30s"), "{short}");
    }
}
