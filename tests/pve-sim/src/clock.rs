//! Time and numbers, injected so that a harness can run virtual time.
//!
//! In: nothing. Out: the time of day, pauses, process numbers and randomness. Everything else in this crate takes a [`Clock`].
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// What a task does from its first line of log to its last.
pub type TaskWork = Box<dyn FnOnce() + Send>;

/// Where time, pauses and fresh values come from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;
    /// Lets time pass for a worker.
    fn pause(&self, length: Duration);
    /// A number never given before, for process ids.
    fn next_number(&self) -> u64;
    fn random(&self, bytes: &mut [u8]);

    /// Runs a task's work in parallel to everything else. The work pauses with [`Clock::pause`] and reads the time from
    /// this clock. By default it gets a thread of its own; a harness schedules it instead.
    ///
    /// # Errors
    /// When no thread can be started.
    fn run_task(&self, name: &str, work: TaskWork) -> std::io::Result<()> {
        let kind = name.split(':').nth(5).unwrap_or_default();
        std::thread::Builder::new().name(format!("task-{kind}")).spawn(work).map(drop)
    }

    /// Whole seconds since 1970.
    fn now_s(&self) -> i64 {
        self.now_ms() / 1000
    }
}

/// The system's clock.
#[derive(Debug)]
pub struct SystemClock {
    next: AtomicU64,
}

impl SystemClock {
    /// `first` is the first process number; it must differ from those of earlier runs on the same state.
    #[must_use]
    pub const fn starting_at(first: u64) -> Self {
        Self { next: AtomicU64::new(first) }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock port of the simulator")]
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn pause(&self, length: Duration) {
        std::thread::sleep(length);
    }

    fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn random(&self, bytes: &mut [u8]) {
        if getrandom::fill(bytes).is_err() {
            // Without entropy ids still differ, which is all that the simulator needs of them.
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte = self.next_number().to_le_bytes().get(index % 8).copied().unwrap_or_default();
            }
        }
    }
}

/// A clock whose time of day can be set wrong, as an administrator or a dead battery does. Pauses last what they last.
#[derive(Debug)]
pub struct Settable {
    inner: Arc<dyn Clock>,
    ahead_ms: AtomicI64,
}

impl Settable {
    /// Right to begin with.
    #[must_use]
    pub const fn new(inner: Arc<dyn Clock>) -> Self {
        Self { inner, ahead_ms: AtomicI64::new(0) }
    }

    /// Seconds that pass evenly, independent of the set time of day. Uptimes are counted in them.
    #[must_use]
    pub fn even_s(&self) -> i64 {
        self.inner.now_ms() / 1000
    }

    /// Sets it so many seconds ahead of the right time; behind it, when negative.
    pub fn set_ahead_s(&self, seconds: i64) {
        self.ahead_ms.store(seconds.saturating_mul(1000), Ordering::SeqCst);
    }
}

impl Clock for Settable {
    fn now_ms(&self) -> i64 {
        self.inner.now_ms().saturating_add(self.ahead_ms.load(Ordering::SeqCst))
    }

    fn pause(&self, length: Duration) {
        self.inner.pause(length);
    }

    fn next_number(&self) -> u64 {
        self.inner.next_number()
    }

    fn random(&self, bytes: &mut [u8]) {
        self.inner.random(bytes);
    }

    fn run_task(&self, name: &str, work: TaskWork) -> std::io::Result<()> {
        self.inner.run_task(name, work)
    }
}

/// `2026-11-21 04:00:56`, in UTC.
#[must_use]
pub fn stamp(seconds: i64) -> String {
    let (y, mo, d, h, mi, s) = civil(seconds);
    format!("{y:04}-{mo:02}-{d:02} {h:02}:{mi:02}:{s:02}")
}

/// `2026_11_21-04_00_56`, as in the name of an archive.
#[must_use]
pub fn archive_stamp(seconds: i64) -> String {
    let (y, mo, d, h, mi, s) = civil(seconds);
    format!("{y:04}_{mo:02}_{d:02}-{h:02}_{mi:02}_{s:02}")
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Sat Nov 21 04:36:17 2026`, in UTC.
#[must_use]
pub fn wordy(seconds: i64) -> String {
    let (y, mo, d, h, mi, s) = civil(seconds);
    let nth = |list: &[&'static str], at: i64| {
        usize::try_from(at).ok().and_then(|at| list.get(at).copied()).unwrap_or_default()
    };
    let day = nth(&DAYS, seconds.div_euclid(86_400).rem_euclid(7));
    let month = nth(&MONTHS, mo - 1);
    format!("{day} {month} {d:2} {h:02}:{mi:02}:{s:02} {y}")
}

/// The reverse of [`wordy`].
#[must_use]
pub fn parse_wordy(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace().skip(1);
    let (month, day, time, year) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|held| *held == month)? + 1;
    let stamp = format!("{year}_{month:02}_{day:0>2}-{}", time.replace(':', "_"));
    parse_archive_stamp(&stamp).filter(|seconds| wordy(*seconds) == text)
}

/// The reverse of [`archive_stamp`].
#[must_use]
pub fn parse_archive_stamp(text: &str) -> Option<i64> {
    let numbers: Vec<i64> = text.split(['_', '-']).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [y, mo, d, h, mi, s] = numbers[..] else { return None };
    // Days since 1970 by the civil calendar.
    let (year, month) = if mo <= 2 { (y - 1, mo + 9) } else { (y, mo - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + d - 1 - 719_468;
    ((1970..=9999).contains(&y) && (1..=12).contains(&mo)).then_some(days * 86_400 + h * 3600 + mi * 60 + s)
}

/// Year, month, day, hour, minute, second in UTC.
fn civil(seconds: i64) -> (i64, i64, i64, i64, i64, i64) {
    let (days, rest) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (mo, d) = (if month < 10 { month + 3 } else { month - 9 }, of_year - (153 * month + 2) / 5 + 1);
    (year + era * 400 + i64::from(mo <= 2), mo, d, rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_go_there_and_back() {
        assert_eq!(stamp(1_795_233_656), "2026-11-21 04:00:56");
        for seconds in [0, 951_782_399, 951_782_400, 1_709_164_800, 1_795_233_656, 4_102_444_799] {
            assert_eq!(parse_archive_stamp(&archive_stamp(seconds)), Some(seconds), "{seconds}");
        }
        assert_eq!(parse_archive_stamp("2026_11_21"), None);
        for text in ["Sat Nov 21 04:36:17 2026", "Thu Jan  1 00:00:00 1970", "Tue Feb 29 23:59:59 2000"] {
            assert_eq!(parse_wordy(text).map(wordy).as_deref(), Some(text));
        }
        assert_eq!(parse_wordy("Sun Nov 21 04:36:17 2026"), None);
    }
}
