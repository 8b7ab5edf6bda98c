//! What a host's report and its newest sample of use say.

use std::collections::BTreeMap;

use holdfast_protocol::condition::{DiskSerial, Severity};
use holdfast_protocol::desired::RunState;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::operation::{OperationStatus, OperationView};
use holdfast_protocol::report::{
    DiskHealth, DiskReading, GuestReport, HardwareName, Running, Sections, StorageState, TunnelState,
};
use holdfast_protocol::usage::{Readings, Unit, UsageMetric, UsageSample};
use jiff::Timestamp;

use crate::catalogue::Metric;
use crate::exposition::{Exposition, Labels, Value};

/// Guests of a host on a page, at most.
pub const GUESTS_MAX: usize = 512;

/// Adds all that is known of a host. `labels` are those of the host: none at the agent.
pub fn add(
    page: &mut Exposition,
    labels: &Labels,
    (sections, sample): (&Sections, Option<&UsageSample>),
    now: Timestamp,
) {
    about_agent(page, labels, sections);
    storages(page, labels, sections);
    hardware(page, labels, sections);
    updates(page, labels, sections);
    tunnels(page, labels, sections);
    let operations = sections.operations.as_deref().unwrap_or_default();
    work(page, labels, operations, now);
    let names = names(sections);
    for of_guest in sections.guests.iter().flatten() {
        let Some(name) = of_guest.uid.and_then(|uid| names.get(&uid)) else { continue };
        guest(page, (labels, name), of_guest);
    }
    let Some(sample) = sample else { return };
    usage(page, "holdfast_host_", labels, &sample.host, UsageMetric::is_of_hosts);
    for (uid, readings) in &sample.guests {
        let Some(name) = names.get(uid) else { continue };
        usage(page, "holdfast_guest_", &labels.with("guest", name), readings, UsageMetric::is_of_guests);
    }
}

/// The label of each guest of ours: its name, and the beginning of its uid where another has that name.
fn names(sections: &Sections) -> BTreeMap<GuestUid, String> {
    let ours = sections.guests.iter().flatten().filter_map(|guest| Some((guest.uid?, guest.name.as_str())));
    let ours: Vec<(GuestUid, &str)> = ours.take(GUESTS_MAX).collect();
    let name = |(uid, name): &(GuestUid, &str)| {
        let is_shared = ours.iter().any(|(other, same)| other != uid && same == name);
        let short: String = uid.to_string().chars().take(8).collect();
        (*uid, if is_shared { format!("{name} ({short})") } else { (*name).to_owned() })
    };
    ours.iter().map(name).collect()
}

fn flag(is: bool) -> Value {
    Value::Whole(u64::from(is))
}

fn about_agent(page: &mut Exposition, labels: &Labels, sections: &Sections) {
    if let (Some(agent), Some(host)) = (&sections.agent, &sections.host) {
        let info = labels.with("node", &host.node).with("version", &agent.version);
        page.add(Metric::AgentInfo, &info.with("proxmox_version", &host.proxmox_version), Value::Whole(1));
    }
    if let Some(agent) = &sections.agent {
        page.add(Metric::AgentProblems, labels, agent.problems.len().into());
        page.add(Metric::AgentStart, labels, Value::at(agent.started_at));
        if let Some(since) = agent.unobserved_since {
            page.add(Metric::HostUnobserved, labels, Value::at(since));
        }
    }
    if let Some(set) = &sections.conditions {
        for severity in Severity::ALL {
            let count = set.conditions().iter().filter(|condition| condition.severity == severity).count();
            page.add(Metric::Conditions, &labels.with("severity", severity), count.into());
        }
    }
    if let Some(waiting) = &sections.waiting {
        page.add(Metric::Waiting, labels, waiting.len().into());
    }
}

fn storages(page: &mut Exposition, labels: &Labels, sections: &Sections) {
    for storage in sections.host.iter().flat_map(|host| &host.storages) {
        let labels = labels.with("storage", &storage.name);
        match storage.state {
            StorageState::Active => page.add(Metric::StorageUp, &labels, flag(true)),
            StorageState::Inactive => page.add(Metric::StorageUp, &labels, flag(false)),
            StorageState::Unknown => {}
        }
        for (metric, bytes) in
            [(Metric::StorageUsed, storage.used_bytes), (Metric::StorageSize, storage.total_bytes)]
        {
            if let Some(bytes) = bytes {
                page.add(metric, &labels, Value::Whole(bytes));
            }
        }
    }
}

