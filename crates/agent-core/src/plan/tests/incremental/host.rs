//! Policies, targets and the place of tests on a random host.

use holdfast_protocol::id::KeyFingerprint;
use holdfast_protocol::storage::{Approval, TargetState};

use super::super::*;
use crate::model::storage::TargetRecord;

/// Where backups go.
pub(super) const TARGETS: [&str; 2] = ["backup2", "pbs1"];

pub(super) fn policies() -> Vec<BackupPolicy> {
    let schedule = |at: &str, zone: &str, jitter: u32| json!({ "at": [at], "zone": zone, "jitter_min": jitter, "window_min": 120 });
    let local = |consistency: &str, days: serde_json::Value| {
        let mut tier = json!({
            "target": "backup2", "schedule": schedule("02:30", "Europe/Berlin", 45), "consistency": consistency,
            "retention": { "keep": { "last": 2, "daily": 3 } }
        });
        if !days.is_null() {
            tier["restore_test_days"] = days;
        }
        tier
    };
    let mut off_site = local("application", json!(14));
    (off_site["target"], off_site["schedule"]) = (json!("pbs1"), schedule("*:15", "UTC", 5));
    let off_site = json!({ "key": key(), "backup": off_site });
    let snapshot = json!({ "schedule": schedule("*:00", "UTC", 0), "retention": { "keep": { "last": 2 } } });
    serde_json::from_value(json!([
        { "name": "usual", "tiers": { "local": local("crash", json!(null)) } },
        { "name": "tested", "tiers": { "local": local("application", json!(7)) } },
        { "name": "all", "tiers": { "snapshot": snapshot, "local": local("crash", json!(2)), "off_site": off_site } },
    ]))
    .unwrap()
}

pub(super) fn key() -> KeyFingerprint {
    vec!["ab"; 32].join(":").parse().unwrap()
}

pub(super) fn off_site_target() -> TargetRecord {
    let target = json!({ "name": "pbs1", "class": "slow", "role": "offsite-backup",
        "backend": { "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a01" } },
        "state": "attached", "label": "blue", "default": false, "schedulable": false });
    TargetRecord {
        approval: Approval::of(&serde_json::from_value(target).unwrap()),
        status: TargetState::Attached,
        mark: serde_json::from_value(json!(uid(9))).unwrap(),
        marked: None,
        entry: None,
    }
}
