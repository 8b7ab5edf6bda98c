//! Heartbeats of the loops for the watchdog of systemd.
//!
//! In: each loop declares, before it waits for something outside, how long that may take. Out: `WATCHDOG=1` at the
//! interval that systemd requests, as long as no loop is late. A loop that waits for ever is late soon; then nothing is
//! sent, and systemd kills this program and starts it again. A program that is stopped as a whole sends nothing by
//! itself. Deliberately absent: a separate thread, which would go on while everything else is blocked.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{error, warn};

/// On top of what was said: reading, deciding and writing small files between two waits, on a slow disk.
const MARGIN: Duration = Duration::from_secs(120);

tokio::task_local! {
    static BEAT: Heartbeat;
}

/// One loop, and until when it must say something again.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    name: &'static str,
    due: Rc<Cell<Instant>>,
}

impl Heartbeat {
    pub fn new(name: &'static str) -> Self {
        Self { name, due: Rc::new(Cell::new(Instant::now() + MARGIN)) }
    }

    /// Runs a loop, whose [`within`] counts for this beat.
    pub async fn of<T>(&self, work: impl Future<Output = T>) -> T {
        BEAT.scope(self.clone(), work).await
    }
}

/// The calling loop runs now, and calls this again within this time. In a person's command, without a watchdog, it does
/// nothing.
pub fn within(limit: Duration) {
    let _ = BEAT.try_with(|beat| beat.due.set(Instant::now() + limit + MARGIN));
}

/// The first loop that is late.
fn late(beats: &[Heartbeat]) -> Option<&'static str> {
    let now = Instant::now();
    beats.iter().find(|beat| beat.due.get() < now).map(|beat| beat.name)
}

/// How often systemd expects a message, where its watchdog is on.
pub fn pace() -> Option<Duration> {
    systemd_notices::watchdog_enabled().map(|bound| bound / 3)
}

/// Says to systemd that this program works. What it does not take at once is said again at the next turn.
pub fn notify_systemd() {
    if systemd_notices::send(&[systemd_notices::NotifyState::Watchdog]) == systemd_notices::Sent::Later {
        warn!("systemd took no watchdog notification");
    }
}

/// Says so at this pace, as long as no loop is late.
pub async fn watch(beats: &[Heartbeat], pace: Option<Duration>, mut tell: impl FnMut()) -> Infallible {
    let Some(pace) = pace else { return std::future::pending().await };
    let mut status = None;
    loop {
        let hangs = late(beats);
        match hangs {
            None => tell(),
            Some(name) if status != hangs => {
                error!("loop `{name}` hangs: no more watchdog notifications, systemd will restart guestd");
            }
            Some(_) => {}
        }
        status = hangs;
        tokio::time::sleep(pace).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Duration = Duration::from_secs(60);

    /// How often systemd received a message within an hour.
    async fn heard(work: impl Future<Output = Infallible>) -> u32 {
        let (busy, hangs) = (Heartbeat::new("busy"), Heartbeat::new("one"));
        let count = Cell::new(0_u32);
        let beats = [busy.clone(), hangs.clone()];
        let turns = async {
            loop {
                within(PACE);
                tokio::time::sleep(PACE).await;
            }
        };
        tokio::select! {
            never = busy.of(turns) => match never {},
            never = hangs.of(work) => match never {},
            never = watch(&beats, Some(PACE), || count.set(count.get() + 1)) => match never {},
            () = tokio::time::sleep(Duration::from_secs(3_600 - 1)) => count.get(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_notified_while_all_loops_run() {
        let works = async {
            loop {
                within(Duration::from_secs(1_000));
                tokio::time::sleep(Duration::from_secs(1_000)).await;
            }
        };
        assert_eq!(heard(works).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_loop_ends_the_notifications() {
        let hangs = async {
            within(Duration::from_secs(30));
            std::future::pending().await
        };
        // At 0, 60 and 120 seconds; it had until 150.
        assert_eq!(heard(hangs).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watchdog_nothing_is_sent() {
        let beats = [Heartbeat::new("one")];
        let watching = watch(&beats, None, || panic!("nobody asked"));
        assert!(tokio::time::timeout(Duration::from_secs(3_600), watching).await.is_err());
    }

    #[test]
    fn a_command_outside_of_a_loop_is_ignored() {
        within(PACE);
    }
}
