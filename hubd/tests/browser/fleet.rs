//! A fleet as a small provider has it, reported by its hosts.
//!
//! In: a hub without hosts. Out: six hosts in three places, twelve guests of three customers, alerts, work, a job that
//! waits, and a host that asks to be let in. Everything is sent as agents and operators send it. Names are the same in each
//! run; times are as long ago as they always are.

use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::enrol::EnrollmentRequest;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::Sections;
use hubd::clock::{Clock as _, SystemClock};
use jiff::{SignedDuration, Timestamp};
use rcgen::KeyPair;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::site::Site;
use crate::world::{Host, csr};

/// A guest: number, host, name, customer, VMID and what is special about it.
type Row = (u128, &'static str, &'static str, &'static str, u32, Special);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    Nothing,
    Stopped,
    BackupLate,
    NeverTested,
    /// It waits for a signature.
    Left,
    Changed,
}

const GUESTS: [Row; 12] = [
    (1, "fra-1", "web-shop", "acme", 140, Special::Changed),
    (2, "fra-1", "mail", "acme", 141, Special::Nothing),
    (3, "fra-1", "ledger", "blue-harbour", 142, Special::BackupLate),
    (4, "fra-2", "wiki", "blue-harbour", 143, Special::Nothing),
    (5, "fra-2", "build", "quarry", 144, Special::NeverTested),
    (6, "fra-2", "registry", "quarry", 145, Special::Left),
    (7, "hel-1", "db-primary", "acme", 140, Special::Nothing),
    (8, "hel-1", "db-replica", "acme", 141, Special::Stopped),
    (9, "hel-1", "files", "quarry", 142, Special::Nothing),
    (10, "hel-2", "payroll", "blue-harbour", 140, Special::Nothing),
    (11, "hel-2", "intranet", "blue-harbour", 141, Special::Nothing),
    (12, "hel-2", "monitoring", "quarry", 142, Special::Nothing),
];

/// The rest of the hosts' names, and the customers: addresses that differ only in these are of one page.
pub const NAMES: [&str; 9] =
    ["fra-1", "fra-2", "hel-1", "hel-2", "vie-1", "vie-2", "acme", "blue-harbour", "quarry"];

/// Names of guests that are not this customer's.
pub fn guests_of_others(customer: &str) -> Vec<&'static str> {
    GUESTS.iter().filter(|row| row.3 != customer).map(|row| row.2).collect()
}

pub fn uid(number: u128) -> GuestUid {
    GuestUid::new(Uuid::from_u128(0x0193_a000_0000_7000_8000_0000_0000_0000 + number))
}

fn ago(minutes: i64) -> Timestamp {
    SystemClock.now() - SignedDuration::from_mins(minutes)
}

pub struct Fleet {
    pub hosts: Vec<(String, Host)>,
}

impl Fleet {
    pub async fn start(site: &Site) -> Self {
        let admin = site.admin();
        for (name, shown) in
            [("acme", "Acme Trading"), ("blue-harbour", "Blue Harbour"), ("quarry", "Quarry")]
        {
            let customer = json!({ "name": name, "fields": { "display_name": shown } });
            admin.send::<Value>(Method::POST, "/v1/customers", &customer).await.data(StatusCode::CREATED);
        }
        let mut hosts = Vec::new();
        for name in ["fra-1", "fra-2", "hel-1", "hel-2", "vie-1"] {
            let host = site.enrol(name).await;
            // The last one was enrolled and has not spoken yet.
            if name != "vie-1" {
                report(name, &host).await;
            }
            let labels = json!({ "set": { "site": name.split('-').next().unwrap(), "tier": "standard" } });
            let path = format!("/v1/hosts/{name}/labels");
            admin.send::<Value>(Method::POST, &path, &labels).await.data(StatusCode::OK);
            hosts.push((name.to_owned(), host));
        }
        let key = KeyPair::generate().unwrap();
        let request =
            EnrollmentRequest { csr_pem: csr(&key), claimed_name: "vie-2".parse().unwrap(), sealing: None };
        let asked = site.anyone().send::<Value>(Method::POST, "/v1/enrollment-requests", &request).await;
        asked.data(StatusCode::ACCEPTED);
        let put = admin.put_desired::<Value>("fra-1", Some("\"0\""), document()).await;
        put.data(StatusCode::OK);
        let job = json!({ "job": Uuid::from_u128(77), "blob": "signed, and opened by its host alone" });
        admin.send::<Value>(Method::POST, "/v1/hosts/fra-1/jobs", &job).await.data(StatusCode::CREATED);
        let act = json!({ "kind": "backup_now", "guest": uid(1), "tier": "local" });
        let order = json!({ "act": act, "life_s": 3600 });
        let made = admin.send::<Value>(Method::POST, "/v1/hosts/fra-1/work-orders", &order).await;
        made.data(StatusCode::CREATED);
        Self { hosts }
    }

