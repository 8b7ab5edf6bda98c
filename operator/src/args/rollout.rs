//! Arguments of `holdfast rollout`.

use std::num::NonZeroU32;
use std::str::FromStr;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use holdfast_protocol::host_label::{LabelError, LabelSelector};
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{OnFailure, RolloutSubject, WaveHosts, WaveRequest};
use holdfast_protocol::release::window::{BlackoutDates, UpdateWindow};

use super::AssumeYes;

/// Of `holdfast rollout`.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Plan a rollout and show its waves with their hosts. Nothing is offered before it is started.
    Plan(PlanArgs),
    /// Start a rollout that is planned: the first wave is offered the release.
    Start {
        /// Its number.
        number: u32,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
    /// Follow a rollout until it is finished, held, paused or aborted.
    Watch {
        /// Its number.
        number: u32,
    },
    /// Pause a rollout: nothing is offered.
    Pause {
        /// Its number.
        number: u32,
        /// Hosts that have the release on trial end that now: the build before is put back. A rollout that is paused already
        /// can be taken back as well.
        #[arg(long)]
        take_back: bool,
    },
    /// Go on with a rollout that is paused or held. Of one that is held, the failures so far are accepted.
    Resume {
        /// Its number.
        number: u32,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
    /// End a rollout. Hosts that confirmed the release keep it, and trials of it end; the way back is a newer release.
    Abort {
        /// Its number.
        number: u32,
        #[command(flatten)]
        assume_yes: AssumeYes,
    },
    /// Show the rollouts, the newest first.
    List,
    /// Show one rollout: its waves, and where each host is and why.
    Show {
        /// Its number.
        number: u32,
    },
}

/// Of `holdfast rollout plan`.
#[derive(Debug, ClapArgs)]
pub struct PlanArgs {
    /// The version of a release at the hub.
    pub version: VersionNumber,
    /// What the rollout brings: the agent of the hosts; the guest agent in their guests, which the hub then asks for in the
    /// documents of the hosts; or a golden image, which no guest is touched for.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = SubjectArg::Agent)]
    pub subject: SubjectArg,
    /// A wave: `hosts=box1+box2`, `label=tier=canary+site=vienna`, `count=10` or `rest`, then
    /// `failures=N,soak=TIME,timeout=TIME`, with times such as 30m or 2h; repeat for each, in order.
    #[arg(long = "wave", value_name = "WAVE", required = true)]
    pub waves: Vec<WaveText>,
    /// Offer the release only in this weekly window, such as `mon-fri 20:00-04:00 Europe/Vienna`; may be repeated.
    #[arg(long = "window", value_name = "WINDOW")]
    pub windows: Vec<UpdateWindow>,
    /// Offer nothing on these dates, such as `2026-12-24..2027-01-02 Europe/Vienna`; may be repeated.
    #[arg(long = "not", value_name = "DATES")]
    pub not: Vec<BlackoutDates>,
    /// Newly offer the release to at most so many hosts in an hour.
    #[arg(long, value_name = "HOSTS")]
    pub per_hour: Option<NonZeroU32>,
    /// What happens when more hosts fail than may: `hold`, or `roll-back=VERSION`, a release of the older programs with a
    /// higher number.
    #[arg(long, value_name = "WHAT", default_value = "hold", value_parser = on_failure)]
    pub on_failure: OnFailure,
}

/// What a rollout brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SubjectArg {
    /// The agent of the hosts.
    Agent,
    /// The guest agent in their guests.
    GuestAgent,
    /// A golden image for the hosts' folders of images.
    Golden,
}

impl From<SubjectArg> for RolloutSubject {
    fn from(subject: SubjectArg) -> Self {
        match subject {
            SubjectArg::Agent => Self::Agent,
            SubjectArg::GuestAgent => Self::GuestAgent,
            SubjectArg::Golden => Self::Golden,
        }
    }
}

