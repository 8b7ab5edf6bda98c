//! Reports on guests and host, from the inputs of the plan.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, GuestSize, UseLevels};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, NodeName, Vmid};
use holdfast_protocol::job::{JobReport, JobState, Verb};
use holdfast_protocol::operation::{OperationStatus, OperationView};
use holdfast_protocol::protection::ProtectionReport;
use holdfast_protocol::report::{
    ControllerReport, FactAges, FieldState, GuestReport, GuestStatus, HostSection, LimitsReport, LockReport,
    Running, StorageReport, StorageState,
};
use holdfast_protocol::size::{Cores, DiskGib, MemoryMib, SwapMib};
use jiff::{SignedDuration, Timestamp};

use super::schedule::facts::backups_of;
use super::{GuestVerdict, Inputs, Plan, assigned, golden, posture, silence};
use crate::model::cpu::CpuLimitFact;
use crate::model::field::GuestFields;
use crate::model::limits;
use crate::model::observed::{Detail, GuestFacts, ObservedGuest, StorageFact};
use crate::model::records::{GuestRecord, Place, Records};
use crate::model::view::{LaneView, WaitingView};

/// Sizes that change all the time are rounded to this, so that noise is no change.
const ROUND_BYTES: u64 = 64 << 20;

/// One report per verdict. `interval_s` is the interval of observation.
#[must_use]
pub fn guests(
    inputs: &Inputs<'_>,
    plan: &Plan,
    (fields, interval_s): (&BTreeMap<GuestUid, GuestFields>, u32),
) -> Vec<GuestReport> {
    plan.verdicts.iter().map(|verdict| guest(inputs, verdict, (fields, interval_s))).collect()
}

/// Fields that are not settled: those that are, say nothing that the document does not.
fn unsettled(fields: Option<&GuestFields>) -> Vec<FieldState> {
    let all = fields.iter().flat_map(|fields| &fields.fields);
    all.filter(|state| !state.is_settled()).cloned().collect()
}

fn guest(
    inputs: &Inputs<'_>,
    verdict: &GuestVerdict,
    (fields, interval_s): (&BTreeMap<GuestUid, GuestFields>, u32),
) -> GuestReport {
    let wanted = verdict.wanted.and_then(|place| inputs.desired.get(place));
    let record = verdict.recorded.and_then(|place| inputs.records.guests.get(place));
    let seen = verdict.vmid.and_then(|vmid| inputs.observed.guests.get(&vmid));
    let facts = seen.and_then(|seen| match &seen.detail {
        Detail::Known(facts) => Some(facts.as_ref()),
        Detail::Unknown(_) => None,
    });
    let name = wanted
        .map(|guest| guest.name.to_string())
        .or_else(|| record.map(|record| record.name.to_string()))
        .or_else(|| seen.map(|seen| seen.name.clone()))
        .unwrap_or_default();
    let controller = record.and_then(|record| record.hello.as_ref()).map(|hello| ControllerReport {
        version: hello.version.clone(),
        hello_at: hello.at,
        health: hello.health,
        silence: record
            .zip(seen)
            .and_then(|(record, seen)| silence::report(silence::of(inputs, record, seen))),
    });
    let copy_of = verdict.status == GuestStatus::RestoredCopy;
    let uid = wanted.map(|guest| guest.uid).or_else(|| record.map(|record| record.uid));
    GuestReport {
        former_vmids: uid.map(|uid| former_vmids(inputs.records, uid, verdict.vmid)).unwrap_or_default(),
        uid,
        name,
        customer: record.map(|record| record.customer.clone()),
        vmid: verdict.vmid,
        status: verdict.status,
        run: match (seen, verdict.vmid) {
            (Some(seen), _) => seen.run,
            (None, Some(_)) => Running::Unknown,
            (None, None) => Running::Stopped,
        },
        unknown_since: None,
        run_as_of: verdict.vmid.and_then(|vmid| old_power(inputs, vmid, interval_s)),
        configuration_as_of: verdict.vmid.and_then(|vmid| old_configuration(inputs, vmid, interval_s)),
        lock: seen.and_then(|seen| lock(inputs, seen)),
        wanted: wanted.map(|guest| guest.run),
        size: facts.and_then(size),
        limits: facts.and_then(limits),
        address: facts.and_then(|facts| facts.address),
        address_filter: facts.filter(|_| record.is_some()).and_then(|facts| facts.filter.state()),
        levels: wanted.and_then(|guest| levels(inputs, guest)),
        // A copy's volumes are reported as well: they identify the copy to the operator who signs for one.
        volumes: facts.filter(|_| record.is_some() || copy_of).map(volumes).unwrap_or_default(),
        golden: record.map(|record| &record.golden).or(wanted.map(|guest| &guest.golden)).cloned(),
        golden_built_at: record.and_then(|record| golden::built_at(inputs.policy, &record.golden)),
        root_disk_data: record
            .and_then(|record| record.hello.as_ref())
            .and_then(|hello| hello.reported.root_disk.clone()),
        controller,
        protection: verdict
            .protection
            .as_deref()
            .cloned()
            .map(Box::new)
            .or_else(|| record.and_then(unpromised)),
        conditions: verdict.conditions.clone(),
        fields: unsettled(record.and_then(|record| fields.get(&record.uid))),
    }
}