fn hardware(page: &mut Exposition, labels: &Labels, sections: &Sections) {
    let Some(section) = &sections.hardware else { return };
    if let Some(at) = section.disks_read_at {
        page.add(Metric::DisksRead, labels, Value::at(at));
    }
    for disk in section.disks.iter().filter(|disk| disk.reading == DiskReading::Read) {
        let or_empty = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let serial = or_empty(disk.serial.as_ref().map(DiskSerial::as_str));
        let device = labels.with("disk", disk.device.as_str());
        let model = device.with("model", or_empty(disk.model.as_ref().map(HardwareName::as_str)));
        let fails = disk.health == DiskHealth::Failing || !disk.faults.is_empty();
        page.add(Metric::DiskFailing, &model.with("serial", &serial), flag(fails));
        let labels = device.with("serial", &serial);
        let celsius = disk.temperature.as_ref().map(|temperature| Value::degrees(temperature.celsius));
        let measured = [
            (Metric::DiskWear, disk.wear_percent.map(|percent| Value::Thousandths(u64::from(percent) * 10))),
            (Metric::DiskTemperature, celsius),
            (Metric::DiskHours, disk.power_on_hours.map(Value::Whole)),
            (Metric::DiskReallocated, disk.reallocated_sectors.map(Value::Whole)),
            (Metric::DiskPending, disk.pending_sectors.map(Value::Whole)),
        ];
        for (metric, value) in measured {
            if let Some(value) = value {
                page.add(metric, &labels, value);
            }
        }
    }
    for sensor in &section.sensors {
        let labels = labels.with("sensor", sensor.name.as_str());
        page.add(Metric::Temperature, &labels, Value::degrees(sensor.temperature.celsius));
    }
    if let Some(errors) = &section.memory_errors {
        for (kind, count) in [("corrected", errors.corrected), ("uncorrected", errors.uncorrected)] {
            page.add(Metric::MemoryErrors, &labels.with("kind", kind), Value::Whole(count));
        }
    }
}

fn updates(page: &mut Exposition, labels: &Labels, sections: &Sections) {
    let Some(section) = &sections.updates else { return };
    page.add(Metric::UpdatesRead, labels, Value::at(section.read_at));
    page.add(Metric::RebootRequired, labels, flag(!section.restart.is_empty()));
    if let Some(at) = section.lists_changed_at {
        page.add(Metric::ListsChanged, labels, Value::at(at));
    }
    let Some(pending) = &section.pending else { return };
    page.add(Metric::SecurityUpdates, labels, Value::Whole(pending.security.into()));
    for (origin, count) in
        [("debian", pending.debian), ("proxmox", pending.proxmox), ("other", pending.other)]
    {
        page.add(Metric::UpdatesPending, &labels.with("origin", origin), Value::Whole(count.into()));
    }
}

fn tunnels(page: &mut Exposition, labels: &Labels, sections: &Sections) {
    for tunnel in sections.agent.iter().flat_map(|agent| &agent.tunnels) {
        let labels = labels.with("tunnel", &tunnel.name);
        let carries = match tunnel.state {
            TunnelState::Up | TunnelState::Degraded => Some(true),
            TunnelState::Down | TunnelState::Stopped => Some(false),
            TunnelState::Unproved | TunnelState::Unknown => None,
        };
        if let Some(carries) = carries {
            page.add(Metric::TunnelUp, &labels.with("unit", &tunnel.unit), flag(carries));
        }
        if let Some(connections) = tunnel.connections {
            page.add(Metric::TunnelConnections, &labels, Value::Whole(connections.ready.into()));
        }
        page.add(Metric::TunnelSince, &labels.with("state", tunnel.state.as_str()), Value::at(tunnel.since));
        let asked = tunnel.restarts.as_ref().map_or(0, |restarts| restarts.asked_today);
        page.add(Metric::TunnelRestarts, &labels, Value::Whole(asked.into()));
    }
}

fn work(page: &mut Exposition, labels: &Labels, operations: &[OperationView], now: Timestamp) {
    let states = [
        (OperationStatus::Queued, "queued"),
        (OperationStatus::Running, "running"),
        (OperationStatus::Undoing, "undoing"),
        (OperationStatus::Parked, "parked"),
    ];
    for (status, word) in states {
        let count = operations.iter().filter(|operation| operation.status == status).count();
        page.add(Metric::Operations, &labels.with("status", word), count.into());
    }
    let open = operations.iter().filter(|operation| !operation.status.is_end());
    if let Some(oldest) = open.map(|operation| operation.opened_at).min() {
        let age = u64::try_from(now.duration_since(oldest).as_secs()).unwrap_or(0);
        page.add(Metric::OldestOperation, labels, Value::Whole(age));
    }
}

