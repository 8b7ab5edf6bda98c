//! Command line arguments of `holdfast alert`.

use clap::{Args as ClapArgs, Subcommand};
use holdfast_protocol::alert::{MatcherText, SilenceNumber};
use holdfast_protocol::condition::{ConditionCode, ConditionText, Severity};
use holdfast_protocol::id::{GuestName, ReceiverName};

use super::ends::{OptionalEnd, RequiredEnd};

/// Of `holdfast alert`.
#[derive(Debug, Subcommand)]
pub enum AlertCommand {
    /// Show the alerts that fire, the worst first.
    #[command(after_help = "\
Examples:
  holdfast alert list --severity critical
  holdfast alert list --host box7 --guest web --all")]
    List(ListArgs),
    /// Show one alert: what to do, who was notified, and its log.
    #[command(after_help = "Example: holdfast alert show box7/12")]
    Show {
        /// The alert, as the list shows it: HOST/NUMBER, or its whole id.
        alert: String,
    },
    /// Acknowledge an alert: it is not repeated and not escalated. Its end is still sent.
    #[command(after_help = "\
Examples:
  holdfast alert ack box7/12
  holdfast alert ack box7/12 --for 2h

Without an end it holds until the alert is over or gets worse.")]
    Ack {
        /// The alert, as the list shows it: HOST/NUMBER, or its whole id.
        alert: String,
        #[command(flatten)]
        end: OptionalEnd,
    },
    /// Take an acknowledgement back.
    Unack {
        /// The alert, as the list shows it: HOST/NUMBER, or its whole id.
        alert: String,
    },
    /// Show what happened to alerts, and what was not sent and why, newest last.
    #[command(after_help = "\
Examples:
  holdfast alert log
  holdfast alert log --alert box7/12")]
    Log(LogArgs),
    /// Explain what would become of a condition: its route, its receivers, and what would mute it. Nothing is sent.
    #[command(after_help = "\
Examples:
  holdfast alert explain DISK_FULL --host box7
  holdfast alert explain BACKUP_LATE --host box7 --guest web
  holdfast alert explain GUEST_CRASHED --severity critical")]
    Explain(ExplainArgs),
    /// Silences: alerts that are muted by their labels for a time.
    #[command(subcommand)]
    Silence(SilenceCommand),
    /// Show the receivers of alerts, what waits for each, and the last delivery.
    Receivers,
    /// Send a test to a receiver, and show what it answered.
    #[command(after_help = "Example: holdfast alert test ops")]
    Test {
        /// The receiver's name in `hub.toml`.
        receiver: ReceiverName,
        /// Stop waiting for its answer after this many seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
        timeout: u64,
    },
    /// Show what became of notices, newest last.
    Deliveries {
        /// Show at most this many, the newest.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
}

/// Of `holdfast alert list`.
#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    /// Show also those in their grace, and those that were over within the hour.
    #[arg(long)]
    pub all: bool,
    /// Show only alerts of this host, by name or id; `hub` for the hub itself.
    #[arg(long)]
    pub host: Option<String>,
    /// Show only alerts about a guest of this name.
    #[arg(long)]
    pub guest: Option<GuestName>,
    /// Show only this condition, such as DISK_FULL.
    #[arg(long)]
    pub code: Option<ConditionCode>,
    /// Show only alerts as urgent as this, or more: info, warning or critical.
    #[arg(long)]
    pub severity: Option<Severity>,
}

/// Of `holdfast alert log`.
#[derive(Debug, ClapArgs)]
pub struct LogArgs {
    /// Show only entries of this host, by name or id.
    #[arg(long, conflicts_with = "alert")]
    pub host: Option<String>,
    /// Show only entries of this alert: HOST/NUMBER, or its whole id.
    #[arg(long)]
    pub alert: Option<String>,
    /// Show at most this many, the newest.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// Of `holdfast alert explain`.
#[derive(Debug, ClapArgs)]
pub struct ExplainArgs {
    /// The condition, such as DISK_FULL.
    pub code: ConditionCode,
    /// On this host, by name or id; by default on a host of which nothing is known.
    #[arg(long)]
    pub host: Option<String>,
    /// With this guest of the host.
    #[arg(long, requires = "host")]
    pub guest: Option<GuestName>,
    /// With this severity: info, warning or critical. By default the usual one of the condition.
    #[arg(long)]
    pub severity: Option<Severity>,
}

/// Of `holdfast alert silence`.
#[derive(Debug, Subcommand)]
pub enum SilenceCommand {
    /// Mute alerts by their labels for a time.
    #[command(after_help = "\
Examples:
  holdfast alert silence add host=box7 code=DISK_WORN --for 3d --comment \"the new disk is ordered\"
  holdfast alert silence add customer=acme severity!=critical --for 2h --comment \"they migrate\"

All matchers must match. The labels: code, severity, cause, kind, subject, host, guest, customer, policy.")]
    Add {
        /// Comparisons of labels: label=value or label!=value.
        #[arg(required = true, value_name = "MATCHER", value_parser = matcher)]
        matchers: Vec<MatcherText>,
        #[command(flatten)]
        end: RequiredEnd,
        /// The reason, for the other operators.
        #[arg(long, value_name = "TEXT", value_parser = comment)]
        comment: ConditionText,
    },
    /// Show the silences that are in force.
    List,
    /// End a silence now.
    End {
        /// Its number.
        silence: SilenceNumber,
    },
}

fn matcher(text: &str) -> Result<MatcherText, &'static str> {
    MatcherText::try_from(text.to_owned())
}

pub(super) fn comment(text: &str) -> Result<ConditionText, &'static str> {
    ConditionText::try_from(text.to_owned())
        .map_err(|_| "a comment is 1 to 400 characters without control characters")
}
