//! The state of one host for a snapshot.
//!
//! In: the host's row, its last report, its newest document. Out: [`StateHost`]. What a document says and what a report says
//! of one guest is brought together by its uid. Deliberately absent: secrets; the types of a snapshot have no place for
//! them.

use std::collections::BTreeMap;

use holdfast_protocol::condition::ReportedCondition;
use holdfast_protocol::desired::{Desired, DesiredDocument, DesiredGuest};
use holdfast_protocol::host_label::{LabelKey, LabelValue};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operator::{DesiredVersion, HostView};
use holdfast_protocol::report::{GuestReport, Sections};
use holdfast_protocol::state::{
    ConditionObserved, DesiredSettings, DesiredState, DesiredTarget, GuestCurrent, GuestObserved,
    GuestProblem, GuestProtection, HostObserved, HostVersions, StateCondition, StateGuest, StateHost,
    StateStorage, StateTarget,
};
use holdfast_protocol::storage::StorageTarget;

/// What is kept of a host.
#[derive(Clone, Debug)]
pub struct StateSource {
    pub view: HostView,
    /// Its number; with the name it is the place in the list.
    pub number: i64,
    pub sections: Sections,
    pub desired: Option<DesiredVersion>,
}

/// Makes the state of a host.
#[must_use]
pub fn host_state(source: StateSource) -> StateHost {
    let StateSource { view, sections, desired, number: _ } = source;
    // A document was checked when it was put; one that an earlier hub took may be none to this one.
    let parsed = desired.as_ref().and_then(|version| Desired::parse(version.document.as_bytes()).ok());
    let document = parsed.as_ref().map(Desired::document);
    let (mut by_guest, of_host, left_out) = conditions(sections.conditions.as_ref());
    let agent = sections.agent.as_ref();
    let host = sections.host.as_ref();
    let guests = guests(sections.guests.unwrap_or_default(), document, &mut by_guest);
    let refused = sections.desired.as_ref().and_then(|desired| desired.refused.as_ref());
    StateHost {
        id: view.id,
        name: view.name,
        state: view.state,
        labels: labels(view.labels.into()),
        maintenance_until: view.maintenance_until,
        desired: desired.map(|version| desired_state(version, document)),
        held: view.held,
        refused: refused.map(|refused| refused.problem.code),
        versions: HostVersions {
            agent: view.agent_version,
            proxmox: host.map(|host| host.proxmox_version.clone()),
        },
        storages: host.map(|host| host.storages.as_slice()).unwrap_or_default().iter().map(storage).collect(),
        targets: sections.storage.unwrap_or_default().into_iter().map(target).collect(),
        conditions: of_host.into_iter().chain(by_guest.into_values().flatten()).collect(),
        conditions_left_out: left_out,
        waiting: sections.waiting.unwrap_or_default().into_iter().map(|one| one.effect).collect(),
        guests,
        observed: HostObserved {
            seen_at: view.seen_at,
            ages: host.and_then(|host| host.ages),
            unobserved_since: agent.and_then(|agent| agent.unobserved_since),
            agent_started_at: agent.map(|agent| agent.started_at),
        },
    }
}

fn labels(labels: BTreeMap<LabelKey, LabelValue>) -> Vec<String> {
    labels.iter().map(|(key, value)| format!("{}={}", key.as_str(), value.as_str())).collect()
}

fn desired_state(version: DesiredVersion, document: Option<&DesiredDocument>) -> DesiredState {
    let DesiredVersion { generation, content, author, reason, put_at, document: _ } = version;
    let settings = document.map(|document| DesiredSettings {
        poll_interval_s: document.poll_interval_s,
        observe_interval_s: document.observe_interval_s,
        alarm_after_s: document.alarm_after_s,
        levels: document.levels,
        policies: document.policies.clone(),
        targets: document.storage.iter().map(desired_target).collect(),
    });
    DesiredState {
        generation,
        content: Some(content),
        by: Some(author),
        reason: Some(reason),
        put_at,
        settings,
    }
}

fn desired_target(target: &StorageTarget) -> DesiredTarget {
    let StorageTarget { name, backend, class, role, state, label, default, schedulable, creds } = target;
    DesiredTarget {
        name: name.clone(),
        backend: backend.clone(),
        class: *class,
        role: *role,
        state: *state,
        label: label.clone(),
        default: *default,
        schedulable: *schedulable,
        credentials: creds.is_some(),
    }
}

fn storage(storage: &holdfast_protocol::report::StorageReport) -> StateStorage {
    StateStorage { name: storage.name.clone(), state: storage.state }
}

