//! Failpoints around journal writes and effects.
//!
//! In production no failpoint is ever reached: [`Nowhere`]. With the feature `testing` the environment may name one
//! point, `HOLDFAST_FAILPOINT=restore:after:posted`, or the number of a point counted from the start, `7`. There the
//! process kills itself with signal 9. It then also reports each point that it reaches. Number 0 is never reached, so
//! it only reports.

use std::fmt;
use std::sync::Arc;

/// Before or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It has not happened.
    Before,
    /// It has happened, and nothing was notified.
    After,
}

/// The moment at which the point is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The intent's write.
    Intent,
    /// The effect itself.
    Effect,
    /// The write of the task's name.
    Posted,
    /// The outcome's write.
    Outcome,
    /// The write of the operation's begin or end.
    Frame,
    /// The write that opens the operation, with its audit line.
    Opened,
    /// The write that accepts a signed job, or refuses its text.
    Taken,
    /// The write that ends a signed job which becomes no operation.
    Settled,
    /// The report that informs the hub about the result of jobs.
    Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// The step's name, or `operation`.
    pub step: &'static str,
    /// Before or after.
    pub side: Side,
    pub moment: Moment,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Before => "before",
            Side::After => "after",
        };
        let moment = match self.moment {
            Moment::Intent => "intent",
            Moment::Effect => "effect",
            Moment::Posted => "posted",
            Moment::Outcome => "outcome",
            Moment::Frame => "frame",
            Moment::Opened => "opened",
            Moment::Taken => "taken",
            Moment::Settled => "settled",
            Moment::Reported => "told",
        };
        write!(f, "{}:{side}:{moment}", self.step)
    }
}

/// The world stops here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped at {0}")]
pub struct Killed(pub Point);

/// Decides whether the world stops at a point.
pub trait Failpoints: Send + Sync {
    /// A point was reached.
    ///
    /// # Errors
    /// [`Killed`] when the world stops here: a caller that gets it does nothing more, as if it had died.
    fn reached(&self, point: Point) -> Result<(), Killed>;
}

/// It never stops.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Failpoints for Nowhere {
    fn reached(&self, _: Point) -> Result<(), Killed> {
        Ok(())
    }
}

/// Reaches a point in a loop of the agent's: a loop that died there does nothing more, and waits for ever.
pub async fn pass(failpoints: &dyn Failpoints, point: Point) {
    if failpoints.reached(point).is_err() {
        std::future::pending::<()>().await;
    }
}

/// Awaits a write or an effect of a loop of the agent's, between the points before and after it.
pub async fn around<T>(
    failpoints: &dyn Failpoints,
    (step, moment): (&'static str, Moment),
    what: impl Future<Output = T>,
) -> T {
    pass(failpoints, Point { step, side: Side::Before, moment }).await;
    let done = what.await;
    pass(failpoints, Point { step, side: Side::After, moment }).await;
    done
}

/// The failpoints that the environment requests, if this build has them.
#[must_use]
pub fn from_environment() -> Arc<dyn Failpoints> {
    #[cfg(feature = "testing")]
    if let Ok(text) = std::env::var("HOLDFAST_FAILPOINT") {
        return Arc::new(killing::KillAt::new(text));
    }
    Arc::new(Nowhere)
}

/// The real thing: signal 9, from which nothing is cleaned up.
#[cfg(feature = "testing")]
mod killing {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Failpoints, Killed, Point};

    enum Aim {
        Name(String),
        Number(u32),
    }

    pub(super) struct KillAt {
        aim: Aim,
        reached: AtomicU32,
    }

    impl KillAt {
        pub(super) fn new(text: String) -> Self {
            let aim = text.parse().map_or(Aim::Name(text), Aim::Number);
            Self { aim, reached: AtomicU32::new(0) }
        }
    }

    impl Failpoints for KillAt {
        fn reached(&self, point: Point) -> Result<(), Killed> {
            let number = self.reached.fetch_add(1, Ordering::SeqCst) + 1;
            let name = point.to_string();
            // Standard error has no buffer: the line is out before the end comes.
            eprintln!("failpoint {number} {name}");
            let is_here = match &self.aim {
                Aim::Name(aim) => *aim == name,
                Aim::Number(aim) => *aim == number,
            };
            if is_here {
                let me = rustix::process::getpid();
                if rustix::process::kill_process(me, rustix::process::Signal::KILL).is_err() {
                    std::process::abort();
                }
            }
            Ok(())
        }
    }
}
