//! The timer that puts the previous program back.
//!
//! Units in `/etc/systemd/system`, so that a restart of the guest keeps them: from each start of the timer the new program
//! has the same time. What it starts is the previous program under its second name. So neither a new build that hangs nor
//! one that ends at once keeps it from running. Guests of older images have the same units, since they are written here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;
use crate::program::{Call, ProgramError, run_well};

/// The time limit of a call to systemd.
const LIMIT: Duration = Duration::from_secs(20);

const SERVICE: &str = "holdfast-take-back.service";
const TIMER: &str = "holdfast-take-back.timer";

/// Why there is no timer.
#[derive(Debug, thiserror::Error)]
pub enum TimerError {
    #[error("its units cannot be written")]
    File(#[from] FileError),
    #[error("systemd did not take the timer {TIMER}")]
    Arm(#[source] ProgramError),
}

fn wanted_by(paths: &Paths) -> PathBuf {
    paths.units().join("timers.target.wants").join(TIMER)
}

/// Writes the units, starts the timer, and sees that systemd has it.
pub async fn arm(paths: &Paths, old: &Path, trial: Duration) -> Result<(), TimerError> {
    let units = paths.units();
    let folder = units.join("timers.target.wants");
    file::make_folder(&folder, Eyes::All)?;
    file::replace(&units.join(SERVICE), service(old, paths.root()).as_bytes(), Eyes::All)?;
    file::replace(&units.join(TIMER), timer(trial).as_bytes(), Eyes::All)?;
    // The link of `systemctl enable`, which works without a running systemd too.
    file::remove_durably(&wanted_by(paths))?;
    let link = wanted_by(paths);
    std::os::unix::fs::symlink(Path::new("..").join(TIMER), &link).map_err(file::failed("link", &link))?;
    file::sync_folder(&link)?;
    for argv in [
        &["systemctl", "daemon-reload"][..],
        &["systemctl", "restart", TIMER],
        &["systemctl", "is-active", TIMER],
    ] {
        run_well(&Call::new(argv.iter().copied(), LIMIT)).await.map_err(TimerError::Arm)?;
    }
    Ok(())
}

/// Stops the timer and removes its units.
pub async fn disarm(paths: &Paths) -> Result<(), TimerError> {
    let units = paths.units();
    if !units.join(TIMER).exists() && !units.join(SERVICE).exists() {
        return Ok(());
    }
    let stopped = run_well(&Call::new(["systemctl", "stop", TIMER], LIMIT)).await;
    for path in [wanted_by(paths), units.join(TIMER), units.join(SERVICE)] {
        file::remove_durably(&path)?;
    }
    stopped.map_err(TimerError::Arm)?;
    run_well(&Call::new(["systemctl", "daemon-reload"], LIMIT)).await.map(drop).map_err(TimerError::Arm)
}

fn service(old: &Path, root: &Path) -> String {
    let (old, root) = (old.display(), root.display());
    format!(
        "[Unit]\n\
         Description=Put the previous Holdfast controller back, unless the new one was confirmed\n\
         ConditionFileIsExecutable={old}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={old} take-back --root {root}\n\
         TimeoutStartSec=5min\n\
         UMask=0077\n"
    )
}

fn timer(trial: Duration) -> String {
    let seconds = trial.as_secs().max(1);
    format!(
        "[Unit]\n\
         Description=Time of a new Holdfast controller until it is confirmed\n\
         \n\
         [Timer]\n\
         OnActiveSec={seconds}s\n\
         OnUnitInactiveSec=60s\n\
         AccuracySec=1s\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_start_the_old_program_and_come_again() {
        let service = service(Path::new("/usr/bin/guestd.old"), Path::new("/"));
        assert!(service.contains("\nExecStart=/usr/bin/guestd.old take-back --root /\n"), "{service}");
        let timer = timer(Duration::from_secs(480));
        assert!(timer.contains("\nOnActiveSec=480s\nOnUnitInactiveSec=60s\n"), "{timer}");
        assert!(timer.contains("WantedBy=timers.target"), "{timer}");
    }
}
