//! Threads of synchronous work, one running at a time.
//!
//! In: the work of a simulator's task. Out: after each slot, for how long it pauses, or that it ended. Threads are kept
//! and used again, since starting one costs more than most slots. Deliberately absent: time; the caller decides when
//! the next slot is.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pve_sim::clock::TaskWork;
use tokio::runtime::Handle;

/// How a slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// It waits for this long.
    Paused(Duration),
    /// There is no more to do.
    Ended,
}

/// The worker's end of the rope.
struct Rope {
    go: Receiver<()>,
    report: Sender<Reported>,
}

thread_local! {
    static ROPE: RefCell<Option<Rope>> = const { RefCell::new(None) };
}

struct Job {
    runtime: Handle,
    work: TaskWork,
    rope: Rope,
}

static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Work under way.
pub struct Worker {
    go: Sender<()>,
    reported: Receiver<Reported>,
}

impl Worker {
    /// Prepares the work. It does not run before its first slot.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(runtime: Handle, work: TaskWork) -> std::io::Result<Self> {
        let ((go, going), (report, reported)) = (channel(), channel());
        let job = Job { runtime, work, rope: Rope { go: going, report } };
        let idle = IDLE.lock().unwrap().pop();
        let thread = match idle {
            Some(thread) => thread,
            None => {
                let (jobs, queue) = channel::<Job>();
                let own = jobs.clone();
                std::thread::Builder::new().name("turns".to_owned()).spawn(move || serve(&own, &queue))?;
                jobs
            }
        };
        thread.send(job).map_err(|_| std::io::Error::other("a kept thread is gone"))?;
        Ok(Self { go, reported })
    }

    /// Lets it move until it pauses or ends.
    #[must_use]
    pub fn turn(&self) -> Reported {
        // A worker that panicked has reported why on its own thread; here it has ended.
        if self.go.send(()).is_err() {
            return Reported::Ended;
        }
        self.reported.recv().unwrap_or(Reported::Ended)
    }
}

fn serve(own: &Sender<Job>, queue: &Receiver<Job>) {
    while let Ok(Job { runtime, work, rope }) = queue.recv() {
        let _time = runtime.enter();
        // When the world is gone before the first slot, its work is dropped.
        if rope.go.recv().is_err() {
            IDLE.lock().unwrap().push(own.clone());
            continue;
        }
        let report = rope.report.clone();
        ROPE.with(|held| *held.borrow_mut() = Some(rope));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        ROPE.with(|held| *held.borrow_mut() = None);
        // First idle, then reported: the next work may begin with the answer.
        IDLE.lock().unwrap().push(own.clone());
        drop(outcome);
        // When the world is gone, no receiver waits any more.
        let _ = report.send(Reported::Ended);
    }
}

/// Called by the work: ends its slot. Without a receiver the world is gone, and its time too.
pub fn pause(length: Duration) {
    ROPE.with(|held| {
        if let Some(rope) = &*held.borrow()
            && rope.report.send(Reported::Paused(length)).is_ok()
        {
            let _ = rope.go.recv();
        }
    });
}
