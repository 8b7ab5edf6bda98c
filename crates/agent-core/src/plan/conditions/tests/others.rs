//! Tests of conditions of storage, host, codes and trust.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::Severity;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::report::WaitingForSignature;

use super::*;
use crate::model::condition_facts::Blocked;
use crate::plan::break_glass::tests::status as way_status;

fn host(change: impl FnOnce(&mut Box7)) -> Box7 {
    let mut host = Box7::well();
    change(&mut host);
    host
}

fn target(status: &str) -> Box7 {
    let target = json!({
        "name": "disk1", "backend": "a disk", "role": "local-backup", "class": "slow", "status": status, "since": at(-60),
        "reason": "it was pulled out"
    });
    host(|host| host.storage.targets = vec![serde_json::from_value(target).unwrap()])
}

/// A host with a storage that is so full, in percent.
fn filled(percent: u64, state: &str) -> Box7 {
    let storage = match state {
        "active" => {
            json!({ "name": "fast", "state": state, "total_bytes": 100_u64 << 30, "used_bytes": percent << 30 })
        }
        _ => json!({ "name": "fast", "state": state }),
    };
    host(|host| host.view.host = Some(section(json!([storage]))))
}

/// A host with a storage that was filled from one level to another in a day, in percent.
fn filling(from: u64, to: u64) -> Box7 {
    let (mut before, mut host) = (filled(from, "active"), filled(to, "active"));
    host.now = at(86_400);
    let storages = before.view.host.take().unwrap().storages;
    host.fill_history.note(&storages, at(0));
    host
}

fn problem(code: ErrorCode) -> Box7 {
    host(|host| host.view.facts.problems = vec![ErrorBody::new(code, "the facts")])
}

fn away(blocked: Blocked) -> Box7 {
    host(|host| (host.view.unobserved_since, host.view.blocked) = (Some(at(-60)), Some(blocked)))
}

fn waiting(guest: Option<GuestUid>, payload: &str) -> WaitingForSignature {
    WaitingForSignature {
        guest,
        effect: "destroy it".to_owned(),
        reason: "it needs a signature".to_owned(),
        payload: payload.to_owned(),
        last_backup: None,
        last_proof: None,
    }
}

fn job(fields: Value) -> Box7 {
    let mut job =
        json!({ "id": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "blob": "00", "taken_at": at(-40_000) });
    job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    host(|host| host.jobs = vec![serde_json::from_value(job).unwrap()])
}

/// A host with a maintenance that ended so many hours from now, and a guest that ran before it and is now as it is.
fn maintained(hours: i64, run: &str) -> Box7 {
    let kept = json!({
        "since": at(hours * 3_600 - 7_200), "until": at(hours * 3_600), "announced_until": at(hours * 3_600), "ended_at": null,
        "guests": [{ "uid": uid(1), "name": "web-1" }], "targets": [], "earlier": []
    });
    let mut host = Box7::with_guest(json!({ "run": run }));
    host.maintenance = Some(serde_json::from_value(kept).unwrap());
    host
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    vec![
        ("STORAGE_GONE", target("dropped")),
        ("STORAGE_GONE", target("absent")),
        ("STORAGE_GONE", target("refused")),
        ("STORAGE_WRONG", target("wrong")),
        ("STORAGE_FILLING", filled(90, "active")),
        ("STORAGE_FILLING", filling(40, 70)),
        ("PROXMOX_AWAY", away(Blocked::ByProxmox)),
        ("CLOCK_UNKEPT", problem(ErrorCode::ClockUnkept)),
        ("CLOCK_BEHIND", host(|host| host.view.facts.clock_behind = Some(at(9)))),
        ("GOLDEN_OLD", problem(ErrorCode::GoldenOld)),
        ("DISK_FULL", host(|host| host.records = Some(RecordsFault::Full("full".to_owned())))),
        ("RECORDS_BROKEN", host(|host| host.records = Some(RecordsFault::Broken("broken".to_owned())))),
        ("RECORDS_DAMAGED", host(|host| host.records = Some(RecordsFault::Damaged("damaged".to_owned())))),
        ("NEEDS_SIGNATURE", host(|host| host.view.waiting = vec![waiting(Some(uid(1)), "{}"); 2])),
        ("NEEDS_SIGNATURE", host(|host| host.storage.waiting = vec![waiting(None, "{}")])),
        (
            "BULK_CHANGE_HELD",
            host(|host| {
                host.view.waiting = vec![waiting(None, "{}")];
                host.view.facts.braked = Some(waiting(None, "{}"));
            }),
        ),
        ("GUEST_CRASHED MAINTENANCE_INCOMPLETE", maintained(-1, "stopped")),
        ("JOB_STALLED", job(json!({ "state": "under_way" }))),
        ("JOB_STALLED", job(json!({ "state": "waiting", "due_at": at(-30_000) }))),
        ("AGENT_UPDATE_FAILED", updated(json!({ "confirmed": "1.0.0", "failed": failed("2.0.0") }))),
        ("AGENT_UPDATE_FAILED", updated(json!({ "refused": refused(-6 * 24 * 3_600) }))),
        ("BREAK_GLASS_OPEN", host(|host| host.break_glass = Some(way_status(None)))),
        ("CERTIFICATE_EXPIRING", host(|host| host.certificate_ends_at = at(3 * 3600))),
        ("PROXMOX_TOKEN_OLD", host(|host| host.token_ages = vec![token_made(-1), token_made(-38)])),
    ]
}