    pub fn host(&self, name: &str) -> &Host {
        &self.hosts.iter().find(|(one, _)| one == name).unwrap().1
    }
}

/// Lets a host say that something is wrong with it, and nothing else that was wrong. It is an alert at once.
pub async fn complain(host: &Host, sequence: u64, message: &str) {
    let wrong =
        ReportedCondition::new(ConditionCode::RecordsBroken, Subject::Host {}, SystemClock.now(), message);
    let sections = Sections { conditions: Some(ConditionSet::collect([wrong])), ..Sections::default() };
    host.check_in(&host.changed(sequence, 0, sections), "0s").await.data(StatusCode::OK);
}

async fn report(name: &str, host: &Host) {
    let mut request = host.full(1, 0);
    let conditions = ConditionSet::collect(conditions(name));
    let sections = json!({
        "agent": request.sections.agent,
        "host": {
            "node": name, "proxmox_version": "9.2.11", "cpus": 24, "memory_bytes": 128_u64 << 30,
            "memory_used_bytes": 71_u64 << 30,
            "storages": [
                { "name": "local", "state": "active", "total_bytes": 240_u64 << 30, "used_bytes": 31_u64 << 30 },
                { "name": "tank", "state": "active", "total_bytes": 3_600_u64 << 30, "used_bytes": 3_310_u64 << 30 },
                { "name": "backup2", "state": "active", "total_bytes": 7_400_u64 << 30, "used_bytes": 2_950_u64 << 30 }
            ]
        },
        "guests": GUESTS.iter().filter(|row| row.1 == name).map(guest).collect::<Vec<_>>(),
        "operations": operations(name),
        "waiting": waiting(name),
        "trust": { "epoch": 1, "policy_version": 0, "audit": { "number": 418, "chain": "5f".repeat(32) } },
        "conditions": conditions,
    });
    request.sections = serde_json::from_value(sections).unwrap();
    host.check_in(&request, "0s").await.data(StatusCode::OK);
}

fn conditions(name: &str) -> Vec<ReportedCondition> {
    let tier =
        |number| serde_json::from_value(json!({ "kind": "tier", "uid": uid(number), "tier": "local" }));
    match name {
        "fra-1" => vec![ReportedCondition::new(
            ConditionCode::BackupLate,
            tier(3).unwrap(),
            ago(190),
            "the newest local backup of ledger is 29 h old; its policy promises one in 24 h",
        )],
        "fra-2" => vec![ReportedCondition::new(
            ConditionCode::ClockUnkept,
            Subject::Host {},
            ago(55),
            "no time service is active, and the clock is 4 s behind the hub's",
        )],
        _ => Vec::new(),
    }
}

