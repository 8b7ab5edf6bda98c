//! Tests of the printed status.

use serde_json::json;

use super::*;
use crate::port::admin_socket::FieldsView;

fn status() -> AgentStatus {
    let uid = "018f3c1e-6b1f-7c1d-9d0a-000000000001";
    let step = |name: &str, status: &str| json!({"name": name, "status": status});
    serde_json::from_value(json!({
        "schema": "holdfast.status/v1", "at": "2026-11-21T12:00:00Z", "seen_at": "2026-11-21T11:59:58Z",
        "times": {"round": "2026-11-21T11:59:51Z", "configurations": "2026-11-21T11:58:30Z", "storages": "2026-11-21T11:58:50Z",
            "version": "2026-11-21T11:20:00Z", "permissions": "2026-11-21T11:20:00Z"},
        "host_name": "box7", "fingerprint": "4f2a-9c01-77de-b3a8-0c11", "hub": "https://hub.example:8440",
        "contact": {"reached_at": "2026-11-21T11:59:50Z", "problem": null, "certificate_ends_at": "2026-12-20T00:00:00Z"},
        "sections": {
            "agent": {"version": "0.1.0", "started_at": "2026-11-21T10:00:00Z",
                "problems": [{"code": "UNAVAILABLE", "message": "storage slow does not answer"}]},
            "desired": {"held": 7, "content": "00", "refused": {"generation": 8,
                "problem": {"code": "UNKNOWN_FIELD", "message": "the desired document is refused at guests[0]"}}},
            "guests": [
                {"uid": uid, "name": "web", "vmid": 10000, "status": "managed", "run": "running", "wanted": "running",
                    "size": {"cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8}, "address": "10.66.0.91/24",
                    "controller": {"version": "0.1.0", "hello_at": "2026-11-21T11:59:00Z", "health": "well"}},
                {"uid": null, "name": "old", "vmid": 104, "status": "foreign", "run": "unknown",
                    "conditions": [{"code": "FOREIGN_GUEST", "message": "not ours, not touched"}]}],
            "operations": [
                {"id": uid, "kind": "provision", "guest": uid, "name": "db", "status": "running",
                    "steps": [step("pick", "done"), {"name": "restore", "status": "intended", "note": "progress 40%"},
                        step("start", "pending")], "opened_at": "2026-11-21T11:58:00Z"},
                {"id": uid, "kind": "start", "guest": uid, "name": "mail", "status": "parked",
                    "steps": [step("start", "failed")], "opened_at": "2026-11-20T11:58:00Z",
                    "problem": {"code": "PARKED", "message": "locked: run `pct unlock 10002`"}}],
            "waiting": [{"effect": "shrink rootfs of web", "reason": "data would be lost", "payload": "{}"}]
        },
        "tokens": [
            {"role": "observe", "made_at": "2026-11-09T12:00:00Z", "renewed_after_days": 30},
            {"role": "operate", "made_at": "2026-10-01T12:00:00Z", "renewed_after_days": 30}],
        "growth": [
            {"unit": "GiB of disk", "used": 12, "limit": 4096}, {"unit": "new guests", "used": 1, "limit": 100}],
        "lanes": [
            {"guest": uid, "holds": uid, "waits": [
                {"id": uid, "kind": "snapshot", "asked_at": "2026-11-21T11:59:30Z"},
                {"id": uid, "kind": "backup", "asked_at": "2026-11-21T11:59:50Z"}]},
            {"guest": "018f3c1e-6b1f-7c1d-9d0a-000000000009", "waits": [
                {"id": uid, "kind": "roll_back", "asked_at": "2026-11-21T11:40:00Z"}]}],
        "heavy": {
            "holding": [{"opened_at": "2026-11-21T11:58:00Z", "operation": uid}],
            "waiting": [{"opened_at": "2026-11-21T11:59:00Z", "operation": "018f3c1e-6b1f-7c1d-9d0a-000000000007"}]}
    }))
    .unwrap()
}

#[test]
fn the_page_puts_first_what_needs_a_person() {
    insta::assert_snapshot!(page(&status()));
}

#[test]
fn an_old_look_is_said_to_be_old() {
    let mut old = status();
    old.seen_at = Some("2026-11-21T11:50:00Z".parse().unwrap());
    assert!(page(&old).contains("what is shown of the guests is old"));
    old.seen_at = None;
    assert!(page(&old).contains("seen never"));
}

#[test]
fn the_fields_of_a_guest_stand_side_by_side() {
    let view: FieldsView = serde_json::from_value(json!({
        "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "web", "at": "2026-11-21T12:00:00Z",
        "read_at": "2026-11-21T11:58:00Z",
        "fields": [
            {"field": "size.memory_mib", "desired": "512 MiB", "observed": "256 MiB",
                "applied": {"value": "512 MiB", "at": "2026-11-20T12:00:00Z"}},
            {"field": "network.mtu", "desired": "1400", "observed": "1400",
                "applied": {"value": "1400", "at": "2026-11-21T11:00:00Z"}, "in_force": "next_start"},
            {"field": "network.rate", "observed": "unlimited"}],
        "notes": ["The claim by which it got its token still stands in its configuration."]
    }))
    .unwrap();
    insta::assert_snapshot!(fields::page(&view));
    let unread = FieldsView { read_at: None, fields: Vec::new(), ..view };
    assert!(fields::page(&unread).contains("could not be read at the last look"));
}

/// A storage that is full for a day is one line, and the other operations stay visible.
#[test]
fn tries_that_failed_alike_are_one_line_with_their_count() {
    let mut status = status();
    let all = status.sections.operations.get_or_insert_default();
    let mut failed = all[1].clone();
    failed.status = OperationStatus::Undone;
    for minute in [10, 30, 50] {
        failed.opened_at = format!("2026-11-21T11:{minute}:00Z").parse().unwrap();
        failed.problem.as_mut().unwrap().message = format!("storage slow is full, seen at minute {minute}");
        all.push(failed.clone());
    }
    let page = page(&status);
    assert_eq!(page.matches("storage slow is full").count(), 1, "{page}");
    assert!(page.contains("3 tries, the first 50 min ago"), "{page}");
    assert!(page.contains("minute 50"), "{page}");
}
