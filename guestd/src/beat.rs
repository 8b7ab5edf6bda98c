//! Progress of the controller's loops, for systemd's watchdog.
//!
//! In: each loop says, before it waits for something outside, how long that may take. Out: `WATCHDOG=1` at the pace that
//! systemd asks for, as long as no loop is late. A loop that waits for ever is late soon; then nothing is sent, and systemd
//! kills this program and starts it again. A program that is stopped as a whole sends nothing by itself. Deliberately absent: a
//! thread of its own, which would go on while everything else stands.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{error, warn};

/// On top of what was said: reading, deciding and writing small files between two waits, on a slow disk.
const MARGIN: Duration = Duration::from_secs(120);

tokio::task_local! {
    static BEAT: Beat;
}

/// One loop, and until when it must say something again.
#[derive(Clone, Debug)]
pub struct Beat {
    name: &'static str,
    due: Rc<Cell<Instant>>,
}

impl Beat {
    pub fn new(name: &'static str) -> Self {
        Self { name, due: Rc::new(Cell::new(Instant::now() + MARGIN)) }
    }

    /// Runs a loop, whose [`within`] counts for this beat.
    pub async fn of<T>(&self, work: impl Future<Output = T>) -> T {
        BEAT.scope(self.clone(), work).await
    }
}

/// The loop that calls goes on now, and does so again within this time. Elsewhere, in a person's command, it says nothing.
pub fn within(limit: Duration) {
    let _ = BEAT.try_with(|beat| beat.due.set(Instant::now() + limit + MARGIN));
}

/// The first loop that is late.
fn late(beats: &[Beat]) -> Option<&'static str> {
    let now = Instant::now();
    beats.iter().find(|beat| beat.due.get() < now).map(|beat| beat.name)
}

/// How often systemd wants to hear, where it watches.
pub fn pace() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|bound| bound / 3)
}

/// Says to systemd that this program works.
pub fn tell_systemd() {
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]) {
        warn!(%error, "systemd does not hear that guestd works");
    }
}

/// Says so at this pace, as long as no loop is late.
pub async fn watch(beats: &[Beat], pace: Option<Duration>, mut tell: impl FnMut()) -> Infallible {
    let Some(pace) = pace else { return std::future::pending().await };
    let mut told = None;
    loop {
        let hangs = late(beats);
        match hangs {
            None => tell(),
            Some(name) if told != hangs => {
                error!("the loop `{name}` hangs: systemd is told no more that guestd works, and restarts it");
            }
            Some(_) => {}
        }
        told = hangs;
        tokio::time::sleep(pace).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Duration = Duration::from_secs(60);

    /// How often systemd heard within an hour.
    async fn heard(work: impl Future<Output = Infallible>) -> u32 {
        let (busy, hangs) = (Beat::new("busy"), Beat::new("one"));
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
    async fn systemd_hears_as_long_as_each_loop_goes_on() {
        let works = async {
            loop {
                within(Duration::from_secs(1_000));
                tokio::time::sleep(Duration::from_secs(1_000)).await;
            }
        };
        assert_eq!(heard(works).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_hangs_ends_the_telling_although_the_others_go_on() {
        let hangs = async {
            within(Duration::from_secs(30));
            std::future::pending().await
        };
        // At 0, 60 and 120 seconds; it had until 150.
        assert_eq!(heard(hangs).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watchdog_nobody_is_told() {
        let beats = [Beat::new("one")];
        let watching = watch(&beats, None, || panic!("nobody asked"));
        assert!(tokio::time::timeout(Duration::from_secs(3_600), watching).await.is_err());
    }

    #[test]
    fn a_persons_command_may_say_so_too() {
        within(PACE);
    }
}
