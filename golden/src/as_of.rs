//! Times as of which Debian's archives are used.
//!
//! In: a word of the command line. Out: a moment, or none for whatever the archives have now. Builders that are to agree
//! name the same moment; the month gives one that they need not agree on first.

use std::str::FromStr;

use anyhow::{Context, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// As of when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// What the archives have at the build.
    Now,
    /// The first second of the month, in UTC.
    Month,
    At(Timestamp),
}

impl AsOf {
    /// The moment, for a build at that second since 1970.
    ///
    /// # Errors
    /// When the clock gives no time that a calendar has.
    pub fn moment(self, now_s: u64) -> Result<Option<Timestamp>> {
        match self {
            Self::Now => Ok(None),
            Self::At(at) => Ok(Some(at)),
            Self::Month => {
                let now = Timestamp::from_second(i64::try_from(now_s)?).context("the clock is wrong")?;
                let first = now.to_zoned(TimeZone::UTC).first_of_month()?.start_of_day()?;
                Ok(Some(first.timestamp()))
            }
        }
    }
}

impl FromStr for AsOf {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "now" => Ok(Self::Now),
            "month" => Ok(Self::Month),
            other => other
                .parse()
                .map(Self::At)
                .map_err(|_| "write now, month, or a time such as 2026-11-01T00:00:00Z"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_one_month_are_as_of_its_first_second() {
        let month: AsOf = "month".parse().unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for now in ["2026-11-01T00:00:00Z", "2026-11-27T18:00:00Z", "2026-11-30T23:59:59Z"] {
            let now_s = at(now).as_second().unsigned_abs();
            assert_eq!(month.moment(now_s).unwrap(), Some(at("2026-11-01T00:00:00Z")), "{now}");
        }
        assert_eq!("now".parse::<AsOf>().unwrap().moment(1).unwrap(), None);
        let named: AsOf = "2026-11-05T12:00:00Z".parse().unwrap();
        assert_eq!(named.moment(1).unwrap(), Some(at("2026-11-05T12:00:00Z")));
        assert!("yesterday".parse::<AsOf>().is_err());
    }
}