/// A kind of lock is a word.
const LOCK_CHARS_MAX: usize = 32;

fn lock(inputs: &Inputs<'_>, seen: &ObservedGuest) -> Option<LockReport> {
    let kind = seen.lock.as_ref()?.chars().take(LOCK_CHARS_MAX).collect();
    let since = inputs.observed.times.locks.get(&seen.vmid).copied().unwrap_or(inputs.observed.at);
    Some(LockReport { kind, since })
}

/// Those in force, where the document says anything of them.
fn levels(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Option<UseLevels> {
    let named = guest.levels.unwrap_or_default().over(inputs.levels);
    (named != UseLevels::default()).then(|| named.over(UseLevels::USUAL))
}

/// How old the facts of an observation are at most when they are found, with this interval in seconds.
const fn when_found(interval_s: u32) -> FactAges {
    FactAges {
        power_s: limits::ROUND_S.saturating_add(interval_s),
        configuration_s: limits::CONFIGURATION_S.saturating_add(interval_s),
        storage_s: limits::STORAGE_S.saturating_add(interval_s),
        version_s: limits::VERSION_S.saturating_add(interval_s),
    }
}

/// How old they are at most until the next observation.
const fn until_next(interval_s: u32) -> FactAges {
    when_found(interval_s.saturating_mul(2))
}

fn old_power(inputs: &Inputs<'_>, vmid: Vmid, interval_s: u32) -> Option<Timestamp> {
    let observed = inputs.observed;
    let seen = observed.guests.get(&vmid)?;
    let at = observed.times.power_of(vmid).filter(|_| seen.run != Running::Unknown)?;
    older(observed.at, at, when_found(interval_s).power_s)
}

fn old_configuration(inputs: &Inputs<'_>, vmid: Vmid, interval_s: u32) -> Option<Timestamp> {
    let observed = inputs.observed;
    let at = *observed.times.configurations.get(&vmid)?;
    older(observed.at, at, when_found(interval_s).configuration_s)
}

fn older(now: Timestamp, at: Timestamp, limit_s: u32) -> Option<Timestamp> {
    (now.duration_since(at) > SignedDuration::from_secs(limit_s.into())).then_some(at)
}

/// Those under which backups of it lie come first: a new host looks for these, and a copy's VMID has none.
fn former_vmids(records: &Records, uid: GuestUid, now: Option<Vmid>) -> Vec<Vmid> {
    let backups = backups_of(records, uid);
    let mut all: Vec<Vmid> = records.former_vmids(uid, now).collect();
    all.sort_by_key(|vmid| !backups.iter().any(|backup| backup.vmid == *vmid));
    all.truncate(limits::FORMER_VMIDS_MAX);
    all
}

/// A guest that was made and has no promise is reported as that.
fn unpromised(record: &GuestRecord) -> Option<Box<ProtectionReport>> {
    let posture = Some(posture::unpromised());
    matches!(record.place, Place::Made { .. })
        .then(|| Box::new(ProtectionReport { posture, ..ProtectionReport::default() }))
}

fn volumes(facts: &GuestFacts) -> Vec<String> {
    facts.volumes.iter().map(ToString::to_string).collect()
}

/// Guests that carry our mark and that our records do not know, reported as one problem: each alone may be a mistake by
/// hand, but the records may also be older than the host.
#[must_use]
pub fn unknown_marks(plan: &Plan) -> Option<ErrorBody> {
    let unknown = |verdict: &&GuestVerdict| {
        verdict.recorded.is_none() && verdict.status == GuestStatus::Foreign && !verdict.conditions.is_empty()
    };
    let numbers: Vec<String> = plan
        .verdicts
        .iter()
        .filter(unknown)
        .filter_map(|verdict| verdict.vmid)
        .map(|vmid| vmid.to_string())
        .collect();
    (!numbers.is_empty()).then(|| {
        let text = format!(
            "guests {} carry our mark, but our records do not know them: they are not touched; was the state folder restored from an \
             old copy, or is another agent at work here? an operator must adopt or clear them",
            numbers.join(", ")
        );
        ErrorBody::new(ErrorCode::ForeignGuest, text)
    })
}

/// What is under way for longer than is ordinary. It is not ended: only a person can distinguish a slow line from a
/// task that hangs.
#[must_use]
pub fn long_under_way(operations: &[OperationView], now: Timestamp) -> Vec<ErrorBody> {
    let ordinary = SignedDuration::from_secs(limits::LONG_S.cast_signed());
    let is_long = |one: &&OperationView| {
        matches!(one.status, OperationStatus::Running | OperationStatus::Undoing)
            && now.duration_since(one.opened_at) >= ordinary
    };
    let reported = |one: &OperationView| {
        let text = format!(
            "{} of {} (operation {}) is under way since {:.0} and goes on: see in `agentd status` whether it moves; if its task \
             hangs, stop that task in Proxmox, and what it made is taken back",
            one.kind.as_str(),
            one.name,
            one.id,
            one.opened_at
        );
        ErrorBody::new(ErrorCode::TakesLong, text)
    };
    operations.iter().filter(is_long).map(reported).collect()
}

/// A change of who may sign that waits for its delay: everybody who looks hears of it while it can still be stopped.
#[must_use]
pub fn pending_rosters(jobs: &[JobReport]) -> Vec<ErrorBody> {
    let reported = |job: &JobReport| {
        let waits = job.state == JobState::Waiting && job.verb == Some(Verb::PolicyUpdate);
        let due = job.due_at.filter(|_| waits)?;
        let names: Vec<&str> = job.signers.iter().map(|name| name.as_str()).collect();
        let who = if names.len() < 2 { "any operator stops" } else { "two operators who sign a cancel stop" };
        let text = format!(
            "job {}, signed by {}, changes who may sign here, from {due:.0} on: look at it with `holdfast job show`; {who} it \
             until then with `holdfast job cancel`",
            job.id,
            names.join(" and "),
        );
        Some(ErrorBody::new(ErrorCode::PolicyPending, text))
    };
    jobs.iter().filter_map(reported).collect()
}

/// None when the guest has a size that no document could ask for.
fn size(facts: &GuestFacts) -> Option<GuestSize> {
    let number = |value: u64| u32::try_from(value).ok();
    Some(GuestSize {
        cores: Cores::try_from(number(facts.cores?)?).ok()?,
        memory_mib: MemoryMib::try_from(number(facts.memory_mib)?).ok()?,
        swap_mib: SwapMib::try_from(number(facts.swap_mib)?).ok()?,
        rootfs_gib: DiskGib::try_from(number(facts.rootfs_bytes? >> 30)?).ok()?,
    })
}

/// None where nothing bounds its CPU time and its network.
fn limits(facts: &GuestFacts) -> Option<LimitsReport> {
    let cpu_millicores = match facts.cpu.limit {
        CpuLimitFact::Millicores(milli) => Some(milli),
        CpuLimitFact::Unlimited | CpuLimitFact::Unreadable => None,
    };
    let rate = facts.net.as_ref().and_then(|line| line.value("rate"));
    let cpu_weight = facts.cpu.weight;
    // Proxmox writes a number of a few digits; a line by hand may have anything.
    let network_mib_per_s = rate.map(|rate| rate.chars().take(RATE_CHARS_MAX).collect());
    LimitsReport { cpu_millicores, cpu_weight, network_mib_per_s }.some()
}

const RATE_CHARS_MAX: usize = 32;

/// The lanes in which a request waits.
#[must_use]
pub fn lanes(records: &Records) -> Vec<LaneView> {
    let mut lanes: BTreeMap<GuestUid, LaneView> = BTreeMap::new();
    for request in &records.requests {
        let guest = request.guest;
        let lane = lanes.entry(guest).or_insert_with(|| {
            let holder = records.open.iter().find(|open| open.guest == guest);
            LaneView { guest, holds: holder.map(|open| open.id), waits: Vec::new() }
        });
        let (id, kind, asked_at) = (request.id, request.ask.kind(), request.asked_at);
        lane.waits.push(WaitingView { id, kind, asked_at });
    }
    lanes.into_values().collect()
}

/// Where volumes are attached, for each guest of ours whose configuration could be read.
#[must_use]
pub fn mounts(inputs: &Inputs<'_>) -> BTreeMap<GuestUid, BTreeSet<String>> {
    let of = |record: &GuestRecord| {
        let seen = inputs.observed.guests.get(&record.place.vmid()?)?;
        let Detail::Known(facts) = &seen.detail else { return None };
        let attached = facts.mounts.values().filter(|mount| mount.volume.is_some());
        Some((record.uid, attached.map(|mount| mount.path.clone()).collect()))
    };
    inputs.records.guests.iter().filter_map(of).collect()
}

/// The host, when it answered. `interval_s` is the interval of observation.
#[must_use]
pub fn host(node: &NodeName, inputs: &Inputs<'_>, interval_s: u32) -> Option<HostSection> {
    let observed = inputs.observed;
    let facts = observed.node.as_ref()?;
    let storages = observed.storages.iter().map(|(name, fact)| {
        let (state, sizes) = match fact {
            StorageFact::Active { total, used, .. } => (StorageState::Active, Some((*total, round(*used)))),
            StorageFact::Inactive => (StorageState::Inactive, None),
            StorageFact::Unknown => (StorageState::Unknown, None),
        };
        StorageReport {
            name: name.to_string(),
            state,
            total_bytes: sizes.map(|(total, _)| total),
            used_bytes: sizes.map(|(_, used)| used),
        }
    });
    Some(HostSection {
        node: node.clone(),
        ages: Some(until_next(interval_s)),
        proxmox_version: facts.version.clone(),
        cpus: facts.cpus,
        memory_bytes: facts.memory_bytes,
        memory_used_bytes: round(facts.memory_used_bytes),
        storages: storages.collect(),
        assigned: Some(assigned::of(observed, facts, inputs.overcommit)),
        goldens: golden::reports(inputs),
    })
}

const fn round(bytes: u64) -> u64 {
    (bytes + ROUND_BYTES / 2) / ROUND_BYTES * ROUND_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_reported_while_it_goes_on() {
        let at = |hours: i64| Timestamp::from_second(1_800_000_000 + hours * 3_600).unwrap();
        let view = |status: &str, opened_at: Timestamp| -> OperationView {
            serde_json::from_value(serde_json::json!({
                "id": "00000000-0000-0000-0000-000000000001", "kind": "restore_test", "name": "web-1",
                "guest": "018f3c01-6b1f-7c1d-9d0a-2f6d1c0b7a55", "status": status, "steps": [], "opened_at": opened_at,
            }))
            .unwrap()
        };
        let all = ["running", "undoing", "queued", "done", "parked"].map(|status| view(status, at(0)));
        assert_eq!(long_under_way(&all, at(5)), Vec::new());
        let reported = long_under_way(&all, at(6));
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert_eq!(reported[0].code, ErrorCode::TakesLong);
        assert!(reported[0].message.starts_with("restore_test of web-1"), "{}", reported[0].message);
    }

    #[test]
    fn a_change_of_who_may_sign_is_reported_while_it_waits() {
        let job = |verb: &str, state: &str, signers: &[&str]| -> JobReport {
            let due = (state == "waiting").then_some("2026-11-22T14:00:00Z");
            serde_json::from_value(serde_json::json!({
                "id": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "blob": "00", "state": state, "verb": verb,
                "signers": signers, "taken_at": "2026-11-21T14:00:00Z", "due_at": due
            }))
            .unwrap()
        };
        for (verb, state) in
            [("destroy_guest", "waiting"), ("policy_update", "done"), ("policy_update", "cancelled")]
        {
            assert_eq!(pending_rosters(&[job(verb, state, &["ada"])]), Vec::new(), "{verb} {state}");
        }
        let reported = |signers: &[&str]| {
            let reported = pending_rosters(&[job("policy_update", "waiting", signers)]);
            assert_eq!(reported.iter().map(|one| one.code).collect::<Vec<_>>(), [ErrorCode::PolicyPending]);
            reported[0].message.clone()
        };
        assert_eq!(
            reported(&["ada"]),
            "job 018f3c1e-6b1f-7c1d-9d0a-000000000001, signed by ada, changes who may sign here, from 2026-11-22T14:00:00Z on: \
             look at it with `holdfast job show`; any operator stops it until then with `holdfast job cancel`"
        );
        let both = reported(&["ada", "bob"]);
        assert!(
            both.contains("signed by ada and bob") && both.contains("two operators who sign a cancel"),
            "{both}"
        );
    }
}
