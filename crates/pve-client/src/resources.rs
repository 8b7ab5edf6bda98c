//! Resources of the cluster, in one cheap list.
//!
//! Proxmox answers it from what its status daemon found in its last round, up to ten seconds ago: whether a guest runs,
//! its name, sizes and uptime are as old as that. Which guests there are, their pools, locks and tags are read at once.
//! A guest made since the last round has no figures and the status `unknown`. A storage that went away keeps its last
//! figures for some minutes.

use holdfast_protocol::id::{PoolName, StorageName, Vmid};
use serde_json::Value;

use super::read::Power;
use super::wire::{Row, Unreadable, exact, rows, split_tags};

/// The kind of guest in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestKind {
    Lxc,
    /// A virtual machine. Not ours yet, but its VMID is taken.
    Qemu,
}

/// Whether a guest is a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateFlag {
    Set,
    NotSet,
}

/// One guest.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestResource {
    pub vmid: Vmid,
    /// Container or machine.
    pub kind: GuestKind,
    /// Where it lives.
    pub node: String,
    /// Its name, when Proxmox knows it.
    pub name: Option<String>,
    /// Whether it ran in the last round.
    pub power: Power,
    pub pool: Option<String>,
    /// Its tags, split.
    pub tags: Vec<String>,
    /// A lock in its configuration.
    pub lock: Option<String>,
    pub template: TemplateFlag,
    /// For how long it ran in the last round, in seconds.
    pub uptime_s: u64,
    /// Memory allowed, in bytes.
    pub memory_max: u64,
    /// CPUs allowed; half a one is a limit too.
    pub cpus: Option<f64>,
    /// Size of its root disk, in bytes.
    pub disk_max: u64,
    /// What it used in the last round.
    pub use_figures: UseFigures,
    /// The unreadable part of its row: then only VMID, kind and node count.
    pub unreadable: Option<String>,
}

/// What a guest or node used in the last round. Figures that are absent, negative or odd are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UseFigures {
    /// CPU time, in thousandths of what it may use.
    pub cpu_permille: Option<u64>,
    /// Memory in use, in bytes.
    pub memory_used: Option<u64>,
    /// Bytes in use on the root disk.
    pub disk_used: Option<u64>,
    /// Size of the root disk, in bytes.
    pub disk_total: Option<u64>,
    /// Bytes received since the start; a guest's alone, as those below.
    pub net_in: Option<u64>,
    /// Bytes sent.
    pub net_out: Option<u64>,
    /// Bytes read from disks.
    pub disk_read: Option<u64>,
    /// Bytes written to disks.
    pub disk_write: Option<u64>,
}

impl GuestResource {
    /// The CPUs allowed, in hundredths.
    #[must_use]
    pub fn cpus_centi(&self) -> Option<u64> {
        exact((self.cpus? * 100.0).round()).filter(|cpus| *cpus > 0)
    }
}

impl UseFigures {
    fn of(row: Row<'_>) -> Self {
        let whole = |key| row.measure_whole(key);
        Self {
            cpu_permille: row.measure_permille("cpu"),
            memory_used: whole("mem"),
            disk_used: whole("disk"),
            disk_total: whole("maxdisk").filter(|bytes| *bytes > 0),
            net_in: whole("netin"),
            net_out: whole("netout"),
            disk_read: whole("diskread"),
            disk_write: whole("diskwrite"),
        }
    }
}

/// One node. Without `Sys.Audit` on it, and while its status daemon is silent, it has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeResource {
    pub name: String,
    /// Its figures of the last round.
    pub figures: Option<NodeFigures>,
    /// What it used in it.
    pub use_figures: UseFigures,
}

/// The figures of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFigures {
    /// Since when it is up, in seconds. It grows with each round of the status daemon.
    pub uptime_s: u64,
    pub cpus: u64,
    /// Memory in all, in bytes.
    pub memory_total: u64,
    /// Memory in use, in bytes.
    pub memory_used: u64,
}

/// One storage of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageResource {
    pub storage: StorageName,
    pub node: String,
    /// Its figures; none when its status is unknown.
    pub figures: Option<StorageFigures>,
}

/// The figures of a storage. It may have gone away since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageFigures {
    /// In all, in bytes.
    pub total: u64,
    /// In use, in bytes.
    pub used: u64,
}

/// The rows that this token may see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    pub guests: Vec<GuestResource>,
    pub nodes: Vec<NodeResource>,
    /// Names of pools.
    pub pools: Vec<String>,
    pub storages: Vec<StorageResource>,
}

impl Resources {
    /// Whether a pool of this name shows.
    #[must_use]
    pub fn has_pool(&self, pool: &PoolName) -> bool {
        self.pools.iter().any(|name| name == pool.as_str())
    }

    /// The figures of one node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeFigures> {
        self.nodes.iter().find(|node| node.name == name).and_then(|node| node.figures)
    }

    /// What one node used.
    #[must_use]
    pub fn node_use(&self, name: &str) -> Option<UseFigures> {
        self.nodes.iter().find(|node| node.name == name).map(|node| node.use_figures)
    }

    /// An odd row makes only its own guest unknown. Without VMID, kind and node it is unknown which guest is missing:
    /// then the whole list is unreadable.
    pub(super) fn read(value: &Value) -> Result<Self, Unreadable> {
        let mut all = Self::default();
        for row in rows(value)? {
            match row.text("type")?.as_str() {
                "lxc" => all.guests.push(guest(row, GuestKind::Lxc)?),
                "qemu" => all.guests.push(guest(row, GuestKind::Qemu)?),
                "node" => all.nodes.push(node(row)?),
                "pool" => all.pools.push(row.text("pool")?),
                "storage" => all.storages.extend(storage(row)),
                // SDN zones and types of later versions: no decision here depends on them.
                _ => {}
            }
        }
        Ok(all)
    }
}

