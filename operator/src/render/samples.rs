//! Sample data of snapshots and unit tests.

use holdfast_protocol::audit::{AuditLine, Fields, chain, hex};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::ConditionSet;
use holdfast_protocol::desired::DesiredDocument;
use holdfast_protocol::golden_builds::ComparedBuilds;
use holdfast_protocol::guest_audit::GuestAuditView;
use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::audit::AuditRecord;
use holdfast_protocol::operation::{OperationKind, OperationStatus, OperationView, StepStatus, StepView};
use holdfast_protocol::operator::{DesiredVersion, EnrollmentRequestView, EventView, HostView};
use holdfast_protocol::report::{GuestReport, Sections, WaitingForSignature};
use jiff::Timestamp;
use restore_certificate::PublicKey;
use restore_certificate::verify::{HubTrust, Proof};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

pub fn now() -> Timestamp {
    "2026-11-21T03:00:00Z".parse().unwrap()
}

pub fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn id(n: u128) -> Uuid {
    Uuid::from_u128(0x018f_3c1e_6b1f_7c1d_9d0a_0000_0000_0000 + n)
}

pub fn guest_uid() -> GuestUid {
    GuestUid::new(id(1))
}

/// Two records of a chain, with a line of the host between them.
pub fn guest_audit() -> GuestAuditView {
    let record = |number: i64, before: &[u8], (action, detail): (&str, &str)| {
        let (guest, operation) = (guest_uid().to_string(), Some(id(7).to_string()));
        let at_us = 1_795_000_000_000_000 + number;
        let operation_text = operation.as_deref();
        let fields = Fields { number, at_us, action, guest: Some(&guest), operation: operation_text, detail };
        let hash = hex(&chain(before, fields));
        let (action, detail) = (action.to_owned(), detail.to_owned());
        let line = AuditLine { number, at_us, action, guest: Some(guest), operation, detail, chain: hash };
        AuditRecord { line, before: hex(before) }
    };
    let records = vec![
        record(1, &[], ("operation_opened", "backup: requested by the guest")),
        record(3, &[7; 32], ("step_succeeded", "back_up")),
    ];
    GuestAuditView { records, earlier: Vec::new() }
}

fn guest(n: u32, memory_mib: u32) -> Value {
    json!({
        "uid": id(n.into()), "name": format!("web-{n}"), "customer": "acme",
        "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": memory_mib, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.0.9{n}/24"), "gateway": "10.66.0.1" },
        "volumes": [
            { "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" },
            { "name": "media", "mount": "/srv/media", "size_gib": 100, "kind": { "bulk": { "none": "rebuilt from the origin" } } }
        ]
    })
}

/// Two guests, generation 7.
pub fn document() -> DesiredDocument {
    read(json!({ "schema": "holdfast.desired/v1", "generation": 7, "poll_interval_s": 30,
        "guests": [guest(1, 512), guest(2, 512)] }))
}

/// One grown and stopped, one no longer named, one new.
pub fn changed_document() -> DesiredDocument {
    let mut first = guest(1, 1024);
    first["run"] = json!("stopped");
    first["size"]["rootfs_gib"] = json!(6);
    first["volumes"] = json!([{ "name": "db", "mount": "/srv/db", "size_gib": 16, "kind": "hot" }]);
    first["network"]["vlan"] = json!(12);
    first["network"]["mtu"] = json!({ "bytes": 1400 });
    first["limits"] = json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 50 });
    let mut third = guest(3, 256);
    third["vmid"] = json!(140);
    third["size"]["cores"] = json!(1);
    read(
        json!({ "schema": "holdfast.desired/v1", "generation": 8, "poll_interval_s": 10, "guests": [first, third],
            "overcommit": { "cores_percent": 200 },
            "customer_limits": [{ "customer": "acme", "cores": 16, "memory_mib": 32_768 }] }),
    )
}

pub fn version(document: &DesiredDocument) -> DesiredVersion {
    read(json!({
        "generation": document.generation, "content": "9f86d081884c7d659a2feaa0c55ad015", "author": "ada",
        "reason": "two guests for acme", "put_at": "2026-11-21T02:12:00Z",
        "document": serde_json::to_string(document).unwrap()
    }))
}

