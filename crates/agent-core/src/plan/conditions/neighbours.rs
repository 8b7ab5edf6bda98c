//! Conditions of noisy neighbours and of over-committed hosts.
//!
//! In: what was judged of samples, and the sums of the last observation. Out: findings with figures and what helps.
//! Deliberately absent: what counts as most or as short, which is `model/neighbours`.

use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::report::{AssignedPart, AssignedShare, GuestReport, Running};

use super::{Finding, HostKnowledge};
use crate::model::neighbours::{NoisyGuest, SharedResource, WINDOW};
use crate::model::usage_levels::UsageLevels;

/// One finding for each guest and resource; those of a guest are joined.
pub(super) fn noisy(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let found = known.levels.neighbours.noisy().filter_map(|(uid, resource, noisy)| {
        // One that is not ours any more has no condition.
        let guest = known.view.guests.iter().find(|guest| guest.uid == Some(uid))?;
        let message = message(guest, resource, noisy);
        let finding = Finding::new(ConditionCode::NoisyNeighbour, Subject::Guest { uid }, message);
        Some(finding.since(noisy.since))
    });
    found.collect()
}

fn message(guest: &GuestReport, resource: SharedResource, noisy: &NoisyGuest) -> String {
    let (name, share) = (&guest.name, noisy.share_permille / 10);
    let waited = |what: &str| {
        let percent = noisy.pressure_permille.map(|permille| permille / 10);
        percent.map_or_else(String::new, |percent| {
            format!(", and tasks waited for {what} {percent} % of the time")
        })
    };
    let busy = noisy
        .host_cpu_permille
        .map_or_else(String::new, |permille| format!("{} % of the host's CPUs were busy", permille / 10));
    let rate = mib(noisy.amount);
    let (used, limit) = match resource {
        SharedResource::Cpu => (
            format!(
                "{share} % of the CPU time in use, {} % of the host: {busy}{}",
                noisy.amount / 10,
                waited("a CPU")
            ),
            "bound it with limits.cpu, or give it a lower limits.cpu_weight",
        ),
        SharedResource::Memory => (
            format!("{share} % of the host's memory ({rate} MiB){}", waited("memory")),
            "give it a smaller size.memory_mib",
        ),
        SharedResource::Disk => (
            format!("{share} % of the disk traffic of all guests ({rate} MiB/s){}", waited("a disk")),
            "Proxmox lets no token limit that: find what does it in the guest, or move its disks",
        ),
        SharedResource::Network => (
            format!("{share} % of the network traffic of all guests ({rate} MiB/s)"),
            "bound it with network.rate",
        ),
    };
    let others = match noisy.others {
        1 => "1 other guest runs".to_owned(),
        more => format!("{more} other guests run"),
    };
    format!("{name} used {used} (mean of {WINDOW} minutes); {others} here: {limit}")
}

const fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// Whether a guest that is not found is known to be no noisy neighbour: a whole window says so, or it does not run.
pub(super) fn covers(levels: &UsageLevels, guests: &[GuestReport], subject: &Subject) -> bool {
    subject.guest().is_none_or(|uid| {
        let runs = guests.iter().any(|guest| guest.uid == Some(uid) && guest.run != Running::Stopped);
        !runs || levels.neighbours.has_judged(uid)
    })
}

/// What was given of the host beyond the document's levels, in one finding.
pub(super) fn overcommitted(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let shares = known.view.host.as_ref().map(|host| host.assigned_shares()).unwrap_or_default();
    let over: Vec<String> = shares.iter().filter(|share| share.is_over()).map(beyond).collect();
    if over.is_empty() {
        return Vec::new();
    }
    let message = format!("guests were given {}", over.join("; "));
    vec![Finding::new(ConditionCode::HostOvercommitted, Subject::Host {}, message)]
}

fn beyond(share: &AssignedShare) -> String {
    let field = match &share.part {
        AssignedPart::Cores => "cores_percent",
        AssignedPart::Memory => "memory_percent",
        AssignedPart::Disk(_) => "disk_percent",
    };
    format!("{share}, above overcommit.{field} {}", share.level)
}