fn target(target: holdfast_protocol::storage::report::TargetReport) -> StateTarget {
    StateTarget { name: target.name, role: target.role, status: target.status }
}

type ByGuest = BTreeMap<GuestUid, Vec<StateCondition>>;

/// Those of guests, those of the host, and how many more there are.
fn conditions(
    set: Option<&holdfast_protocol::condition::ConditionSet>,
) -> (ByGuest, Vec<StateCondition>, u32) {
    let (mut by_guest, mut of_host) = (ByGuest::new(), Vec::new());
    let Some(set) = set else { return (by_guest, of_host, 0) };
    for condition in set.conditions() {
        match condition.subject.guest() {
            Some(uid) => by_guest.entry(uid).or_default().push(state_condition(condition)),
            None => of_host.push(state_condition(condition)),
        }
    }
    (by_guest, of_host, set.left_out())
}

fn state_condition(condition: &ReportedCondition) -> StateCondition {
    let ReportedCondition { code, subject, since, severity, message, remedy: _ } = condition;
    StateCondition {
        code: *code,
        subject: subject.clone(),
        severity: *severity,
        observed: ConditionObserved { since: *since, message: message.clone() },
    }
}

fn guests(
    reported: Vec<GuestReport>,
    document: Option<&DesiredDocument>,
    conditions: &mut ByGuest,
) -> Vec<StateGuest> {
    let desired = document.map(|document| document.guests.as_slice()).unwrap_or_default();
    let mut desired: BTreeMap<GuestUid, &DesiredGuest> =
        desired.iter().map(|guest| (guest.uid, guest)).collect();
    let mut all: Vec<StateGuest> = reported
        .into_iter()
        .map(|guest| {
            let wanted = guest.uid.and_then(|uid| desired.remove(&uid));
            let conditions = guest.uid.and_then(|uid| conditions.remove(&uid)).unwrap_or_default();
            reported_guest(guest, wanted, conditions)
        })
        .collect();
    all.extend(desired.into_iter().map(|(uid, guest)| {
        let conditions = conditions.remove(&uid).unwrap_or_default();
        unreported_guest(guest, conditions)
    }));
    all.sort_by(|one, other| place(one).cmp(&place(other)));
    all
}

/// Ours by uid, the others by VMID.
fn place(guest: &StateGuest) -> (bool, Option<GuestUid>, Option<holdfast_protocol::id::Vmid>, &str) {
    let vmid = guest.current.as_ref().and_then(|current| current.vmid);
    (guest.uid.is_none(), guest.uid, vmid, guest.name.as_str())
}

fn unreported_guest(guest: &DesiredGuest, conditions: Vec<StateCondition>) -> StateGuest {
    StateGuest {
        uid: Some(guest.uid),
        name: guest.name.to_string(),
        customer: Some(guest.customer.clone()),
        desired: Some(Box::new(guest.clone())),
        current: None,
        last_applied: Vec::new(),
        protection: None,
        conditions,
        problems: Vec::new(),
        observed: GuestObserved::default(),
    }
}

fn reported_guest(
    guest: GuestReport,
    desired: Option<&DesiredGuest>,
    conditions: Vec<StateCondition>,
) -> StateGuest {
    let current = GuestCurrent {
        vmid: guest.vmid,
        status: guest.status,
        run: guest.run,
        size: guest.size,
        address: guest.address,
        volumes: guest.volumes,
        image: guest.golden,
        controller: guest.controller.as_ref().map(|controller| controller.version.clone()),
        health: guest.controller.as_ref().map(|controller| controller.health),
    };
    let (protection, mut observed) = protection(guest.protection);
    observed.unknown_since = guest.unknown_since;
    observed.run_as_of = guest.run_as_of;
    observed.configuration_as_of = guest.configuration_as_of;
    observed.hello_at = guest.controller.map(|controller| controller.hello_at);
    let problems = guest.conditions.into_iter();
    StateGuest {
        uid: guest.uid,
        name: guest.name,
        // The document is the hub's own word; a report is the host's.
        customer: desired.map(|desired| desired.customer.clone()).or(guest.customer),
        desired: desired.map(|desired| Box::new(desired.clone())),
        current: Some(current),
        last_applied: guest.fields.into_iter().map(Into::into).collect(),
        protection,
        conditions,
        problems: problems.map(|one| GuestProblem { code: one.code, observed: one.message }).collect(),
        observed,
    }
}

