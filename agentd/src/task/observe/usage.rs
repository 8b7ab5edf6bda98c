//! Readings of use from Proxmox's list of resources.
//!
//! In: the rows of one observation. Out: what they say of the host and of those guests of ours that run.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_protocol::id::Vmid;
use holdfast_protocol::report::Running;
use holdfast_protocol::usage::{Readings, UsageMetric};

use crate::model::mark::Mark;
use crate::model::observed::{Detail, ObservedGuest};
use crate::model::usage::{GuestReading, UsageReading};
use crate::port::pve::resources::{GuestResource, NodeFigures, UseFigures};

pub(super) fn reading(
    now: Duration,
    (node, figures): (Option<UseFigures>, Option<NodeFigures>),
    rows: &BTreeMap<Vmid, &GuestResource>,
    guests: &BTreeMap<Vmid, ObservedGuest>,
) -> UsageReading {
    let running = guests.values().filter(|guest| guest.run == Running::Running);
    let guests = running.filter_map(|guest| {
        let Detail::Known(facts) = &guest.detail else { return None };
        let Mark::Of(uid) = facts.mark else { return None };
        let row = rows.get(&guest.vmid)?;
        // A row from before its start has no figures of this run.
        (row.uptime_s > 0).then(|| (uid, of_guest(row)))
    });
    // Without figures nothing of the node was measured.
    let host =
        figures.and(node).map_or_else(Readings::new, |node| levels(&node, figures.map(|f| f.memory_total)));
    let cpus_centi = figures.map(|figures| figures.cpus.saturating_mul(100));
    UsageReading { at: now, host, cpus_centi, guests: guests.collect() }
}

fn of_guest(row: &GuestResource) -> GuestReading {
    let used = &row.use_figures;
    let counted = [
        (UsageMetric::NetIn, used.net_in),
        (UsageMetric::NetOut, used.net_out),
        (UsageMetric::DiskRead, used.disk_read),
        (UsageMetric::DiskWrite, used.disk_write),
    ];
    let memory = Some(row.memory_max).filter(|bytes| *bytes > 0);
    GuestReading {
        vmid: Some(row.vmid),
        levels: levels(used, memory),
        cpus_centi: row.cpus_centi(),
        counted: measured(counted),
    }
}

fn levels(used: &UseFigures, memory_total: Option<u64>) -> Readings {
    measured([
        (UsageMetric::Cpu, used.cpu_permille),
        (UsageMetric::MemoryUsed, used.memory_used),
        (UsageMetric::MemoryTotal, memory_total),
        (UsageMetric::DiskUsed, used.disk_used),
        (UsageMetric::DiskTotal, used.disk_total),
    ])
}

fn measured<const N: usize>(figures: [(UsageMetric, Option<u64>); N]) -> Readings {
    figures.into_iter().filter_map(|(metric, value)| Some((metric, value?))).collect()
}
