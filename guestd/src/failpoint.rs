//! Failpoints at which tests kill or stop this program.
//!
//! `GUESTD_DIES_AT` or `GUESTD_STANDS_AT` names one. Release builds do not read them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    Requested,
    Granted,
    ProgramLaid,
    MarkerWritten,
    TimerArmed,
    HookRun,
    OneStopped,
    AllStopped,
    QuiescedReported,
    Captured,
    OneStarted,
    AllStarted,
    MarkerGone,
    TimerGone,
    FetchBegun,
    Fetched,
    Tried,
    OldKept,
    ExchangeArmed,
    Swapped,
    TakenBack,
}

/// Passes the moment, dies there, or passes it later.
#[cfg(debug_assertions)]
pub fn reached(point: Point) {
    use rustix::process::Signal;
    for (variable, signal) in [("GUESTD_DIES_AT", Signal::KILL), ("GUESTD_STANDS_AT", Signal::STOP)] {
        if std::env::var(variable).is_ok_and(|name| name == format!("{point:?}")) {
            let own = rustix::process::getpid();
            // After SIGKILL nothing runs here; after SIGSTOP the process continues on SIGCONT.
            let _ = rustix::process::kill_process(own, signal);
        }
    }
}

/// Passes the moment.
#[cfg(not(debug_assertions))]
pub const fn reached(_point: Point) {}
