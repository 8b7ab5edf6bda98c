//! Text of times, durations and amounts.

use jiff::Timestamp;

/// How long ago, in one unit that a tired person can weigh.
#[must_use]
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    match seconds {
        i64::MIN..=-1 => format!("in {}", span(seconds.unsigned_abs())),
        0 => "now".to_owned(),
        1.. => format!("{} ago", span(seconds.unsigned_abs())),
    }
}

/// How long something lasts. What begins in the future has not begun.
#[must_use]
pub fn age(since: Timestamp, now: Timestamp) -> String {
    span(now.duration_since(since).as_secs().max(0).unsigned_abs())
}

/// A length of time in one unit.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A time to the second, in UTC, that a person can paste into a search.
#[must_use]
pub fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The time, and how long ago it was.
#[must_use]
pub fn when(then: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", stamp(then), ago(then, now))
}

/// Bytes in the largest unit that leaves a number above one.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut rest = count;
    let mut tenths = 0;
    let mut unit = "B";
    for name in UNITS {
        unit = name;
        if rest < 1024 {
            break;
        }
        if name != "TiB" {
            tenths = rest % 1024 * 10 / 1024;
            rest /= 1024;
        }
    }
    if unit == "B" { format!("{rest} B") } else { format!("{rest}.{tenths} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let then = |seconds: i64| ago(Timestamp::from_second(now.as_second() - seconds).unwrap(), now);
        let all: Vec<String> = [0, 1, 119, 120, 7_199, 7_200, 172_799, 172_800, -3_600].map(then).to_vec();
        assert_eq!(
            all,
            [
                "now",
                "1 s ago",
                "119 s ago",
                "2 min ago",
                "119 min ago",
                "2 h ago",
                "47 h ago",
                "2 d ago",
                "in 60 min"
            ]
        );
    }

    #[test]
    fn amounts() {
        let all: Vec<String> = [0, 1023, 1024, 1536, 64 << 20, 3 << 40, 5000 << 40].map(bytes).to_vec();
        assert_eq!(all, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "64.0 MiB", "3.0 TiB", "5000.0 TiB"]);
    }
}