fn guest(page: &mut Exposition, (of_host, name): (&Labels, &str), guest: &GuestReport) {
    let Some(uid) = guest.uid else { return };
    let labels = &of_host.with("guest", name);
    let or_empty = |text: Option<String>| text.unwrap_or_default();
    let info = of_host
        .with("guest", name)
        .with("uid", uid)
        .with("vmid", or_empty(guest.vmid.map(|vmid| vmid.to_string())))
        .with("customer", or_empty(guest.customer.as_ref().map(ToString::to_string)));
    page.add(Metric::GuestInfo, &info, Value::Whole(1));
    match guest.run {
        Running::Running => page.add(Metric::GuestRunning, labels, flag(true)),
        Running::Stopped => page.add(Metric::GuestRunning, labels, flag(false)),
        Running::Unknown => {}
    }
    if let Some(wanted) = guest.wanted {
        page.add(Metric::GuestWanted, labels, flag(wanted == RunState::Running));
    }
    page.add(Metric::GuestConditions, labels, guest.conditions.len().into());
    if let Some(lock) = &guest.lock {
        page.add(Metric::GuestLock, &labels.with("kind", &lock.kind), Value::at(lock.since));
    }
    if let Some(controller) = &guest.controller {
        page.add(Metric::ControllerHello, labels, Value::at(controller.hello_at));
    }
    let Some(protection) = &guest.protection else { return };
    if let Some(posture) = &protection.posture {
        page.add(Metric::GuestPosture, &labels.with("posture", posture.is.as_str()), Value::Whole(1));
    }
    for newest in &protection.newest {
        let labels = labels.with("tier", newest.tier);
        page.add(Metric::BackupTime, &labels, Value::at(newest.taken_at));
        page.add(Metric::BackupSize, &labels, Value::Whole(newest.bytes));
        if let Some(took_ms) = newest.took_ms {
            page.add(Metric::BackupDuration, &labels, Value::Thousandths(took_ms));
        }
    }
    for tested in &protection.tested {
        let labels = labels.with("tier", tested.tier);
        page.add(Metric::TestTime, &labels, Value::at(tested.last.at));
        page.add(Metric::TestProved, &labels, flag(tested.last.verdict == TestVerdict::Proved));
        if let Some(took_s) = tested.last.took.whole_s() {
            page.add(Metric::TestDuration, &labels, Value::Whole(took_s));
        }
    }
}

fn usage(
    page: &mut Exposition,
    prefix: &str,
    labels: &Labels,
    readings: &Readings,
    has: fn(UsageMetric) -> bool,
) {
    for (metric, value) in readings.iter().filter(|(metric, _)| has(**metric)) {
        let spec = metric.spec();
        let value = match spec.unit {
            Unit::Permille => Value::Thousandths(*value),
            Unit::Centi => Value::Thousandths(value.saturating_mul(10)),
            Unit::Bytes | Unit::BytesPerSecond => Value::Whole(*value),
        };
        page.gauge(&format!("{prefix}{}", spec.name), spec.meaning, labels, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_has_lines_as_far_as_it_is_known() {
        let of = |state: &str| {
            let tunnel = serde_json::json!({ "name": "cf", "unit": "cloudflared.service", "state": state, "why": "w",
                "since": "2026-11-22T00:00:00Z", "checked_at": "2026-11-22T00:00:00Z" });
            let agent = serde_json::json!({ "version": "1", "started_at": "2026-11-22T00:00:00Z", "problems": [],
                "tunnels": [tunnel] });
            let sections: Sections = serde_json::from_value(serde_json::json!({ "agent": agent })).unwrap();
            let mut page = Exposition::default();
            tunnels(&mut page, &Labels::default(), &sections);
            page.page()
        };
        assert!(
            of("degraded").contains("holdfast_tunnel_up{tunnel=\"cf\",unit=\"cloudflared.service\"} 1"),
            "{}",
            of("up")
        );
        assert!(of("stopped").contains("unit=\"cloudflared.service\"} 0"));
        assert!(!of("unproved").contains("holdfast_tunnel_up{"));
        assert!(of("down").contains("holdfast_tunnel_restarts_asked{tunnel=\"cf\"} 0"));
    }

    #[test]
    fn two_guests_with_one_name_have_lines_of_their_own() {
        let guest = |n: u32| {
            serde_json::json!({ "uid": uuid::Uuid::from_u128(u128::from(n) << 96), "name": "web", "vmid": 300 + n,
                "status": "managed", "run": "running" })
        };
        let sections = serde_json::json!({ "guests": [guest(1), guest(2)] });
        let sections: Sections = serde_json::from_value(sections).unwrap();
        let mut page = Exposition::default();
        add(&mut page, &Labels::default(), (&sections, None), Timestamp::UNIX_EPOCH);
        let page = page.page();
        for name in ["web (00000001)", "web (00000002)"] {
            assert!(page.contains(&format!("holdfast_guest_running{{guest=\"{name}\"}} 1\n")), "{page}");
        }
    }
}
