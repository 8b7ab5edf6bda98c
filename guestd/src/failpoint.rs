//! Named moments at which a test has this program die, as by `kill -9`.
//!
//! `GUESTD_DIES_AT` names one. Programs that are built for use do not look at it.

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    Asked,
    Granted,
    ProgramLaid,
    MarkerWritten,
    TimerArmed,
    HookRun,
    OneStopped,
    AllStopped,
    QuiescedTold,
    Captured,
    OneStarted,
    AllStarted,
    MarkerGone,
    TimerGone,
    FetchBegun,
    Fetched,
    Tried,
    OldKept,
    Swapped,
}

/// Passes the moment, or dies there.
#[cfg(debug_assertions)]
pub fn reached(point: Point) {
    if std::env::var("GUESTD_DIES_AT").is_ok_and(|name| name == format!("{point:?}")) {
        let own = rustix::process::getpid();
        // Nothing runs after this.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
}

/// Passes the moment.
#[cfg(not(debug_assertions))]
pub const fn reached(_point: Point) {}