fn protection(
    report: Option<Box<holdfast_protocol::protection::ProtectionReport>>,
) -> (Option<GuestProtection>, GuestObserved) {
    let Some(report) = report else { return (None, GuestObserved::default()) };
    let posture = report.posture.as_ref().map(|posture| posture.is);
    let protection = GuestProtection { posture, in_force: report.in_force, held: report.held };
    let observed = GuestObserved {
        posture_why: report.posture.map(|posture| posture.why).unwrap_or_default(),
        newest: report.newest,
        tested: report.tested,
        ..GuestObserved::default()
    };
    (Some(protection), observed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const UID: &str = "018f3c1e-6b1f-7c1d-9d0b-000000000001";
    const PLANTED: &str = "planted-credential-do-not-show";

    fn source() -> StateSource {
        let view = json!({ "id": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "box7", "state": "online",
            "seen_at": "2026-11-21T12:00:00Z", "wanted": 1, "held": 1, "guests_running": 1, "guests": 1,
            "attention": 0, "certificate_ends_at": "2027-11-21T12:00:00Z", "labels": { "site": "vienna" } });
        let guest = |number: u32| {
            json!({ "uid": format!("018f3c1e-6b1f-7c1d-9d0b-{number:012}"),
            "name": format!("web-{number}"), "customer": "acme", "run": "running", "golden": "2026.11.1",
            "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
            "network": { "bridge": "vmbr0", "address": format!("10.0.0.{}/24", 4 + number), "gateway": "10.0.0.1" } })
        };
        let document = json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30,
            "guests": [guest(1), guest(2)] });
        let desired = json!({ "generation": 1, "content": "ab", "author": "ada", "reason": "because",
            "put_at": "2026-11-20T12:00:00Z", "document": document.to_string() });
        let sections = json!({ "guests": [
            { "uid": UID, "name": "web-1", "customer": "acme", "vmid": 5001, "status": "managed", "run": "stopped",
              "fields": [{ "field": "run", "desired": "running", "observed": "stopped" }],
              "protection": { "posture": { "is": "attention", "why": ["the newest backup is 30 hours old"] } } },
            { "name": "other", "vmid": 100, "status": "foreign", "run": "running" } ],
          "waiting": [{ "effect": "web-9 would go", "reason": "x", "payload": PLANTED }],
          "conditions": { "conditions": [
            { "code": "GUEST_BROKEN", "subject": { "kind": "guest", "uid": UID }, "since": "2026-11-21T11:00:00Z",
              "severity": "critical", "message": "it does not start", "remedy": "look" }] } });
        StateSource {
            view: serde_json::from_value(view).unwrap(),
            number: 1,
            sections: serde_json::from_value(sections).unwrap(),
            desired: Some(serde_json::from_value(desired).unwrap()),
        }
    }

    #[test]
    fn document_and_report_are_brought_together_by_uid() {
        let state = host_state(source());
        let names: Vec<_> = state.guests.iter().map(|guest| guest.name.as_str()).collect();
        assert_eq!(names, ["web-1", "web-2", "other"]);
        let [web, unreported, foreign] = state.guests.as_slice() else { panic!("{names:?}") };
        assert!(web.desired.is_some() && web.current.as_ref().unwrap().vmid.is_some());
        assert_eq!((web.conditions.len(), web.last_applied.len()), (1, 1));
        assert_eq!(web.observed.posture_why, ["the newest backup is 30 hours old"]);
        assert!(unreported.current.is_none() && unreported.desired.is_some());
        assert!(foreign.desired.is_none() && foreign.uid.is_none());
        assert_eq!((state.conditions.len(), state.labels), (0, vec!["site=vienna".to_owned()]));
        assert_eq!(state.waiting, ["web-9 would go"]);
    }

    #[test]
    fn payloads_and_credentials_are_not_shown() {
        let mut source = source();
        let sealed = format!("YWdlLWVuY3J5cHRpb24ub3JnL3Yx{}", "planted0".repeat(4));
        let target = json!({ "name": "nas", "class": "slow", "role": "local-backup", "state": "attached",
            "backend": { "cifs": { "server": "10.0.0.9", "share": "backup" } }, "label": "N1", "default": true,
            "schedulable": true, "creds": sealed });
        let shown = desired_target(&serde_json::from_value(target).unwrap());
        assert!(shown.credentials && !serde_json::to_string(&shown).unwrap().contains("planted0"));
        source.sections.guests = None;
        let text = serde_json::to_string(&host_state(source)).unwrap();
        assert!(!text.contains(PLANTED), "{text}");
    }
}
