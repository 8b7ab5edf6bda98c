//! Arguments of `holdfast state` and `holdfast export`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args as ClapArgs, Subcommand};
use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::CustomerId;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Of `holdfast state`.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Take the state of all hosts now, as a document of lines with two digests.
    #[command(after_help = "\
The document goes to standard output, or with --out to a file. The digest of the content is the same for two documents \
between which nothing changed but times; the digest of the document covers every byte.
Examples:
  holdfast state snapshot --out before.jsonl
  holdfast state snapshot --customer acme > acme.jsonl")]
    Snapshot {
        /// Only the guests of this customer, and of hosts only what concerns them.
        #[arg(long, value_name = "CUSTOMER")]
        customer: Option<CustomerId>,
        /// Only these guests: see `holdfast guest list --help`.
        #[arg(long, value_name = "FILTER", allow_hyphen_values = true)]
        filter: Option<GuestFilter>,
        /// Write it to this file, which must not exist.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show the snapshots that the hub keeps, newest first: 14 days, 8 weeks and 12 months.
    List,
    /// Show one snapshot: each host, its guests, and what is wrong.
    Show {
        /// Its number, its day such as 2026-11-27, `latest`, `now`, or a file.
        snapshot: StateRef,
        /// Only the guests of this customer.
        #[arg(long, value_name = "CUSTOMER")]
        customer: Option<CustomerId>,
        /// Write the document to this file, which must not exist.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show what changed between two snapshots, by host and guest, the worst first.
    #[command(after_help = "\
Examples:
  holdfast state compare latest
  holdfast state compare 2026-11-20 2026-11-27 --customer acme
  holdfast state compare before.jsonl after.jsonl --output json")]
    Compare {
        /// The earlier one: its number, its day, `latest`, or a file.
        before: StateRef,
        /// The later one.
        #[arg(default_value = "now")]
        after: StateRef,
        /// Only the guests of this customer.
        #[arg(long, value_name = "CUSTOMER")]
        customer: Option<CustomerId>,
    },
}

/// A snapshot, as an operator names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateRef {
    /// What is so now.
    Now,
    /// The newest one that the hub keeps.
    Latest,
    /// One that the hub keeps.
    Number(u64),
    /// The one of this day.
    Day(Date),
    /// A file.
    File(PathBuf),
}

impl FromStr for StateRef {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "now" => Self::Now,
            "latest" => Self::Latest,
            other => other
                .parse()
                .map(Self::Number)
                .or_else(|_| other.parse().map(Self::Day))
                .unwrap_or_else(|_| Self::File(PathBuf::from(other))),
        })
    }
}

impl std::fmt::Display for StateRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now => f.write_str("now"),
            Self::Latest => f.write_str("latest"),
            Self::Number(number) => number.fmt(f),
            Self::Day(day) => day.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Of `holdfast export`.
#[derive(Debug, ClapArgs)]
#[command(
    group(ArgGroup::new("purpose").required(true).args(["for_analysis"])),
    after_help = "\
Secrets are not in it: no credential, token, key or wrapped key. It names hosts, guests and customers.
Examples:
  holdfast export --for-analysis --from 2026-11-20 --out week.tar.zst
  holdfast export --for-analysis --from 6h --customer acme --out acme"
)]
pub struct ExportArgs {
    /// State at both ends, documents, events, alerts, operations, certificates and use, for a person or a model to read.
    #[arg(long)]
    pub for_analysis: bool,
    /// From when on: a time, a day in UTC, or how long ago, such as 6h or 7d.
    #[arg(long, value_name = "TIME")]
    pub from: ExportTime,
    /// Until when; until now where it is left out.
    #[arg(long, value_name = "TIME", default_value = "0h")]
    pub to: ExportTime,
    /// Only what concerns the guests of this customer.
    #[arg(long, value_name = "CUSTOMER", conflicts_with = "filter")]
    pub customer: Option<CustomerId>,
    /// Only what concerns these guests: see `holdfast guest list --help`.
    #[arg(long, value_name = "FILTER", allow_hyphen_values = true)]
    pub filter: Option<GuestFilter>,
    /// A new folder, or a file that ends in .tar.zst.
    #[arg(long, value_name = "PATH")]
    pub out: PathBuf,
    /// How many MiB each file in it may have; what is more is left out and counted.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=16_384))]
    pub file_mib_max: u64,
}

/// One end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportTime {
    At(Timestamp),
    Ago(SignedDuration),
}

impl ExportTime {
    /// The time itself.
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.checked_sub(ago).unwrap_or(Timestamp::MIN),
        }
    }
}

impl FromStr for ExportTime {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(Self::At(at));
        }
        let utc = |at: DateTime| TimeZone::UTC.to_timestamp(at).ok().map(Self::At);
        let day = text.parse::<Date>().ok().filter(|_| text.len() == 10);
        if let Some(at) = day.and_then(|day| utc(day.to_datetime(jiff::civil::Time::midnight()))) {
            return Ok(at);
        }
        let hours = |digits: &str, each: i64| digits.parse::<u16>().ok().map(|count| i64::from(count) * each);
        let ago = match (text.strip_suffix('h'), text.strip_suffix('d')) {
            (Some(digits), _) => hours(digits, 1),
            (None, Some(digits)) => hours(digits, 24),
            (None, None) => None,
        };
        ago.map(|hours| Self::Ago(SignedDuration::from_hours(hours))).ok_or_else(|| {
            "a time is such as 2026-11-27T18:00:00Z, a day such as 2026-11-27, or 6h or 7d ago".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_named_by_number_day_word_or_file() {
        let read = |text: &str| text.parse::<StateRef>().unwrap();
        assert_eq!(read("now"), StateRef::Now);
        assert_eq!(read("7"), StateRef::Number(7));
        assert_eq!(read("2026-11-27"), StateRef::Day("2026-11-27".parse().unwrap()));
        assert_eq!(read("a.jsonl"), StateRef::File("a.jsonl".into()));
    }

    #[test]
    fn times_are_absolute_or_ago() {
        let now: Timestamp = "2026-11-27T18:00:00Z".parse().unwrap();
        let at = |text: &str| text.parse::<ExportTime>().unwrap().at(now).to_string();
        assert_eq!(at("2026-11-20"), "2026-11-20T00:00:00Z");
        assert_eq!(at("2026-11-20T01:02:03Z"), "2026-11-20T01:02:03Z");
        assert_eq!(
            (at("6h"), at("2d"), at("0h")),
            (
                "2026-11-27T12:00:00Z".to_owned(),
                "2026-11-25T18:00:00Z".to_owned(),
                "2026-11-27T18:00:00Z".to_owned()
            )
        );
        for odd in ["", "h", "yesterday", "-1h", "99999999h"] {
            assert!(odd.parse::<ExportTime>().is_err(), "{odd}");
        }
    }
}
