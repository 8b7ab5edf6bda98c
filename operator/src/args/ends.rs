//! Ends of mutes: after a length of time, or at a time.

use std::str::FromStr;

use clap::Args as ClapArgs;
use jiff::{SignedDuration, Timestamp};

/// A length of time, written `90s`, `30m`, `2h` or `3d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting(SignedDuration);

/// Longer than any mute, in seconds.
const SECONDS_MAX: i64 = 366 * 86_400;

impl FromStr for Lasting {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "a length of time is a number with s, m, h or d, such as 30m, 2h or 3d";
        let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or(FORM)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(FORM),
        };
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let number: i64 = number.parse().ok().filter(|_| digits).ok_or(FORM)?;
        let total = number.checked_mul(seconds).filter(|total| (1..=SECONDS_MAX).contains(total));
        total.map(|total| Self(SignedDuration::from_secs(total))).ok_or("1 second to 366 days are possible")
    }
}

impl Lasting {
    fn from(self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.0).unwrap_or(Timestamp::MAX)
    }
}

/// An end that must be given.
#[derive(Clone, Copy, Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub struct RequiredEnd {
    /// How long it lasts, such as 30m, 2h or 3d.
    #[arg(long = "for", value_name = "TIME")]
    lasting: Option<Lasting>,
    /// When it ends, such as 2026-11-21T06:00:00Z.
    #[arg(long, value_name = "WHEN")]
    until: Option<Timestamp>,
}

impl RequiredEnd {
    /// When it ends. Of the two exactly one was given.
    pub fn at(self, now: Timestamp) -> Timestamp {
        self.until.or_else(|| self.lasting.map(|lasting| lasting.from(now))).unwrap_or(now)
    }
}

/// An end that may be left out.
#[derive(Clone, Copy, Debug, ClapArgs)]
#[group(multiple = false)]
pub struct OptionalEnd {
    /// How long it lasts, such as 30m, 2h or 3d.
    #[arg(long = "for", value_name = "TIME")]
    lasting: Option<Lasting>,
    /// When it ends, such as 2026-11-21T06:00:00Z.
    #[arg(long, value_name = "WHEN")]
    until: Option<Timestamp>,
}

impl OptionalEnd {
    /// When it ends, where it does.
    pub fn at(self, now: Timestamp) -> Option<Timestamp> {
        self.until.or_else(|| self.lasting.map(|lasting| lasting.from(now)))
    }
}

/// An end, or that it ends now.
#[derive(Clone, Copy, Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub struct EndOrNow {
    /// How long it lasts, such as 30m, 2h or 3d.
    #[arg(long = "for", value_name = "TIME")]
    lasting: Option<Lasting>,
    /// When it ends, such as 2026-11-21T06:00:00Z.
    #[arg(long, value_name = "WHEN")]
    until: Option<Timestamp>,
    /// End it now.
    #[arg(long)]
    end: bool,
}

impl EndOrNow {
    /// When it ends; none for now.
    pub fn at(self, now: Timestamp) -> Option<Timestamp> {
        if self.end {
            return None;
        }
        self.until.or_else(|| self.lasting.map(|lasting| lasting.from(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_number_with_a_unit() {
        let seconds = |text: &str| text.parse::<Lasting>().map(|lasting| lasting.0.as_secs());
        let good = [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("3d", 259_200), ("366d", SECONDS_MAX)];
        for (text, wanted) in good {
            assert_eq!(seconds(text), Ok(wanted), "{text}");
        }
        for bad in
            ["", "2", "h", "2 h", "-2h", "+2h", "0s", "367d", "1.5h", "2w", "2ä", "9999999999999999999d"]
        {
            assert!(seconds(bad).is_err(), "{bad:?}");
        }
    }
}