fn updated(builds: serde_json::Value) -> Box7 {
    host(|host| host.builds = Some(serde_json::from_value(builds).unwrap()))
}

fn failed(version: &str) -> serde_json::Value {
    let manifest = "ab".repeat(32);
    json!({ "version": version, "manifest_sha256": manifest, "why": "it was not healthy", "at": at(-60) })
}

fn refused(seconds: i64) -> serde_json::Value {
    json!({ "code": "EXPIRED", "why": "the release ended", "at": at(seconds) })
}

#[test]
fn what_is_in_order_raises_nothing() {
    for host in [
        updated(json!({ "confirmed": "2.0.0" })),
        updated(json!({ "confirmed": "2.0.1", "failed": failed("2.0.0") })),
        updated(json!({ "refused": refused(-8 * 24 * 3_600) })),
        target("mounted"),
        target("by-proxmox"),
        target("held"),
        target("detached"),
        target("unmarked"),
        filled(89, "active"),
        filled(99, "unknown"),
        filling(40, 48),
        away(Blocked::ByRecords),
        problem(ErrorCode::Unavailable),
        host(|host| host.view.waiting = vec![waiting(Some(uid(1)), "")]),
        job(json!({ "state": "waiting", "due_at": at(60) })),
        job(json!({ "state": "done" })),
        host(|host| {
            let closed = json!({ "at": "2026-11-21T14:30:00Z", "cause": "expired" });
            host.break_glass = Some(way_status(Some(closed)));
        }),
        maintained(-1, "running"),
    ] {
        assert_eq!(host.codes(), [""; 0]);
    }
}

/// So the receivers of each customer hear of it, once.
#[test]
fn an_open_way_is_about_the_host_and_one_guest_of_each_customer() {
    let host = host(|host| {
        let of = |n, customer: &str| guest(n, json!({ "customer": customer }));
        host.view.guests = vec![of(1, "acme"), of(2, "acme"), of(3, "byte")];
        host.break_glass = Some(way_status(None));
    });
    let found: Vec<Subject> = host.found().into_iter().map(|finding| finding.subject).collect();
    assert_eq!(found, [Subject::Host {}, Subject::Guest { uid: uid(1) }, Subject::Guest { uid: uid(3) }]);
}

/// It lasts still, or is history.
#[test]
fn a_guest_that_is_not_back_is_named_after_the_end_and_for_a_week() {
    assert_eq!(maintained(1, "stopped").codes(), ["GUEST_CRASHED"]);
    assert_eq!(maintained(-8 * 24, "stopped").codes(), ["GUEST_CRASHED"]);
    let found = maintained(-1, "stopped").found();
    assert!(found[1].message.ends_with("guest web-1"), "{found:?}");
}

#[test]
fn an_almost_full_storage_is_critical() {
    for (level, severity) in [(94, Severity::Warning), (95, Severity::Critical)] {
        assert_eq!(filled(level, "active").after(&[])[0].severity, severity, "{level}");
    }
}

#[test]
fn a_storage_that_fills_fast_says_when_it_will_be_full() {
    let says = "storage fast of 100.0 GiB is 70 % full, and full within 2 days at its present rate; from 95 % on nothing new is \
                made on it";
    assert_eq!(filling(40, 70).found()[0].message, says);
}

/// A storage that does not answer has no level: what was said of it stays.
#[test]
fn a_level_that_is_not_known_is_not_well_again() {
    let before = filled(97, "active").after(&[]);
    assert_eq!(names(&filled(0, "unknown").after(&before)), ["STORAGE_FILLING"]);
    assert_eq!(names(&filled(89, "active").after(&before)), [""; 0]);
}
