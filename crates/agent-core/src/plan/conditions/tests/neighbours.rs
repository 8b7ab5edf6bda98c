//! Tests of noisy neighbours and over-committed hosts.

use std::collections::BTreeMap;

use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample};
use serde_json::json;

use super::*;
use crate::model::neighbours::{CpuScale, NeighbourWindow, Neighbours, WINDOW};
use crate::model::usage::{GuestReading, UsageReading};

/// So many minutes in which guest 1 used nine tenths of the disk traffic, and tasks waited for a disk.
fn minutes(count: usize, pressure: u64) -> NeighbourWindow {
    let disk = |bytes| Readings::from([(UsageMetric::DiskRead, bytes), (UsageMetric::DiskWrite, 0)]);
    let reading = UsageReading {
        cpus_centi: Some(800),
        guests: BTreeMap::from([(uid(1), GuestReading { cpus_centi: Some(200), ..GuestReading::default() })]),
        ..UsageReading::default()
    };
    let mut window = NeighbourWindow::default();
    for minute in (0_i64..).take(count) {
        let sample = UsageSample {
            at: at(60 * minute),
            host: Readings::from([(UsageMetric::IoPressure, pressure), (UsageMetric::Cpu, 100)]),
            guests: BTreeMap::from([(uid(1), disk(90 << 20)), (uid(2), disk(10 << 20))]),
        };
        window.note(&sample, &CpuScale::of(&reading));
    }
    window
}

/// Nobody waited for anything.
pub(super) fn quiet() -> Neighbours {
    minutes(WINDOW, 0).known().clone()
}

fn noisy() -> Box7 {
    let mut host = Box7::with_guest(json!({ "run": "running" }));
    host.levels.neighbours = minutes(WINDOW, 420).known().clone();
    host
}

fn promised(cores: u64, memory_mib: u64, gib: u64) -> Box7 {
    let mut host = Box7::well();
    let mut section = section(json!([{ "name": "fast", "state": "active", "total_bytes": 100_u64 << 30 }]));
    let assigned = json!({
        "guests": 2, "cores": cores, "memory_mib": memory_mib, "disks": [{ "storage": "fast", "gib": gib }], "levels": {}
    });
    section.assigned = serde_json::from_value(assigned).unwrap();
    host.view.host = Some(section);
    host
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    vec![("NOISY_NEIGHBOUR", noisy()), ("HOST_OVERCOMMITTED", promised(33, 10, 10))]
}

#[test]
fn a_noisy_neighbour_is_named_with_its_figures_and_the_limit_that_helps() {
    let found = noisy().found();
    assert_eq!(
        found[0].message,
        "web-1 used 90 % of the disk traffic of all guests (90 MiB/s), and tasks waited for a disk 42 % of the time (mean of 5 \
         minutes); 1 other guest runs here: Proxmox lets no token limit that: find what does it in the guest, or move its disks"
    );
    assert_eq!((found[0].subject.guest(), found[0].since), (Some(uid(1)), Some(at(0))));
}

#[test]
fn a_noisy_neighbour_stays_until_a_whole_window_says_otherwise() {
    let mut host = noisy();
    let first = host.after(&[]);
    assert_eq!(names(&first), ["NOISY_NEIGHBOUR"]);
    // The agent starts again, and has four minutes.
    host.levels.neighbours = minutes(WINDOW - 1, 0).known().clone();
    assert_eq!(host.after(&first), first);
    host.levels.neighbours = quiet();
    assert_eq!(host.after(&first), []);
    // One that was stopped uses nothing.
    host.levels.neighbours = minutes(1, 0).known().clone();
    host.view.guests = vec![guest(1, json!({ "run": "stopped", "wanted": "stopped" }))];
    assert_eq!(host.after(&first), []);
}

#[test]
fn what_was_promised_beyond_the_levels_is_one_condition_with_the_numbers() {
    assert_eq!(promised(32, 7_629, 200).codes(), [""; 0], "at the levels");
    let host = promised(33, 8_000, 201);
    let found = host.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].message,
        "guests were given 33 cores of 8 CPUs (412 %), above overcommit.cores_percent 400; 8000 of 7629 MiB memory (104 %), above \
         overcommit.memory_percent 100; 201 of 100 GiB on fast (201 %), above overcommit.disk_percent 200"
    );
    // While a storage does not answer, it is not known how much there is.
    let first = host.after(&[]);
    let mut unknown = promised(1, 1, 201);
    let sections = unknown.view.host.as_mut().unwrap();
    sections.storages = serde_json::from_value(json!([{ "name": "fast", "state": "unknown" }])).unwrap();
    assert_eq!(names(&unknown.after(&first)), ["HOST_OVERCOMMITTED"]);
    assert_eq!(names(&promised(1, 1, 1).after(&first)), [""; 0]);
}
