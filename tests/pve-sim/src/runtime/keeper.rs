//! A supervisor of one child process.
//!
//! ```text
//! running --child ends--> again? --yes, after a pause--> running
//!    |                      '------no-----------------> ended
//!    '--end()--signal--child ends--> ended
//! ```

use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

/// What happens after a child has ended by itself.
pub(super) enum Again {
    /// It is started again after a pause.
    After(Duration),
    /// That was all.
    No,
}

/// Starts the child, and decides what follows its end.
pub(super) trait Supervised: Send + 'static {
    /// Starts it (again).
    fn spawn(&mut self) -> std::io::Result<Child>;
    /// After it has ended by itself.
    fn ended(&mut self, status: ExitStatus) -> Again;
    /// After the last end.
    fn finished(&mut self);
}

/// A kept child.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    child: Option<Pid>,
    ending: Option<Signal>,
    ended: bool,
}

/// Which processes a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The child alone.
    Child,
    /// The child's process group, of which it is the leader.
    Group,
}

impl Keeper {
    /// Starts the child and keeps it.
    pub(super) fn start(mut kept: impl Supervised) -> std::io::Result<Self> {
        let child = kept.spawn()?;
        let state = State { child: pid_of(&child), ending: None, ended: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("guest".to_owned()).spawn(move || {
            for_thread.keep(&mut kept, child);
            kept.finished();
            let mut state = for_thread.lock();
            state.ended = true;
            for_thread.changed.notify_all();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The child's number while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.shared.lock().child.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())
    }

    /// Whether it is over for good.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.lock().ended
    }

    /// Signals the child, which is not started again, and waits for its end. Returns whether it ended in time.
    pub(super) fn end(&mut self, signal: Signal, target: Target, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        state.ending = Some(signal);
        if let Some(pid) = state.child {
            // A child that has just ended is no failure; its end is waited for below.
            let _ = match target {
                Target::Child => rustix::process::kill_process(pid, signal),
                Target::Group => rustix::process::kill_process_group(pid, signal),
            };
        }
        self.shared.changed.notify_all();
        while !state.ended {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // The thread has nothing left to do; a panic in it would have shown in the test that caused it.
        self.thread.take().is_none_or(|thread| thread.join().is_ok())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, kept: &mut impl Supervised, first: Child) {
        let mut child = first;
        loop {
            let Some(status) = self.wait(&mut child) else { return };
            if self.lock().ending.is_some() {
                return;
            }
            let Again::After(pause) = kept.ended(status) else { return };
            if !self.pause(pause) {
                return;
            }
            // Held while spawning: an `end` that comes now finds the new child.
            let mut state = self.lock();
            if state.ending.is_some() {
                return;
            }
            let Ok(next) = kept.spawn() else { return };
            state.child = pid_of(&next);
            drop(state);
            child = next;
        }
    }

    /// Waits without reaping, then reaps under the lock: until then the number cannot become another process, so no
    /// signal of `end` can hit a stranger.
    fn wait(&self, child: &mut Child) -> Option<ExitStatus> {
        if let Some(pid) = pid_of(child) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
        }
        let mut state = self.lock();
        state.child = None;
        child.wait().ok()
    }

    /// Waits for the pause to pass; false when the end is wanted meanwhile.
    fn pause(&self, pause: Duration) -> bool {
        let deadline = Instant::now() + pause;
        let mut state = self.lock();
        while state.ending.is_none() {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return true };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}