fn guest(row: Row<'_>, kind: GuestKind) -> Result<GuestResource, Unreadable> {
    let blind = GuestResource {
        vmid: row.parsed("vmid", "a VMID is expected")?,
        kind,
        node: row.text("node")?,
        name: None,
        power: Power::Unknown(String::new()),
        pool: None,
        tags: Vec::new(),
        lock: None,
        template: TemplateFlag::NotSet,
        uptime_s: row.measure_whole("uptime").unwrap_or(0),
        memory_max: row.measure_whole("maxmem").unwrap_or(0),
        cpus: row.measure("maxcpu"),
        disk_max: row.measure_whole("maxdisk").unwrap_or(0),
        use_figures: UseFigures::of(row),
        unreadable: None,
    };
    Ok(words(row, blind.clone()).unwrap_or_else(|odd| GuestResource { unreadable: Some(odd.0), ..blind }))
}

/// The fields that decisions depend on.
fn words(row: Row<'_>, guest: GuestResource) -> Result<GuestResource, Unreadable> {
    Ok(GuestResource {
        name: row.text_opt("name")?,
        power: Power::from(row.text_opt("status")?.unwrap_or_default().as_str()),
        pool: row.text_opt("pool")?,
        tags: split_tags(&row.text_opt("tags")?.unwrap_or_default()),
        lock: row.text_opt("lock")?,
        template: if row.flag("template")? { TemplateFlag::Set } else { TemplateFlag::NotSet },
        ..guest
    })
}

fn node(row: Row<'_>) -> Result<NodeResource, Unreadable> {
    let figures = || {
        Some(NodeFigures {
            uptime_s: row.measure_whole("uptime")?,
            cpus: row.measure_whole("maxcpu").filter(|cpus| *cpus > 0)?,
            memory_total: row.measure_whole("maxmem").filter(|bytes| *bytes > 0)?,
            memory_used: row.measure_whole("mem")?,
        })
    };
    Ok(NodeResource { name: row.text("node")?, figures: figures(), use_figures: UseFigures::of(row) })
}

/// None for a name that no document or setting can have: nothing here depends on that storage.
fn storage(row: Row<'_>) -> Option<StorageResource> {
    let figures = || {
        let available = row.text_opt("status").ok()?.as_deref() == Some("available");
        let total = row.measure_whole("maxdisk").filter(|total| available && *total > 0)?;
        Some(StorageFigures { total, used: row.measure_whole("disk")? })
    };
    Some(StorageResource {
        storage: row.parsed("storage", "a storage name is expected").ok()?,
        node: row.text("node").ok()?,
        figures: figures(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_odd_row_makes_only_its_guest_unknown() {
        let rows = json!([
            {"type": "lxc", "vmid": 301, "node": "pve1", "status": "running", "name": "a", "uptime": -3, "maxcpu": 2},
            {"type": "lxc", "vmid": 302, "node": "pve1", "status": {"odd": 1}, "name": "b"},
            {"type": "lxc", "vmid": 303, "node": "pve1", "status": "unknown", "pool": "holdfast"},
        ]);
        let read = Resources::read(&rows).unwrap();
        let power: Vec<&Power> = read.guests.iter().map(|guest| &guest.power).collect();
        let unknown = Power::Unknown("unknown".to_owned());
        assert_eq!(power, [&Power::Running, &Power::Unknown(String::new()), &unknown]);
        assert_eq!((read.guests[0].uptime_s, read.guests[0].cpus), (0, Some(2.0)));
        assert_eq!(read.guests[1].unreadable.as_deref(), Some("status: a text is expected"));
        assert_eq!((&read.guests[2].name, read.guests[2].pool.as_deref()), (&None, Some("holdfast")));
        for nameless in [json!([{"type": "lxc", "node": "pve1"}]), json!([{"type": "qemu", "vmid": 7}])] {
            assert!(
                Resources::read(&nameless).is_err(),
                "it is not known which guest is missing: {nameless}"
            );
        }
    }

    #[test]
    fn figures_are_there_or_not() {
        let rows = json!([
            {"type": "node", "node": "pve1", "uptime": 99, "maxcpu": 2, "maxmem": 4096, "mem": 1024, "status": "online"},
            {"type": "node", "node": "pve2", "status": "unknown"},
            {"type": "storage", "storage": "fast", "node": "pve1", "status": "available", "disk": 3, "maxdisk": 9},
            {"type": "storage", "storage": "gone", "node": "pve1", "status": "unknown"},
            {"type": "pool", "pool": "holdfast"},
            {"type": "network", "network": "localnetwork"},
        ]);
        let read = Resources::read(&rows).unwrap();
        let figures = NodeFigures { uptime_s: 99, cpus: 2, memory_total: 4096, memory_used: 1024 };
        assert_eq!((read.node("pve1"), read.node("pve2"), read.node("pve3")), (Some(figures), None, None));
        let storages: Vec<_> = read.storages.iter().map(|row| row.figures).collect();
        assert_eq!(storages, [Some(StorageFigures { total: 9, used: 3 }), None]);
        assert!(read.has_pool(&"holdfast".parse().unwrap()));
    }
}
