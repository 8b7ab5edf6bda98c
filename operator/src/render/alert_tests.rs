//! Snapshots of all text about alerts.

use holdfast_protocol::alert::{
    DeliveryView, ExplanationView, IncidentDetail, IncidentView, MaintenanceView, ReceiverView, SilenceView,
};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::samples::{now, read};
use super::{alert, explanation, mute, receiver};
use crate::screen::{Colour, Style};

const PLAIN: Style = Style { colour: Colour::Off, columns: None };
const COLOURED: Style = Style { colour: Colour::On, columns: Some(120) };

const BOX7: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000065";

fn incident(host: &str, number: u32, code: &str, severity: &str) -> Value {
    json!({ "id": format!("{BOX7}-{number}"), "host": host, "subject": "host", "code": code, "severity": severity,
        "phase": "firing", "phase_since": "2026-11-21T01:01:00Z", "since": "2026-11-21T01:00:00Z",
        "message": "as it is", "remedy": "Free room: `df -h /var/lib/holdfast` shows the disk." })
}

pub fn incidents() -> Vec<IncidentView> {
    let mut known = incident("box8", 3, "PROXMOX_AWAY", "critical");
    known["acknowledged"] =
        json!({ "by": "ada", "at": "2026-11-21T02:00:00Z", "until": "2026-11-21T05:00:00Z" });
    let mut late = incident("box9", 7, "BACKUP_LATE", "critical");
    late["subject"] = json!("tier:018f3c1e-6b1f-7c1d-9d0a-000000000001:local");
    (late["guest"], late["customer"]) = (json!("web"), json!("acme"));
    late["since"] = json!("2026-11-20T01:00:00Z");
    late["stale_since"] = json!("2026-11-21T02:30:00Z");
    late["message"] = json!("the newest is \u{202e}30 h old");
    let mut pending = incident("box9", 8, "CLOCK_UNKEPT", "warning");
    pending["phase"] = json!("pending");
    let mut over = incident("box9", 6, "DISK_FULL", "critical");
    (over["phase"], over["phase_since"]) = (json!("resolved"), json!("2026-11-21T02:50:00Z"));
    let mut hub = incident("", 2, "RECEIVER_FAILING", "warning");
    hub.as_object_mut().unwrap().remove("host");
    (hub["id"], hub["subject"]) = (json!("hub-2"), json!("receiver:ops"));
    hub["flapping_since"] = json!("2026-11-21T02:00:00Z");
    let disk = incident("box7", 12, "DISK_FULL", "critical");
    read(json!([over, pending, known, hub, disk, late]))
}

#[test]
fn alert_list() {
    assert_snapshot!(alert::alerts(&incidents(), now(), PLAIN));
    assert_snapshot!("alert_list_coloured", alert::alerts(&incidents(), now(), COLOURED));
    assert_snapshot!("alert_list_empty", alert::alerts(&[], now(), PLAIN));
}

fn log() -> Value {
    let alert = format!("{BOX7}-12");
    let entry = |number: u64, second: u32, kind: &str, text: &str| {
        json!({ "number": number, "at": format!("2026-11-21T01:01:{second:02}Z"), "host": "box7", "alert": alert,
            "kind": kind, "text": text })
    };
    let mut muted = entry(
        904,
        31,
        "suppressed",
        "not sent to phone: held by quiet hours night until 2026-11-21T06:00:00Z",
    );
    muted["receiver"] = json!("phone");
    muted["muted"] = json!({ "reason": "quiet_hours", "text": "held by quiet hours night", "until": "2026-11-21T06:00:00Z" });
    let mut host = entry(902, 1, "host_changed", "the host is degraded now; it was online");
    host.as_object_mut().unwrap().remove("alert");
    json!([
        muted,
        entry(903, 30, "queued", "put into the outbox for ops (first): box7/ops/first/1"),
        host,
        entry(901, 0, "fired", "it fires: the condition lasted for its grace"),
    ])
}

#[test]
fn alert_show_and_log() {
    let all = incidents();
    let find = |code: &str| all.iter().find(|one| one.code.as_str() == code && one.host.is_some()).unwrap();
    let shown = |incident: &IncidentView, receivers: Value, log: Value| {
        let detail: IncidentDetail =
            read(json!({ "incident": incident, "receivers": receivers, "log": log }));
        alert::alert(&detail, now(), PLAIN)
    };
    let mute =
        json!({ "reason": "quiet_hours", "text": "held by quiet hours night until 2026-11-21T06:00:00Z" });
    let receivers = json!([
        { "receiver": "ops", "sent": "firing" },
        { "receiver": "phone", "sent": "nothing", "muted": mute },
        { "receiver": "mail", "sent": "with_next_repeat" },
    ]);
    let disk = all.iter().find(|one| one.host.as_ref().is_some_and(|host| host.as_str() == "box7")).unwrap();
    assert_snapshot!(shown(disk, receivers, json!({ "items": log(), "next": "more" })));
    assert_snapshot!("alert_show_known", shown(find("PROXMOX_AWAY"), json!([]), json!({ "items": [] })));
    let entries: Vec<_> = read(log());
    assert_snapshot!("alert_log", alert::log(&entries, PLAIN));
}