pub fn hosts() -> Vec<HostView> {
    read(json!([
        { "id": id(101), "name": "box7", "state": "online", "seen_at": "2026-11-21T02:59:48Z", "wanted": 7, "held": 7,
          "agent_version": "0.1.0", "guests_running": 12, "guests": 12, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        { "id": id(102), "name": "attic", "state": "new", "wanted": 0, "held": 0,
          "guests_running": 0, "guests": 0, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        { "id": id(103), "name": "box9", "state": "online", "seen_at": "2026-11-21T02:59:58Z", "wanted": 5, "held": 4,
          "agent_version": "0.1.0", "guests_running": 2, "guests": 3, "attention": 2, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        { "id": id(104), "name": "box8", "state": "offline", "seen_at": "2026-11-20T21:00:00Z", "wanted": 5, "held": 5,
          "agent_version": "0.1.0", "guests_running": 4, "guests": 4, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        { "id": id(106), "name": "box6", "state": "degraded", "seen_at": "2026-11-21T02:59:50Z", "wanted": 5, "held": 5,
          "degraded": { "since": "2026-11-21T02:41:07Z", "reason": "UNAVAILABLE: Proxmox cannot be asked: connection refused" },
          "agent_version": "0.1.0", "guests_running": 0, "guests": 4, "attention": 1, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        { "id": id(107), "name": "box5", "state": "degraded", "seen_at": "2026-11-21T02:59:51Z", "wanted": 5, "held": 5,
          "degraded": { "since": "2026-11-21T01:00:00Z", "condition": "DISK_FULL", "reason": "/var/lib/holdfast has 3 MiB free" },
          "agent_version": "0.1.0", "guests_running": 4, "guests": 4, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z",
          "maintenance_until": "2026-11-21T05:00:00Z" },
        { "id": id(108), "name": "cellar", "state": "never_seen", "wanted": 0, "held": 0,
          "guests_running": 0, "guests": 0, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        { "id": id(105), "name": "old", "state": "revoked", "seen_at": "2026-10-01T00:00:00Z", "wanted": 5, "held": 5,
          "guests_running": 0, "guests": 0, "attention": 0, "certificate_ends_at": "2026-10-20T00:00:00Z" }
    ]))
}

/// Ten backups kept, of which the document would keep one.
fn promise(last: u32) -> Value {
    json!({
        "tiers": { "local": {
            "target": "backup2",
            "schedule": { "at": ["02:30", "Sun 12:00"], "zone": "Europe/Berlin", "jitter_min": 15, "window_min": 120 },
            "retention": { "keep": { "last": last, "daily": 14 } }, "consistency": "application", "restore_test_days": 30
        } },
        "volumes": [{ "name": "db", "kind": "hot" }, { "name": "media", "kind": { "bulk": { "none": "rebuilt from the\u{202e} origin" } } }]
    })
}

/// The same document, with its first guest under a policy.
pub fn under_policy(last: u32) -> DesiredDocument {
    let mut document = document();
    document.policies = vec![read(json!({ "name": "usual", "tiers": promise(last)["tiers"] }))];
    document.guests[0].policy = Some("usual".parse().unwrap());
    document
}

fn protected() -> Value {
    json!({ "in_force": promise(10), "desired": promise(1),
        "held": ["local retention: from 10 last, 14 daily to 1 last, 14 daily"],
        "posture": { "is": "attention", "why": ["no local backup of it was ever restored and checked"] },
        "tested": [{ "tier": "local", "trend": { "is": "slower", "took_s": 864, "usual_s": 480 },
            "last": { "at": "2026-11-21T01:00:00Z", "taken_at": "2026-11-20T01:30:00Z", "verdict": "booted_only",
                "why": "it was restored and stayed up for 300 s, and its controller did not speak: is guestd in this guest?\u{202e}",
                "took": { "restore_s": 560, "up_s": 304 } } },
            { "tier": "off_site", "trend": { "is": "too_few", "tests": 0, "needed": 4 },
            "last": { "at": "2026-11-21T02:30:00Z", "taken_at": "2026-11-20T23:30:00Z", "verdict": "not_run",
                "why": "the host has 512 MiB of memory free, and a test wants 2048 so that no guest goes short" } }] })
}

/// What box5 reports as wrong.
pub fn conditions() -> ConditionSet {
    read(json!({ "conditions": [
        { "code": "DISK_FULL", "subject": { "kind": "host" }, "since": "2026-11-21T01:00:00Z", "severity": "critical",
          "message": "/var/lib/holdfast has 3 MiB free", "remedy": "Free room: `df -h /var/lib/holdfast` shows the disk." },
        { "code": "GUEST_CRASHED", "subject": { "kind": "guest", "uid": id(1) }, "since": "2026-11-21T02:58:00Z",
          "severity": "warning", "message": "it stopped by itself", "remedy": "See what was done about it." },
        { "code": "BACKUP_LATE", "subject": { "kind": "tier", "uid": id(2), "tier": "local" }, "since": "2026-11-20T02:58:00Z",
          "severity": "critical", "message": "the newest is 30 h old", "remedy": "See what keeps the next one." }
    ], "left_out": 2 }))
}

pub fn guests() -> Vec<GuestReport> {
    let size = json!({ "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 });
    read(json!([
        { "uid": id(1), "name": "web-1", "vmid": 120, "status": "managed", "run": "running", "wanted": "running",
          "golden": "2026.11.1", "golden_built_at": "2026-11-01T02:00:00Z", "run_as_of": "2026-11-21T02:55:10Z", "configuration_as_of": "2026-11-21T02:51:00Z", "size": size, "address": "10.66.0.91/24", "address_filter": "no_flag",
          "levels": { "cpu_percent": 95, "memory_percent": 80, "root_disk_percent": 90 }, "protection": protected(),
          "root_disk_data": { "at": "2026-11-21T02:30:00Z", "coverage": "partial", "items": [
            { "kind": "database", "path": "/var/lib/mysql", "bytes": 3_221_225_472_u64 }, { "kind": "home", "path": "/root", "bytes": 2_048 } ] },
          "controller": { "version": "0.1.0", "hello_at": "2026-11-21T02:59:30Z", "health": "well" } },
        { "uid": id(2), "name": "web-2", "vmid": 121, "status": "managed", "run": "running", "wanted": "running",
          "size": size, "address": "10.66.0.92/24", "address_filter": "set",
          "protection": { "posture": { "is": "unprotected", "why": ["it is in no backup policy: nothing of it is backed up"] } } },
        { "uid": id(4), "name": "shop", "status": "absent", "run": "unknown", "wanted": "running" },
        { "uid": id(5), "name": "blog", "vmid": 123, "status": "parked", "run": "stopped", "wanted": "running",
          "conditions": [{ "code": "PARKED", "message": "the restore ended without an exit status: look at task UPID:pve:0001 on the box" }] },
        { "uid": id(6), "name": "left", "vmid": 124, "status": "unmanaged", "run": "running" },
        { "name": "someone-elses\u{1b}[31m", "vmid": 900, "status": "foreign", "run": "running" }
    ]))
}

pub fn operation(status: OperationStatus) -> OperationView {
    let step = |name: &str, status, note: Option<&str>| StepView {
        name: name.to_owned(),
        status,
        note: note.map(str::to_owned),
        upid: None,
    };
    let ended = status.is_end();
    let (second, third) = if ended {
        (StepStatus::Done, StepStatus::Done)
    } else {
        (StepStatus::Intended, StepStatus::Pending)
    };
    OperationView {
        id: OperationId::new(id(201)),
        kind: OperationKind::Provision,
        guest: GuestUid::new(id(1)),
        other: None,
        name: "web-1".parse().unwrap(),
        vmid: Some(120.try_into().unwrap()),
        status,
        steps: vec![
            step("choose_vmid", StepStatus::Done, None),
            step("restore", second, (!ended).then_some("12%")),
            step("start", third, None),
        ],
        opened_at: "2026-11-21T02:58:00Z".parse().unwrap(),
        ended_at: ended.then(|| "2026-11-21T02:59:00Z".parse().unwrap()),
        problem: None,
        correlation_id: None,
        alike: None,
    }
}

pub fn waiting() -> WaitingForSignature {
    WaitingForSignature {
        guest: Some(GuestUid::new(id(1))),
        effect: "web-1: detach volume media".to_owned(),
        reason: "it holds the only copy of its data".to_owned(),
        payload: "{}".to_owned(),
        last_backup: None,
        last_proof: None,
    }
}

/// Samples of what a host may report as waiting: a guest to be destroyed, a bulk change, an action that no signature
/// allows, an entry that cannot be read.
pub fn waiting_to_sign() -> Vec<WaitingForSignature> {
    let destroy = json!({ "schema": "holdfast.job-draft/v1", "verb": "destroy_guest", "args": {}, "target": { "kind": "guest",
        "uid": id(1), "vmid": 120, "fingerprint": { "name": "web-1", "customer": "acme",
            "volumes": ["tank:120/vm-120-disk-0.raw", "tank:120/vm-120-disk-1.raw\u{202e}"] } } });
    let brake = json!({ "schema": "holdfast.job-draft/v1", "verb": "release_brake", "target": { "kind": "host" },
        "args": { "generation": 9, "document": "ab".repeat(32), "changes": [
            { "guest": id(1), "name": "web-1", "operation": "stop" },
            { "guest": id(2), "name": "web-2", "operation": "reconfigure" } ] } });
    let measure = |gib: u32| json!({ "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": gib, "volumes_gib": { "db": 4 } });
    let grow = json!({ "schema": "holdfast.job-draft/v1", "verb": "allow_growth", "target": { "kind": "host" },
        "args": { "guest": id(7), "name": "web-7", "from": measure(8), "to": measure(2_048) } });
    let loosen = json!({ "schema": "holdfast.job-draft/v1", "verb": "loosen_policy",
        "args": { "from": promise(10), "to": promise(1) }, "target": { "kind": "guest",
        "uid": id(3), "vmid": 122, "fingerprint": { "name": "web-3", "customer": "acme", "volumes": ["tank:122/vm-122-disk-0.raw"] } } });
    let one = |guest: Option<u128>, effect: &str, reason: &str, payload: String| WaitingForSignature {
        guest: guest.map(|n| GuestUid::new(id(n))),
        effect: effect.to_owned(),
        reason: reason.to_owned(),
        payload,
        last_backup: guest.map(|_| "2026-11-21T01:00:00Z".parse().unwrap()),
        last_proof: None,
    };
    vec![
        one(
            Some(1),
            "destroy guest web-1 (120), which the document no longer names",
            "customer data would be lost",
            destroy.to_string(),
        ),
        one(
            None,
            "stop, restart or resize 2 more guests at once, by document 9",
            "it is more than the brake allows at once",
            brake.to_string(),
        ),
        one(
            Some(2),
            "shrink the root disk of guest web-2 to 4 GiB",
            "no disk is made smaller in place",
            String::new(),
        ),
        one(Some(2), "something new", "a newer agent", "{}".to_owned()),
        one(
            Some(3),
            "protect guest web-3 less: local retention: from 10 last, 14 daily to 1 last, 14 daily",
            "customer data would be less protected",
            loosen.to_string(),
        ),
        one(
            Some(7),
            "grow the root disk of guest web-7 from 8 to 2048 (it asks 2040 GiB of disk, and 1012 of 1024 a day are left for this guest)",
            "it is more than documents may let guests grow within 24 hours",
            grow.to_string(),
        ),
    ]
}

/// Jobs at every stage.
pub fn jobs() -> Vec<holdfast_protocol::operator::JobView> {
    let report = |n: u128, state: &str, more: Value| {
        let mut report = json!({ "id": id(n), "blob": "00".repeat(32), "state": state, "verb": "destroy_guest", "guest": id(1),
            "signers": ["ada", "bob"], "taken_at": "2026-11-21T02:50:00Z" });
        report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        report
    };
    let job = |n: u128, mail: &str, report: Option<Value>| {
        let mut job = json!({ "id": id(n), "by": "ada", "submitted_at": "2026-11-21T02:49:00Z", "bytes": 1234, "queue_state": mail });
        if let Some(report) = report {
            job["report"] = report;
        }
        read(job)
    };
    let refused = json!({ "problem": { "code": "SIGNATURES_MISSING", "message": "destroy_guest needs 2 operators, 1 signed" } });
    let done = json!({ "operation": id(201), "ended_at": "2026-11-21T02:59:00Z" });
    vec![
        job(401, "queued", None),
        job(402, "answered", Some(report(402, "refused", refused))),
        job(403, "answered", Some(report(403, "waiting", json!({ "due_at": "2026-11-21T03:09:00Z" })))),
        job(404, "answered", Some(report(404, "under_way", json!({ "operation": id(201) })))),
        job(405, "answered", Some(report(405, "done", done))),
        job(406, "withdrawn", None),
    ]
}

/// What a host reports when [`document`] is reached.
pub fn converged_sections() -> Sections {
    let mut guests = guests();
    guests.truncate(2);
    Sections { guests: Some(guests), operations: Some(Vec::new()), ..sections() }
}

pub fn sections() -> Sections {
    let mut failed = operation(OperationStatus::Undone);
    failed.problem =
        Some(holdfast_protocol::envelope::ErrorBody::new(ErrorCode::Unavailable, "the storage went away"));
    let mut sections: Sections = read(json!({
        "agent": { "version": "0.1.0", "started_at": "2026-11-20T12:00:00Z", "problems": [] },
        "host": { "node": "pve", "ages": { "power_s": 40, "configuration_s": 140, "storage_s": 140, "version_s": 3620 }, "proxmox_version": "9.2.11", "cpus": 16, "memory_bytes": 68_719_476_736_u64,
            "memory_used_bytes": 21_474_836_480_u64, "storages": [
                { "name": "local-zfs", "state": "active", "total_bytes": 1_099_511_627_776_u64, "used_bytes": 322_122_547_200_u64 },
                { "name": "nas", "state": "unknown" } ],
            "assigned": { "guests": 12, "unread": 1, "cores": 40, "memory_mib": 61_440, "levels": { "cores_percent": 200 },
                "disks": [{ "storage": "local-zfs", "gib": 480 }, { "storage": "nas", "gib": 100 }] } },
        "desired": { "held": 7, "content": "9f86d081884c7d659a2feaa0c55ad015" },
        "guests": guests(),
    }));
    let mut earlier = failed.clone();
    earlier.opened_at = "2026-11-20T14:00:00Z".parse().expect("a time");
    sections.operations = Some(vec![earlier, operation(OperationStatus::Running), failed]);
    sections
}

/// Builders that agree on one image and differ on another; a third image was built once.
pub fn compared() -> Vec<ComparedBuilds> {
    let archive = |start: &str, version: &str, built: &[&str], received: &[&str]| {
        json!({ "sha256": start.repeat(32),
        "versions": [version], "built_by": built, "received_by": received })
    };
    read(json!([
        { "inputs_sha256": "0a".repeat(32), "archives": [archive("cd", "2026.11.10", &["box7", "box8"], &["box9"])] },
        { "inputs_sha256": "0b".repeat(32), "archives": [archive("ef", "2026.12.1", &["box7"], &[]), archive("ee", "2026.12.1", &["box8"], &[])] },
        { "inputs_sha256": "0c".repeat(32), "archives": [archive("ab", "2026.11.9", &["box7"], &[])] },
    ]))
}

/// Three goldens, of which the newest waits, and guests of two of them and of one that is gone.
pub fn with_goldens() -> Sections {
    let digest = |start: &str| start.repeat(32);
    let guest = |name: &str, golden: &str| json!({ "name": name, "status": "managed", "run": "running", "golden": golden });
    read(json!({
        "host": { "node": "pve", "proxmox_version": "9.2.11", "cpus": 16, "memory_bytes": 1, "memory_used_bytes": 1,
            "storages": [], "goldens": [
                { "version": "2026.11.9", "sha256": digest("ab"), "status": "approved" },
                { "version": "2026.11.10", "sha256": digest("cd"), "status": "approved", "build": {
                    "built_at": "2026-11-10T02:00:00Z", "inputs_sha256": digest("0a"), "size_bytes": 151_000_000, "origin": "built" } },
                { "version": "2026.12.1", "sha256": digest("ef"), "status": "waiting", "build": {
                    "built_at": "2026-11-20T02:00:00Z", "inputs_sha256": digest("0b"), "size_bytes": 151_000_000, "origin": "received" } } ] },
        "guests": [guest("web-1", "2026.11.9"), guest("web-2", "2026.11.10"), guest("mail", "2026.08.1")],
    }))
}

pub fn events() -> Vec<EventView> {
    read(json!([
        { "number": 12, "at": "2026-11-21T02:40:00Z", "kind": "heartbeat_missed", "host": id(104), "message": "box8 was not heard of for 3 polls" },
        { "number": 11, "at": "2026-11-21T02:12:00Z", "kind": "desired_changed", "host": id(101), "actor": "ada", "message": "generation 7: two guests for acme" },
        { "number": 10, "at": "2026-11-21T02:00:00Z", "kind": "host_enrolled", "host": id(999), "message": "enrolled" }
    ]))
}

pub fn enrollment_requests() -> Vec<EnrollmentRequestView> {
    let pin = format!("spki/sha256:{}", "ab".repeat(32));
    read(json!([
        { "id": id(301), "claimed_name": "attic", "fingerprint": pin, "first_at": "2026-11-21T02:50:00Z", "state": "pending" },
        { "id": id(302), "claimed_name": "box9", "fingerprint": pin, "first_at": "2026-11-01T00:00:00Z", "state": "approved", "host": id(103) },
        { "id": id(303), "claimed_name": "box3", "fingerprint": pin, "first_at": "2026-11-21T02:55:00Z", "state": "pending",
          "revoked": [{ "id": id(105), "seen_at": "2026-11-20T02:50:00Z" }] }
    ]))
}

const HOST_KEY: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDxTVkemnHyJ2Z06OyEcqoDEm9Tno9YgiyM9mogu/9rtlyfj5NK6kwabf0O5Hdj3H3faQxlVfSLQD8BrK2xn3dc=";
const HUB_KEY: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBMzcjrkFGbSoZhFLiTpquzICyiA6SDLbNLoltwexZtN54CRwsfiGweF6oopuSMWIKFyQOfTTvOaz3ZJTPO33bAk=";

/// A restore certificate of an off-site backup.
pub fn proof(trust: HubTrust) -> Proof {
    let key = |text| PublicKey::from_openssh(text).unwrap();
    let (mount, encrypted_with) = ("/srv/db", ["ab"; 32].join(":"));
    Proof {
        document: read(json!({
            "schema": "holdfast.restore_certificate/v1",
            "guest": { "uid": id(1), "name": "web-1", "customer": "acme" },
            "host": { "id": id(7), "name": "box7", "node": "pve1" },
            "backup": {
                "operation": id(20), "archive": "pbs1:backup/ct/300/2026-11-20T01:30:00Z",
                "taken_at": "2026-11-20T01:30:00Z", "bytes": 4_812_345_678_u64, "storage": "pbs1",
                "tier": "off_site", "key": encrypted_with
            },
            "test": {
                "operation": id(21),
                "began_at": "2026-11-21T01:00:00Z", "ended_at": "2026-11-21T01:14:24Z",
                "verdict": "proved", "reason": "stacks that are well by their own check: 1; canaries as they were: 2",
                "checks": [
                    { "check": "restored" }, { "check": "isolated" }, { "check": "reported" },
                    { "check": "stack", "name": "shop", "state": "healthy", "took_ms": 2048 },
                    { "check": "stack", "name": "mail", "state": "runs", "took_ms": 912 },
                    { "check": "canary", "sha256": "a".repeat(64) },
                    { "check": "canary", "mount": mount, "sha256": "b".repeat(64) }
                ],
                "took": { "restore_s": 820, "up_s": 44 }
            },
            "issued_at": "2026-11-21T01:14:40Z",
            "agent_version": "0.1.0"
        })),
        host_key: key(HOST_KEY),
        statement: read(json!({
            "schema": "holdfast.restore_countersign/v1",
            "document_sha256": "c".repeat(64), "host_signature_sha256": "d".repeat(64),
            "host": id(7), "host_name": "box7", "host_key": HOST_KEY,
            "certificate_generation": 3, "received_at": "2026-11-21T01:14:41Z"
        })),
        hub_key: key(HUB_KEY),
        trust,
    }
}
