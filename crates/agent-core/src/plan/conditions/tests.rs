//! Tests of conditions: each comes from its cause, and goes with it.

mod beginnings;
mod codes;
mod gathered;
mod guests;
mod hardware;
mod neighbours;
mod others;
mod packages;
mod tiers;
mod tunnels;
mod usage;

use std::collections::BTreeSet;

use holdfast_protocol::break_glass::BreakGlassStatus;
use holdfast_protocol::condition::{ConditionSet, ReportedCondition};
use holdfast_protocol::report::{GuestReport, HostSection};
use serde_json::{Value, json};

use super::source::{Deriver, deriver};
use super::*;
use crate::model::storage::FirstPoll;
use crate::plan::tests::uid;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A token that is to be renewed every 30 days, made so many days from now.
fn token_made(days: i64) -> TokenAge {
    TokenAge { role: "observe".to_owned(), made_at: at(days * 86_400), renewed_after_days: 30 }
}

/// What a host knows, whole. Nothing is wrong with it.
struct Box7 {
    now: Timestamp,
    wall: Timestamp,
    view: HostSnapshot,
    storage: StorageView,
    fill_history: FillHistory,
    hardware: HardwareView,
    levels: UsageLevels,
    tunnels: TunnelsView,
    builds: Option<AgentBuilds>,
    break_glass: Option<BreakGlassStatus>,
    maintenance: Option<HostMaintenance>,
    jobs: Vec<JobReport>,
    codes: Codes,
    targets: Vec<TargetRecord>,
    records: Option<RecordsFault>,
    certificate_ends_at: Timestamp,
    token_ages: Vec<TokenAge>,
}

impl Box7 {
    fn well() -> Self {
        Self {
            now: at(0),
            wall: at(0),
            view: HostSnapshot {
                seen_at: Some(at(0)),
                guests: vec![guest(1, json!({}))],
                host: Some(section(json!([]))),
                ..HostSnapshot::default()
            },
            storage: StorageView { looked: FirstPoll::Yes, ..StorageView::default() },
            fill_history: FillHistory::default(),
            hardware: hardware::well(),
            levels: usage::well(),
            tunnels: TunnelsView { reports: Some(Vec::new()) },
            builds: None,
            break_glass: None,
            maintenance: None,
            jobs: Vec::new(),
            codes: Codes::default(),
            targets: Vec::new(),
            records: None,
            certificate_ends_at: at(30 * 86_400),
            token_ages: vec![token_made(-36)],
        }
    }

    /// With one guest, which differs from a healthy one by these fields.
    fn with_guest(fields: Value) -> Self {
        let mut host = Self::well();
        host.view.guests = vec![guest(1, fields)];
        host
    }

    fn known(&self) -> HostKnowledge<'_> {
        HostKnowledge {
            now: self.now,
            wall: self.wall,
            view: &self.view,
            storage: &self.storage,
            fill_history: &self.fill_history,
            hardware: &self.hardware,
            levels: &self.levels,
            tunnels: &self.tunnels,
            builds: self.builds.as_ref(),
            break_glass: self.break_glass.as_ref(),
            maintenance: self.maintenance.as_ref(),
            jobs: &self.jobs,
            codes: &self.codes,
            targets: &self.targets,
            records: self.records.clone(),
            certificate_ends_at: self.certificate_ends_at,
            token_ages: &self.token_ages,
        }
    }

    fn found(&self) -> Vec<Finding> {
        derive(&self.known())
    }

    fn codes(&self) -> Vec<&'static str> {
        let mut codes: Vec<&str> = self.found().iter().map(|finding| finding.code.as_str()).collect();
        codes.sort_unstable();
        codes
    }

    /// The next report after `last`.
    fn after(&self, last: &[ReportedCondition]) -> Vec<ReportedCondition> {
        let coverage =
            Coverage::of(&self.view, &self.storage, (&self.hardware, self.wall), &self.levels, &self.tunnels);
        let next = merge(last, self.found(), &coverage, self.now);
        ConditionSet::collect(next).conditions().to_vec()
    }
}

fn section(storages: Value) -> HostSection {
    serde_json::from_value(json!({
        "node": "pve1", "proxmox_version": "9.2.11", "cpus": 8, "memory_bytes": 8_000_000_000_u64,
        "memory_used_bytes": 1_000_000_000, "storages": storages
    }))
    .unwrap()
}

fn guest(n: u32, fields: Value) -> GuestReport {
    let mut guest = json!({
        "uid": uid(n), "name": format!("web-{n}"), "vmid": 299 + n, "status": "managed", "run": "running",
        "wanted": "running"
    });
    let all = guest.as_object_mut().unwrap();
    all.extend(fields.as_object().unwrap().clone());
    serde_json::from_value(guest).unwrap()
}

fn names(conditions: &[ReportedCondition]) -> Vec<&'static str> {
    conditions.iter().map(|condition| condition.code.as_str()).collect()
}

#[test]
fn a_host_on_which_all_is_well_has_no_condition() {
    assert_eq!(Box7::well().codes(), [""; 0]);
}

/// A code without a party that derives it would never be raised.
#[test]
fn each_code_has_a_deriver() {
    let of = |wanted: fn(Deriver) -> bool| {
        let codes = ConditionCode::ALL.iter().filter(|code| wanted(deriver(**code)));
        codes.map(|code| code.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        of(|deriver| deriver == Deriver::Hub),
        [
            "AUDIT_CHAIN_BROKEN",
            "GOLDEN_DIFFERS",
            "HOST_FROZEN",
            "HOST_LATE",
            "HOST_NEVER_SEEN",
            "HOST_OFFLINE",
            "HUB_BACKUP_OLD",
            "HUB_DATABASE_FAILING",
            "HUB_DISK_FULL",
            "HUB_SETTINGS_REFUSED",
            "RECEIVER_FAILING",
            "ROLLOUT_HELD",
            "TOKEN_EXPIRING"
        ]
    );
    let agent: BTreeSet<&str> = of(|deriver| matches!(deriver, Deriver::Agent(_))).into_iter().collect();
    let raised: BTreeSet<&str> = faulty().iter().flat_map(|(codes, _)| codes.split(' ')).collect();
    assert_eq!(agent, raised, "each of the agent's codes is raised by a test");
}

/// Hosts on which something is wrong, each with the codes of that.
fn faulty() -> Vec<(&'static str, Box7)> {
    guests::faulty()
        .into_iter()
        .chain(tiers::faulty())
        .chain(others::faulty())
        .chain(usage::faulty())
        .chain(neighbours::faulty())
        .chain(hardware::faulty())
        .chain(packages::faulty())
        .chain(tunnels::faulty())
        .chain(codes::faulty())
        .collect()
}

#[test]
fn each_cause_raises_its_codes_and_no_others() {
    for (codes, host) in faulty() {
        assert_eq!(host.codes().join(" "), codes, "{:?}", host.found());
        for finding in host.found() {
            assert!(
                !finding.message.is_empty() && finding.since.is_none_or(|since| since <= host.now),
                "{finding:?}"
            );
        }
        let reported = host.after(&[]);
        assert_eq!(names(&reported).join(" "), codes, "the table has each for its subject");
        // With its cause it goes.
        assert_eq!(names(&Box7::well().after(&reported)), [""; 0], "{codes}");
    }
}