#[test]
fn silences_and_maintenance() {
    let silences: Vec<SilenceView> = read(json!([
        { "id": 4, "matchers": ["host=box7", "severity!=critical"], "from": "2026-11-21T02:00:00Z",
          "until": "2026-11-24T02:00:00Z", "by": "ada", "comment": "the new disk is ordered" },
        { "id": 5, "matchers": ["customer=acme"], "from": "2026-11-21T02:00:00Z",
          "until": "2026-11-21T04:00:00Z", "by": "eve", "comment": "they migrate" },
    ]));
    assert_snapshot!(mute::silences(&silences, now(), PLAIN));
    let window = |until: &str| json!({ "from": "2026-11-21T02:00:00Z", "until": until, "by": "ada" });
    let windows = json!([window("2026-11-21T04:00:00Z"), window("2026-11-21T05:00:00Z")]);
    let view = |windows: Value| read::<MaintenanceView>(json!({ "host": "box7", "windows": windows }));
    let texts = [
        mute::ended(&silences[1]),
        mute::silences(&[], now(), PLAIN),
        mute::maintenance(&view(windows), now()),
        mute::maintenance(&view(json!([])), now()),
    ];
    assert_snapshot!("mutes", texts.join(""));
}

#[test]
fn receivers_and_deliveries() {
    let deliveries: Vec<DeliveryView> = read(json!([
        { "number": 41, "at": "2026-11-21T02:00:00Z", "receiver": "ops", "notice": "box7/ops/first/1",
          "title": "box7: DISK_FULL (critical)", "outcome": "delivered", "tries": 1 },
        { "number": 42, "at": "2026-11-21T02:01:00Z", "receiver": "chat", "notice": "box7/chat/first/2",
          "title": "box7: DISK_FULL (critical)", "outcome": "refused", "tries": 1, "remark": "404: the webhook is gone" },
        { "number": 43, "at": "2026-11-21T02:02:00Z", "receiver": "ops", "notice": "box8/ops/first/1",
          "title": "box8: GUEST_CRASHED (warning)", "outcome": "cancelled", "tries": 0 },
    ]));
    assert_snapshot!(receiver::deliveries(&deliveries, PLAIN));
    let receivers: Vec<ReceiverView> = read(json!([
        { "name": "ops", "kind": "ntfy", "waiting": 0, "last": deliveries[0],
          "settings": { "since": "2026-11-20T21:00:00Z", "changed_at": "2026-11-21T01:00:00Z" } },
        { "name": "chat", "kind": "slack", "waiting": 0, "last": deliveries[1] },
        { "name": "mail", "kind": "smtp", "waiting": 3, "oldest": "2026-11-21T02:50:00Z", "failure": "it does not answer" },
        { "name": "spare", "kind": "webhook", "waiting": 0 },
    ]));
    assert_snapshot!("receivers", receiver::receivers(&receivers, now(), PLAIN));
    assert_snapshot!("receivers_empty", receiver::receivers(&[], now(), PLAIN));
}

#[test]
fn explanations() {
    let mute =
        json!({ "reason": "maintenance", "text": "the host is in maintenance until 2026-11-21T05:00:00Z" });
    let window = |from: &str, until: &str| json!({ "from": from, "until": until });
    let quiet = json!([{ "rule": "night", "current": window("2026-11-20T21:00:00Z", "2026-11-21T06:00:00Z"),
        "next": window("2026-11-21T21:00:00Z", "2026-11-22T06:00:00Z") }]);
    let pace = json!({ "receiver": "ops", "group": "default/ops/cause=records", "group_wait_s": 30,
        "group_interval_s": 300, "repeat_interval_s": 14400, "fire_muted": mute, "quiet_hours": quiet });
    let mut late = pace.clone();
    (late["receiver"], late["escalated_after_s"]) = (json!("phone"), json!(1800));
    late.as_object_mut().unwrap().remove("fire_muted");
    late["quiet_hours"] = json!([]);
    let explained: ExplanationView =
        read(json!({ "code": "DISK_FULL", "subject": "host", "severity": "critical",
        "fires_after_s": 60, "clears_after_s": 120, "route": "default", "receivers": [pace, late],
        "inhibited_by": ["HOST_OFFLINE"] }));
    assert_snapshot!(explanation::explanation(&explained));
    let unrouted: ExplanationView = read(json!({ "code": "HOST_LATE", "subject": "host", "severity": "info",
        "fires_after_s": 0, "clears_after_s": 120, "receivers": [], "inhibited_by": [] }));
    assert_snapshot!("explanation_unrouted", explanation::explanation(&unrouted));
}
