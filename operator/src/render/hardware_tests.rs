//! Snapshots of a host's hardware.

use holdfast_protocol::report::HardwareSection;
use insta::assert_snapshot;
use serde_json::json;

use super::hardware::hardware;
use crate::screen::{Colour, Style};

const PLAIN: Style = Style { columns: None, colour: Colour::Off };

fn show(section: serde_json::Value) -> String {
    let section: HardwareSection = serde_json::from_value(section).unwrap();
    hardware(&section, "2026-11-21T03:00:00Z".parse().unwrap(), PLAIN)
}

#[test]
fn disks_memory_and_temperatures() {
    let at = "2026-11-21T02:20:00Z";
    let section = json!({
        "read_at": "2026-11-21T02:50:00Z", "disks_read_at": at, "disks": [
            { "device": "/dev/sda", "reading": "read", "read_at": at, "model": "Example EX4000", "serial": "EX-0001",
              "size_bytes": 4_000_787_030_016_u64, "health": "passed", "temperature": { "celsius": 34, "heat": "unrated" },
              "power_on_hours": 20_123, "reallocated_sectors": 8 },
            { "device": "/dev/sdb", "reading": "asleep", "read_at": "2026-11-20T02:20:00Z", "serial": "EX-0002",
              "health": "failing", "faults": ["health_failing", "self_test_failed"] },
            { "device": "/dev/sdc", "reading": "unreadable", "health": "unknown" },
            { "device": "/dev/nvme0", "reading": "read", "read_at": at, "serial": "NV1", "health": "passed",
              "wear_percent": 91, "temperature": { "celsius": 84, "critical_celsius": 85, "heat": "high" } }
        ],
        "disks_left_out": 2,
        "sensors": [
            { "name": "acpitz temp1", "temperature": { "celsius": 27, "heat": "unrated" } },
            { "name": "coretemp Core 0", "temperature": { "celsius": 61, "critical_celsius": 100, "heat": "normal" } }
        ],
        "memory_errors": { "corrected": 7, "uncorrected": 0 }
    });
    assert_snapshot!(show(section.clone()));
    let mut hot = section;
    hot["disks"] = json!([]);
    hot["disks_read_at"] = json!("2026-11-20T02:20:00Z");
    hot["sensors"][1]["temperature"] = json!({ "celsius": 98, "critical_celsius": 100, "heat": "high" });
    assert_snapshot!("hot_and_old", show(hot));
    assert_snapshot!("not_read", show(json!({ "read_at": at })));
}