fn guest(row: &Row) -> Value {
    let (number, _, name, customer, vmid, special) = *row;
    let late = special == Special::BackupLate;
    let taken = ago(if late { 29 * 60 } else { 7 * 60 + 13 });
    let why = match special {
        Special::BackupLate => {
            json!({ "is": "attention", "why": ["the newest local backup is older than its policy promises"] })
        }
        Special::NeverTested => {
            json!({ "is": "attention", "why": ["no local backup of it was ever restored and checked"] })
        }
        _ => json!({ "is": "protected", "why": ["a local backup was restored and checked 3 days ago"] }),
    };
    let mut protection = json!({
        "in_force": promise(),
        "posture": why,
        "newest": [{ "tier": "local", "taken_at": taken, "bytes": 4_290_000_000_u64, "took_ms": 93_400 }],
    });
    if special != Special::NeverTested {
        protection["tested"] = json!([{
            "tier": "local", "trend": { "is": "steady", "took_s": 214, "usual_s": 209 },
            "last": { "at": ago(3 * 24 * 60), "taken_at": ago(3 * 24 * 60 + 180), "verdict": "proved",
                "why": "all stacks were healthy, and its canary was as it was", "took": { "restore_s": 171, "up_s": 43 } }
        }]);
    }
    let mut report = json!({
        "uid": uid(number), "name": name, "customer": customer, "vmid": vmid, "status": "managed",
        "run": "running", "wanted": "running", "address": format!("10.66.0.{}/24", 100 + number),
        "size": { "cores": 2, "memory_mib": 4096, "swap_mib": 0, "rootfs_gib": 16 },
        "controller": { "version": "0.1.0", "hello_at": ago(1), "health": "well" }, "protection": protection,
    });
    match special {
        Special::Stopped => {
            report["run"] = json!("stopped");
            report["conditions"] = json!([{ "code": "UNAVAILABLE", "message": "it was stopped by hand; it is started again in its window" }]);
        }
        Special::Left => report["status"] = json!("unmanaged"),
        Special::Changed => {
            report["fields"] = json!([{ "field": "size.memory_mib", "desired": "4096", "observed": "2048",
                "applied": { "value": "4096", "at": ago(26 * 60) } }]);
        }
        Special::Nothing | Special::BackupLate | Special::NeverTested => {}
    }
    report
}

fn promise() -> Value {
    json!({ "tiers": { "local": backup() }, "volumes": [] })
}

fn backup() -> Value {
    json!({
        "target": "backup2", "retention": { "keep": { "last": 3, "daily": 14 } }, "consistency": "application",
        "schedule": { "at": ["02:30"], "zone": "Europe/Berlin", "jitter_min": 15, "window_min": 120 },
        "restore_test_days": 7
    })
}

fn operations(name: &str) -> Value {
    let steps = |last: &str| {
        json!([{ "name": "judge", "status": "done" }, { "name": "back_up", "status": last,
            "note": "INFO: 41% (1.7 GiB of 4.0 GiB) in 38s" }])
    };
    match name {
        "fra-1" => json!([
            { "id": Uuid::from_u128(901), "kind": "quiesced_backup", "guest": uid(2), "name": "mail", "vmid": 141,
                "status": "running", "steps": steps("intended"), "opened_at": ago(2) },
            { "id": Uuid::from_u128(902), "kind": "reconfigure", "guest": uid(1), "name": "web-shop", "vmid": 140,
                "status": "done", "steps": steps("done"), "opened_at": ago(90), "ended_at": ago(89) }
        ]),
        "hel-1" => json!([
            { "id": Uuid::from_u128(903), "kind": "restore_test", "guest": uid(9), "name": "files", "vmid": 142,
                "status": "undone", "steps": steps("undone"), "opened_at": ago(300), "ended_at": ago(290),
                "problem": { "code": "UNAVAILABLE", "message": "the storage tank did not answer in time" } }
        ]),
        _ => json!([]),
    }
}

fn waiting(name: &str) -> Value {
    if name != "fra-2" {
        return json!([]);
    }
    json!([{ "guest": uid(6), "effect": "destroys the guest registry (VMID 145) with its volumes",
        "reason": "the document names it no more; what holds customer data goes by a signature",
        "payload": "{\"verb\":\"destroy_guest\",\"guest\":\"registry\",\"volumes\":[\"tank:subvol-145-disk-0\"]}",
        "last_backup": ago(433), "last_proof": ago(3 * 24 * 60) }])
}

/// What fra-1 should be.
fn document() -> String {
    let guests = GUESTS.iter().filter(|row| row.1 == "fra-1").map(|(number, _, name, customer, _, _)| {
        json!({
            "uid": uid(*number), "name": name, "customer": customer, "run": "running", "golden": "2026.11.1",
            "size": { "cores": 2, "memory_mib": 4096, "swap_mib": 0, "rootfs_gib": 16 },
            "network": { "bridge": "vmbr0", "address": format!("10.66.0.{}/24", 100 + number), "gateway": "10.66.0.1" },
            "volumes": [], "policy": "nightly"
        })
    });
    json!({
        "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30,
        "policies": [{ "name": "nightly", "tiers": { "local": backup() } }],
        "guests": guests.collect::<Vec<_>>()
    })
    .to_string()
}
