//! Closes what is over, and ends its sessions.
//!
//! In: the files and the clocks. Out: a line that is gone, sessions that ended, a log line, a status. It needs neither
//! agent nor hub. The line goes first. A state that cannot be read closes whatever is open. The mark goes last, so that
//! systemd starts the guard again after a crash in between.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use holdfast_protocol::break_glass::{CloseCause, Closed};
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::json::chain;

use crate::files::{Files, FilesError};
use crate::log::{Action, LogError};
use crate::moment::{Moment, TICK_S};
use crate::processes::{self, ProcessId};
use crate::session;
use crate::state::{Event, State};

/// Whether a way stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// For so many seconds.
    StaysOpen(u64),
    /// Nothing is open.
    IsClosed,
}

/// Why something was not closed whole.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("the way is closed, and {} processes of its sessions do not end: look at them with `ps -o pid,stat,args`", .0.len())]
    Processes(BTreeSet<ProcessId>),
}

/// Watches until nothing is open.
///
/// # Errors
/// [`GuardError`]; systemd starts it again.
pub fn watch(files: &Files) -> Result<(), GuardError> {
    loop {
        match tick(files)? {
            Turn::IsClosed => return Ok(()),
            // In short steps: the wall clock may be set meanwhile, and what is left is written down.
            Turn::StaysOpen(seconds) => sleep(Duration::from_secs(seconds.clamp(1, TICK_S))),
        }
    }
}

/// Closes what is over, at once and once.
///
/// # Errors
/// [`GuardError`].
pub fn tick(files: &Files) -> Result<Turn, GuardError> {
    step(files, None)
}

/// Closes whatever is open.
///
/// # Errors
/// [`GuardError`].
pub fn close(files: &Files) -> Result<Turn, GuardError> {
    step(files, Some(CloseCause::ByRoot))
}

fn step(files: &Files, at_once: Option<CloseCause>) -> Result<Turn, GuardError> {
    let _lock = files.lock()?;
    let now = files.now()?;
    let state = match files.state(&now) {
        Ok(state) => state,
        Err(error) => {
            files.remove_line()?;
            end_sessions(files, &now)?;
            files.remove_mark()?;
            // The status keeps saying that it is open: an operator looks here.
            eprintln!("{}", chain(&error));
            return Ok(Turn::IsClosed);
        }
    };
    let Some(left_s) = state.left_s(&now) else {
        settle(files, &now)?;
        return Ok(Turn::IsClosed);
    };
    match cause(at_once, is_off(files), left_s) {
        Some(cause) => {
            shut(files, state, cause, &now)?;
            Ok(Turn::IsClosed)
        }
        None => {
            let state = state.next(Event::Ticked, &now);
            files.keep_state(&state)?;
            Ok(Turn::StaysOpen(left_s.unsigned_abs()))
        }
    }
}

/// Whether a way closes now, and why.
const fn cause(at_once: Option<CloseCause>, switch: Switch, left_s: i64) -> Option<CloseCause> {
    match (at_once, switch) {
        (Some(cause), _) => Some(cause),
        (None, _) if left_s <= 0 => Some(CloseCause::Expired),
        (None, Switch::Off) => Some(CloseCause::ByRoot),
        (None, Switch::On) => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

/// Root took the settings away, or set `enabled = false`. Settings that cannot be read close nothing before its time.
fn is_off(files: &Files) -> Switch {
    match files.settings() {
        Ok(Some(settings)) if settings.enabled => Switch::On,
        Ok(_) => Switch::Off,
        Err(error) => {
            eprintln!("the settings are not used: {}", chain(&error));
            Switch::On
        }
    }
}

fn shut(files: &Files, state: State, cause: CloseCause, now: &Moment) -> Result<(), GuardError> {
    files.remove_line()?;
    let at = UtcSecond::new(now.at_least(state.latest)).map_err(FilesError::Clock)?;
    if let Some(open) = &state.open {
        let detail = format!("way {}, {} sessions: {}", open.order.way, open.order.sessions, cause.as_str());
        match files.append(now.wall, (Action::Closed, Some(open.order.job)), &detail) {
            // A way is closed, whatever the log has room for.
            Ok(()) => eprintln!("closed: {detail}"),
            Err(error @ FilesError::Log(LogError::Full | LogError::Broken(_))) => {
                eprintln!("{}", chain(&error))
            }
            Err(error) => return Err(error.into()),
        }
    }
    let state = state.next(Event::Closed(Closed { at, cause }), now);
    files.keep_state(&state)?;
    files.keep_status(&state)?;
    settle(files, now)
}

/// Nothing is open: nothing of it may be left.
fn settle(files: &Files, now: &Moment) -> Result<(), GuardError> {
    files.remove_line()?;
    end_sessions(files, now)?;
    session::forget_old_recordings(files, now)?;
    Ok(files.remove_mark()?)
}

fn end_sessions(files: &Files, now: &Moment) -> Result<(), GuardError> {
    for (path, noted) in files.noted_sessions()? {
        // Processes of an earlier boot are gone.
        if noted.boot == now.boot {
            let left = processes::end(&noted.processes, noted.group.as_deref());
            if !left.is_empty() {
                return Err(GuardError::Processes(left));
            }
        }
        files.remove(&path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_closes_by_time_by_hand_and_when_root_turns_it_off() {
        let by_root = Some(CloseCause::ByRoot);
        assert_eq!(cause(None, Switch::On, 1), None);
        assert_eq!(cause(None, Switch::On, 0), Some(CloseCause::Expired));
        assert_eq!(cause(None, Switch::Off, 0), Some(CloseCause::Expired));
        assert_eq!(cause(None, Switch::Off, 60), by_root);
        assert_eq!(cause(by_root, Switch::On, 60), by_root);
    }
}