fn on_failure(text: &str) -> Result<OnFailure, String> {
    let wrong = || "write hold, or roll-back=2026.12.1".to_owned();
    match text.split_once('=') {
        None if text == "hold" => Ok(OnFailure::Hold),
        Some(("roll-back", version)) => version.parse().map(OnFailure::RollBack).map_err(|_| wrong()),
        Some(_) | None => Err(wrong()),
    }
}

/// A wave, as it is typed.
#[derive(Clone, Debug)]
pub struct WaveText(pub WaveRequest);

const FORM: &str = "write a wave as hosts=box1+box2,failures=0,soak=30m,timeout=2h, with label=tier=canary, count=10 or rest for the first part";

impl FromStr for WaveText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut hosts, mut max_failures, mut soak_s, mut timeout_s) = (None, None, None, None);
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let number = || value.parse::<u32>().map_err(|_| FORM.to_owned());
            let is_new = match name {
                "hosts" => hosts.replace(WaveHosts::Named(names(value)?)).is_none(),
                "label" => {
                    let selector: LabelSelector =
                        value.parse().map_err(|error: LabelError| error.to_string())?;
                    hosts.replace(WaveHosts::Labelled(selector)).is_none()
                }
                "count" => hosts.replace(WaveHosts::Count(number()?)).is_none(),
                "rest" if value.is_empty() => hosts.replace(WaveHosts::Rest).is_none(),
                "failures" => max_failures.replace(number()?).is_none(),
                "soak" => soak_s.replace(seconds(value)?).is_none(),
                "timeout" => timeout_s.replace(seconds(value)?).is_none(),
                _ => false,
            };
            if !is_new {
                return Err(FORM.to_owned());
            }
        }
        match (hosts, max_failures, soak_s, timeout_s) {
            (Some(hosts), Some(max_failures), Some(soak_s), Some(timeout_s)) => {
                Ok(Self(WaveRequest { hosts, max_failures, soak_s, timeout_s }))
            }
            _ => Err(FORM.to_owned()),
        }
    }
}

fn names(text: &str) -> Result<Vec<holdfast_protocol::id::HostName>, String> {
    text.split('+').map(|name| name.parse().map_err(|_| format!("{name:.64} is no name of a host"))).collect()
}

fn seconds(text: &str) -> Result<u32, String> {
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(*unit)?, *factor)));
    let (number, factor) = found.ok_or_else(|| FORM.to_owned())?;
    let number: u32 = number.parse().map_err(|_| FORM.to_owned())?;
    number.checked_mul(factor).ok_or_else(|| FORM.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_is_typed_with_all_its_bounds() {
        let read = |text: &str| text.parse::<WaveText>().map(|wave| wave.0);
        let wave = read("hosts=box1+box2,failures=0,soak=30m,timeout=2h").unwrap();
        let hosts = WaveHosts::Named(vec!["box1".parse().unwrap(), "box2".parse().unwrap()]);
        assert_eq!(wave, WaveRequest { hosts, max_failures: 0, soak_s: 1_800, timeout_s: 7_200 });
        assert_eq!(read("timeout=1d,count=5,failures=1,soak=0s").unwrap().hosts, WaveHosts::Count(5));
        assert_eq!(read("rest,failures=1,soak=0s,timeout=90s").unwrap().timeout_s, 90);
        let labelled = read("label=tier=canary+site=vienna,failures=0,soak=0s,timeout=1h").unwrap().hosts;
        assert_eq!(labelled, WaveHosts::Labelled("site=vienna+tier=canary".parse().unwrap()));
        for wrong in [
            "label=tier,failures=0,soak=0s,timeout=1h",
            "label=tier=a,hosts=box1,failures=0,soak=0s,timeout=1h",
            "",
            "rest",
            "rest,failures=1,soak=0s",
            "rest,count=1,failures=1,soak=0s,timeout=1s",
            "rest=1,failures=1,soak=0s,timeout=1s",
            "rest,failures=1,soak=5,timeout=1s",
            "rest,failures=-1,soak=5s,timeout=1s",
            "rest,failures=1,soak=99999d,timeout=1s",
            "hosts=,failures=1,soak=5s,timeout=1s",
            "rest,failures=1,soak=5s,timeout=1s,more=1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
