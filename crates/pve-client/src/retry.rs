//! When a request is sent again, and how long to wait before.
//!
//! Reads are repeated a few times with growing, jittered pauses. Writes are repeated only when there was no connection,
//! so that nothing can happen twice. Time and chance come in as [`Pace`]. Deliberately absent: waiting for locks, which
//! takes minutes and belongs to the engine.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::error::{PveError, RetryClass, Sent};
use super::params::Verb;

/// A pause as a future.
pub type Pause<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Time that passes, and chance: given by the caller so that tests need no patience.
pub trait Pace: Send + Sync {
    /// Monotonic time since some fixed moment.
    fn now(&self) -> Duration;
    fn sleep(&self, pause: Duration) -> Pause<'_>;
    /// A number from 0 to 99.
    fn chance_percent(&self) -> u32;
}

#[derive(Debug)]
pub struct RealPace {
    began: tokio::time::Instant,
}

impl Default for RealPace {
    fn default() -> Self {
        Self { began: tokio::time::Instant::now() }
    }
}

impl Pace for RealPace {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn chance_percent(&self) -> u32 {
        let mut byte = [0_u8; 1];
        // Without randomness the pauses are even, which costs nothing but a little crowding.
        match getrandom::fill(&mut byte) {
            Ok(()) => u32::from(u8::from_ne_bytes(byte)) * 100 / 256,
            Err(_) => 50,
        }
    }
}

/// So often is one request sent at most.
const TRIES_MAX: u32 = 4;
/// 0.2 s, 0.8 s, 3.2 s, each ± half.
const PAUSE_FIRST: Duration = Duration::from_millis(200);

/// Proxmox's proxy takes 30 s to give up on a dead part of itself: one such answer is enough for one request.
const TOTAL_MAX: Duration = Duration::from_secs(20);

/// How often, and for how long by now, one request was tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryState {
    pub times: u32,
    pub since_first: Duration,
}

/// The pause before the next try, or none when this error is final.
pub(super) fn pause_before_next(
    verb: Verb,
    error: &PveError,
    tried: RetryState,
    chance_percent: u32,
) -> Option<Duration> {
    let again = match verb {
        Verb::Get => match error {
            PveError::Unreachable { .. } | PveError::GatewayTimeout { .. } => true,
            // Our own limit is longer than Proxmox's: a second wait of that length does not help.
            PveError::TimedOut { .. } => false,
            other => other.retry_class() == RetryClass::Again,
        },
        Verb::Post | Verb::Put | Verb::Delete => {
            matches!(error, PveError::Unreachable { sent: Sent::No, .. })
        }
    };
    let more = tried.times < TRIES_MAX && tried.since_first < TOTAL_MAX;
    let pause = PAUSE_FIRST * 4_u32.pow(tried.times.saturating_sub(1));
    (again && more).then(|| pause * (50 + chance_percent) / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Cause;

    fn tried(times: u32) -> RetryState {
        RetryState { times, since_first: Duration::ZERO }
    }

    fn lost(sent: Sent) -> PveError {
        PveError::Unreachable { call: "x", sent, source: Cause::new(std::io::Error::other("reset")) }
    }

    #[test]
    fn a_write_is_sent_again_only_when_it_was_never_sent() {
        for verb in [Verb::Post, Verb::Put, Verb::Delete] {
            assert!(pause_before_next(verb, &lost(Sent::No), tried(1), 50).is_some());
            for error in [
                lost(Sent::Perhaps),
                PveError::GatewayTimeout { status: 596, reason: String::new() },
                PveError::TimedOut { call: "x", limit_s: 1 },
                PveError::NotReady { reason: String::new() },
                PveError::LockTimeout { text: String::new() },
            ] {
                assert_eq!(pause_before_next(verb, &error, tried(1), 50), None, "{error}");
            }
        }
    }

    #[test]
    fn reads_are_repeated_with_growing_pauses_and_then_given_up() {
        let pauses: Vec<_> = (1..=4)
            .map(|tries| pause_before_next(Verb::Get, &lost(Sent::Perhaps), tried(tries), 50))
            .collect();
        let ms = |n| Some(Duration::from_millis(n));
        assert_eq!(pauses, [ms(200), ms(800), ms(3200), None]);
        let (low, high) = (
            pause_before_next(Verb::Get, &lost(Sent::No), tried(1), 0),
            pause_before_next(Verb::Get, &lost(Sent::No), tried(1), 99),
        );
        assert!(low == ms(100) && high < ms(300) && high > ms(290));
        assert_eq!(
            pause_before_next(
                Verb::Get,
                &PveError::Unauthorised { role: crate::Role::Observe },
                tried(1),
                50
            ),
            None
        );
    }

    #[test]
    fn a_dead_part_of_proxmox_is_asked_once() {
        let slow = RetryState { times: 1, since_first: Duration::from_secs(30) };
        assert_eq!(pause_before_next(Verb::Get, &lost(Sent::Perhaps), slow, 50), None);
    }
}
