//! Conditions of use.

use std::collections::BTreeMap;

use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample};
use serde_json::json;

use super::*;
use crate::model::level_rules::LevelRules;

/// The host and its guest were measured, and use little.
pub(super) fn well() -> UsageLevels {
    let mut levels = UsageLevels::default();
    let little = Readings::from([(UsageMetric::Cpu, 10)]);
    let guests = BTreeMap::from([(uid(1), little.clone())]);
    levels.note(&UsageSample { at: at(0), host: little, guests }, &LevelRules::default());
    levels.neighbours = super::neighbours::quiet();
    levels
}

/// Nine tenths of the memory more or less, of the host and of guest 1.
fn sample(used: u64, guests: &[u32]) -> UsageSample {
    let readings = Readings::from([(UsageMetric::MemoryUsed, used), (UsageMetric::MemoryTotal, 100)]);
    let guests = guests.iter().map(|n| (uid(*n), readings.clone())).collect();
    UsageSample { at: at(0), host: BTreeMap::from([(UsageMetric::Cpu, 10)]), guests }
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    let all = Readings::from([
        (UsageMetric::Cpu, 990),
        (UsageMetric::MemoryUsed, 99),
        (UsageMetric::MemoryTotal, 100),
        (UsageMetric::DiskUsed, 99),
        (UsageMetric::DiskTotal, 100),
    ]);
    let sample = UsageSample { at: at(0), host: all, guests: BTreeMap::new() };
    let mut host = Box7::well();
    host.levels.note(&sample, &LevelRules::default());
    vec![("CPU_HIGH MEMORY_HIGH ROOT_DISK_FULL", host)]
}

#[test]
fn a_guest_that_uses_nearly_all_memory_is_a_condition_over_a_restart() {
    let mut host = Box7::with_guest(json!({ "run": "running" }));
    host.levels.note(&sample(96, &[1]), &LevelRules::default());
    assert_eq!(host.codes(), ["MEMORY_HIGH"]);
    let first = host.after(&[]);
    assert_eq!(first[0].subject.guest(), Some(uid(1)));
    // The agent starts again: nothing is measured yet, so nothing ends.
    host.levels = UsageLevels::default();
    assert_eq!(host.after(&first).len(), 1);
    host.levels.note(&sample(93, &[1]), &LevelRules::default());
    assert_eq!(host.after(&first).len(), 0, "it is measured, and lower than that");
}

#[test]
fn a_guest_that_stops_or_goes_has_no_condition_of_use() {
    let mut host = Box7::with_guest(json!({ "run": "running" }));
    host.levels.note(&sample(96, &[1]), &LevelRules::default());
    let first = host.after(&[]);
    host.levels.note(&sample(96, &[]), &LevelRules::default());
    assert_eq!(host.after(&first).len(), 1, "its figures could not be read");
    host.view.guests = vec![guest(1, json!({ "run": "stopped", "wanted": "stopped" }))];
    assert_eq!(host.after(&first), []);
    host.view.guests.clear();
    host.levels.note(&sample(96, &[1]), &LevelRules::default());
    assert_eq!(host.after(&first), [], "it is not ours any more");
}
