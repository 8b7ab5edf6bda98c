//! The waves of a rollout, with their hosts.
//!
//! In: what an operator asks for, and the hosts that the hub serves, with their labels, in the order of names. Out: each
//! wave with its hosts. They stay as they are, whatever labels the hosts get later.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::host_label::HostLabels;
use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::release::rollout::{
    ROLLOUT_HOSTS_MAX, WAVE_SECONDS_MAX, WAVES_MAX, WaveHosts, WaveRequest,
};
use jiff::SignedDuration;

use super::WaveLimits;

/// A wave with its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWave {
    pub limits: WaveLimits,
    /// At least one.
    pub hosts: Vec<HostId>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("a rollout has 1 to {WAVES_MAX} waves, and this one {0}; nothing was planned")]
    Waves(usize),
    #[error("a rollout has at most {ROLLOUT_HOSTS_MAX} hosts, and this one {0}; nothing was planned")]
    Hosts(usize),
    #[error(
        "wave {wave} names {host}, which is not enrolled here, and nothing was planned: see `holdfast host list`"
    )]
    UnknownHost { wave: usize, host: HostName },
    #[error("wave {wave} names {host}, which is in a wave already, and nothing was planned")]
    Twice { wave: usize, host: HostName },
    #[error(
        "wave {wave} has no host that is in no other wave, and nothing was planned: see `holdfast host list`"
    )]
    Empty { wave: usize },
    #[error("wave {wave} takes {wanted} hosts, and {left} are left; nothing was planned")]
    Few { wave: usize, wanted: u32, left: usize },
    #[error(
        "wave {wave} has a time-out of {timeout_s} s and a soak of {soak_s} s; a time-out is 1 to {WAVE_SECONDS_MAX} s, a soak \
         at most as long, and nothing was planned"
    )]
    Times { wave: usize, soak_s: u32, timeout_s: u32 },
}

impl PlanError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownHost { .. } => ErrorCode::NotFound,
            Self::Twice { .. } => ErrorCode::DuplicateName,
            Self::Waves(_) | Self::Hosts(_) | Self::Empty { .. } | Self::Few { .. } | Self::Times { .. } => {
                ErrorCode::Range
            }
        }
    }
}

/// A host that may be in a wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub host: HostId,
    pub name: HostName,
    pub labels: HostLabels,
}

/// Plans the waves. `hosts` are those that may be named, in the order of names. First come the hosts that are named, then
/// those that labels select, each in the first wave that does; counts and the rest take what is left.
///
/// # Errors
/// [`PlanError`], at the first mistake.
pub fn plan(waves: &[WaveRequest], hosts: &[Candidate]) -> Result<Vec<PlannedWave>, PlanError> {
    if !(1..=WAVES_MAX).contains(&waves.len()) {
        return Err(PlanError::Waves(waves.len()));
    }
    let mut taken = named(waves, hosts)?;
    let labelled: Vec<Vec<HostId>> = waves.iter().map(|wave| labelled(wave, hosts, &mut taken)).collect();
    let mut planned = Vec::new();
    for ((wave, request), labelled) in (1..).zip(waves).zip(labelled) {
        let left: Vec<HostId> =
            hosts.iter().filter(|one| !taken.contains(&one.name)).map(|one| one.host).collect();
        let of_wave = match &request.hosts {
            WaveHosts::Named(names) => {
                hosts.iter().filter(|one| names.contains(&one.name)).map(|one| one.host).collect()
            }
            WaveHosts::Labelled(_) => labelled,
            WaveHosts::Count(wanted) if left.len() < *wanted as usize => {
                return Err(PlanError::Few { wave, wanted: *wanted, left: left.len() });
            }
            WaveHosts::Count(wanted) => left.into_iter().take(*wanted as usize).collect(),
            WaveHosts::Rest => left,
        };
        if of_wave.is_empty() {
            return Err(PlanError::Empty { wave });
        }
        let names = hosts.iter().filter(|one| of_wave.contains(&one.host));
        taken.extend(names.map(|one| one.name.clone()));
        planned.push(PlannedWave { limits: limits(wave, request)?, hosts: of_wave });
    }
    let count = planned.iter().map(|wave| wave.hosts.len()).sum();
    if count > ROLLOUT_HOSTS_MAX { Err(PlanError::Hosts(count)) } else { Ok(planned) }
}

/// The hosts that a wave selects by labels, of those that are in no wave yet.
fn labelled(wave: &WaveRequest, hosts: &[Candidate], taken: &mut BTreeSet<HostName>) -> Vec<HostId> {
    let WaveHosts::Labelled(selector) = &wave.hosts else { return Vec::new() };
    let found = hosts.iter().filter(|one| selector.matches(&one.labels) && taken.insert(one.name.clone()));
    found.map(|one| one.host).collect()
}

/// All hosts that waves name, each once.
fn named(waves: &[WaveRequest], hosts: &[Candidate]) -> Result<BTreeSet<HostName>, PlanError> {
    let served: BTreeSet<&HostName> = hosts.iter().map(|one| &one.name).collect();
    let mut taken = BTreeSet::new();
    for (wave, request) in (1..).zip(waves) {
        let WaveHosts::Named(names) = &request.hosts else { continue };
        for host in names {
            if !served.contains(host) {
                return Err(PlanError::UnknownHost { wave, host: host.clone() });
            }
            if !taken.insert(host.clone()) {
                return Err(PlanError::Twice { wave, host: host.clone() });
            }
        }
    }
    Ok(taken)
}

fn limits(wave: usize, request: &WaveRequest) -> Result<WaveLimits, PlanError> {
    let WaveRequest { soak_s, timeout_s, max_failures, hosts: _ } = *request;
    if !(1..=WAVE_SECONDS_MAX).contains(&timeout_s) || soak_s > WAVE_SECONDS_MAX {
        return Err(PlanError::Times { wave, soak_s, timeout_s });
    }
    let seconds = |count: u32| SignedDuration::from_secs(i64::from(count));
    Ok(WaveLimits { max_failures, soak: seconds(soak_s), timeout: seconds(timeout_s) })
}
