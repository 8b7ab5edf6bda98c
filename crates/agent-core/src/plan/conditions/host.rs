//! Conditions of Proxmox, the clock, the agent's records and images.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::{ConditionCode, Subject};

use super::{Finding, HostKnowledge, RecordsFault};
use crate::model::condition_facts::Blocked;
use crate::plan::host_maintenance;

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let problems = &known.view.facts.problems;
    let by_code = BY_CODE.iter().flat_map(|(why, code)| {
        let of_code = problems.iter().filter(move |problem| problem.code == *why);
        of_code.map(|problem| Finding::new(*code, Subject::Host {}, problem.message.clone()))
    });
    proxmox(known)
        .into_iter()
        .chain(maintenance(known))
        .chain(clock(known))
        .chain(records(known))
        .chain(by_code)
        .collect()
}

/// Facts of the host that are there only as a code with a sentence.
const BY_CODE: &[(ErrorCode, ConditionCode)] =
    &[(ErrorCode::ClockUnkept, ConditionCode::ClockUnkept), (ErrorCode::GoldenOld, ConditionCode::GoldenOld)];

/// Where the agent's own records keep it from looking, nothing is known of Proxmox.
fn proxmox(known: &HostKnowledge<'_>) -> Option<Finding> {
    let since = known.view.unobserved_since?;
    match known.view.blocked? {
        Blocked::ByRecords => None,
        Blocked::ByProxmox => {
            let why = known.view.problems.last().map(|problem| format!(": {}", problem.message));
            let message = format!("Proxmox was last read at {since:.0}{}", why.unwrap_or_default());
            Some(Finding::new(ConditionCode::ProxmoxAway, Subject::Host {}, message).since(since))
        }
    }
}

fn maintenance(known: &HostKnowledge<'_>) -> Option<Finding> {
    let kept = known.maintenance.filter(|kept| host_maintenance::is_checked(kept, known.now))?;
    let of_host =
        host_maintenance::HostInventory { guests: &known.view.guests, targets: &known.storage.targets };
    let not_back = host_maintenance::not_back(kept, of_host);
    let names: Vec<&str> = not_back.iter().map(|name| name.as_str()).collect();
    let message = format!("since the maintenance that ended at {:.0}: {}", kept.end(), names.join(", "));
    let finding = Finding::new(ConditionCode::MaintenanceIncomplete, Subject::Host {}, message);
    (!names.is_empty()).then_some(finding)
}

fn clock(known: &HostKnowledge<'_>) -> Option<Finding> {
    let latest = known.view.facts.clock_behind?;
    let message = format!("the clock is behind {latest:.0}, a time that was already seen");
    Some(Finding::new(ConditionCode::ClockBehind, Subject::Host {}, message))
}

fn records(known: &HostKnowledge<'_>) -> Option<Finding> {
    let (code, text) = match known.records.as_ref()? {
        RecordsFault::Full(text) => (ConditionCode::DiskFull, text),
        RecordsFault::Broken(text) => (ConditionCode::RecordsBroken, text),
        RecordsFault::Damaged(text) => (ConditionCode::RecordsDamaged, text),
    };
    Some(Finding::new(code, Subject::Host {}, text.clone()))
}
