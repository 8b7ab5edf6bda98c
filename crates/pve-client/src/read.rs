//! Proxmox's own state: versions, nodes, guests, storages, archives, tasks.
//!
//! Input: rows of answers. Output: domain types without JSON in them. A field that cannot be read is an error that
//! names it, never a default. Deliberately absent: a guest's configuration (`config`), and the resources of the cluster
//! (`resources`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use holdfast_protocol::id::{KeyFingerprint, StorageName, Vmid};
use serde_json::Value;

use super::task_result::TaskEnd;
use super::upid::Upid;
use super::wire::{Row, Unreadable, rows, split_tags};
use agent_core::model::offsite::{Verification, VerifyTask};
use agent_core::model::storage::EntrySeen;

/// Which Proxmox VE answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    /// As written, `9.2.11`.
    pub text: String,
}

impl Version {
    /// The oldest that knows `env` of containers, without which no guest can be handed its claim.
    pub const OLDEST: (u32, u32) = (9, 1);

    /// Whether this one is new enough.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        (self.major, self.minor) >= Self::OLDEST
    }

    /// Reads `9.2.11`; none when it does not start with two numbers.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(['.', '-']).map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Some(Self { major, minor, text: text.to_owned() }),
            _ => None,
        }
    }

    pub(super) fn read(value: &Value) -> Result<Self, Unreadable> {
        let text = Row::of(value)?.text("version")?;
        Self::parse(&text)
            .ok_or_else(|| Unreadable(format!("version: {text:?} does not start with two numbers")))
    }
}

/// Whether a guest runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Power {
    Running,
    /// It does not.
    Stopped,
    /// Proxmox does not know (its status daemon has not checked yet), or reports another value.
    Unknown(String),
}

impl From<&str> for Power {
    fn from(text: &str) -> Self {
        match text {
            "running" => Self::Running,
            "stopped" => Self::Stopped,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

/// One container as `status/current` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LxcStatus {
    pub vmid: Vmid,
    pub name: Option<String>,
    /// Whether it runs.
    pub power: Power,
    /// A lock in its configuration.
    pub lock: Option<String>,
    /// Its tags, split.
    pub tags: Vec<String>,
    /// Since when it runs.
    pub uptime_s: u64,
    /// Memory in use, in bytes.
    pub memory_used: u64,
    /// Memory allowed, in bytes.
    pub memory_max: u64,
    /// Swap allowed, in bytes.
    pub swap_max: u64,
    /// CPUs allowed; half a one is a limit too.
    pub cpus: Option<f64>,
    /// Size of the root file system as the guest sees it when it runs, in bytes.
    pub disk_max: u64,
    /// Used of it, in bytes.
    pub disk_used: u64,
    /// Share of its CPUs in use.
    pub cpu_share: Option<f64>,
}

impl LxcStatus {
    pub(super) fn read_one(value: &Value) -> Result<Self, Unreadable> {
        let row = Row::of(value)?;
        Self::of(row.parsed("vmid", "a VMID is expected")?, row)
    }

    fn of(vmid: Vmid, row: Row<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            vmid,
            name: row.text_opt("name")?,
            power: Power::from(row.text("status")?.as_str()),
            lock: row.text_opt("lock")?,
            tags: split_tags(&row.text_opt("tags")?.unwrap_or_default()),
            uptime_s: row.measure_whole("uptime").unwrap_or(0),
            memory_used: row.measure_whole("mem").unwrap_or(0),
            memory_max: row.measure_whole("maxmem").unwrap_or(0),
            swap_max: row.measure_whole("maxswap").unwrap_or(0),
            cpus: row.measure("cpus"),
            disk_max: row.measure_whole("maxdisk").unwrap_or(0),
            disk_used: row.measure_whole("disk").unwrap_or(0),
            cpu_share: row.measure("cpu"),
        })
    }
}

/// The node itself.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    /// Since when it is up.
    pub uptime_s: u64,
    /// Share of all CPUs in use.
    pub cpu_share: f64,
    pub cpus: u64,
    /// Load over 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// Memory in use, in bytes.
    pub memory_used: u64,
    /// Memory in all, in bytes.
    pub memory_total: u64,
    /// Root file system in use, in bytes.
    pub rootfs_used: u64,
    /// Root file system in all, in bytes.
    pub rootfs_total: u64,
}

impl NodeStatus {
    pub(super) fn read(value: &Value) -> Result<Self, Unreadable> {
        let row = Row::of(value)?;
        let memory = row.row("memory")?;
        let rootfs = row.row("rootfs")?;
        Ok(Self {
            uptime_s: row.whole("uptime")?,
            cpu_share: row.share_opt("cpu")?.unwrap_or(0.0),
            cpus: row.row("cpuinfo")?.whole("cpus")?,
            load: load(value)?,
            memory_used: memory.whole("used")?,
            memory_total: memory.whole("total")?,
            rootfs_used: rootfs.whole("used")?,
            rootfs_total: rootfs.whole("total")?,
        })
    }
}

/// `"loadavg": ["0.88", "1.61", "3.56"]`, texts and not numbers.
fn load(value: &Value) -> Result<[f64; 3], Unreadable> {
    let number = |item: &Value| item.as_f64().or_else(|| item.as_str()?.parse().ok());
    let read = value.get("loadavg").and_then(Value::as_array).and_then(|items| match items.as_slice() {
        [a, b, c] => Some([number(a)?, number(b)?, number(c)?]),
        _ => None,
    });
    read.ok_or_else(|| Unreadable("loadavg: three numbers are expected".to_owned()))
}

/// One storage as the node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageStatus {
    /// Its name. `status` of a single storage does not repeat it, the caller knows it.
    pub storage: StorageName,
    /// `dir`, `btrfs`, `pbs`, …
    pub kind: String,
    /// The content types that it may hold: `rootdir`, `backup`, `images`, …
    pub content: Vec<String>,
    /// Whether it can be used now. Zero sizes of an inactive storage mean nothing.
    pub active: bool,
    /// Whether the administrator left it on.
    pub enabled: bool,
    /// Free, in bytes.
    pub available: u64,
    /// In all, in bytes.
    pub total: u64,
    /// In use, in bytes.
    pub used: u64,
}

impl StorageStatus {
    pub(super) fn read_one(storage: &StorageName, value: &Value) -> Result<Self, Unreadable> {
        Self::of(storage.clone(), Row::of(value)?)
    }

    pub(super) fn read_list(value: &Value) -> Result<Vec<Self>, Unreadable> {
        rows(value)?
            .into_iter()
            .map(|row| Self::of(row.parsed("storage", "a storage name is expected")?, row))
            .collect()
    }

    fn of(storage: StorageName, row: Row<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            storage,
            kind: row.text("type")?,
            content: row.text("content")?.split(',').map(|part| part.trim().to_owned()).collect(),
            active: row.flag("active")?,
            enabled: row.flag("enabled")?,
            available: row.whole_opt("avail")?.unwrap_or(0),
            total: row.whole_opt("total")?.unwrap_or(0),
            used: row.whole_opt("used")?.unwrap_or(0),
        })
    }
}

/// The entries of storages, by name.
pub(super) fn entries(value: &Value) -> Result<BTreeMap<String, EntrySeen>, Unreadable> {
    rows(value)?.into_iter().map(|row| Ok((row.text("storage")?, row.scalars()))).collect()
}

/// One volume on a storage: an archive or a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVolume {
    /// `backup2:backup/vzdump-lxc-140-….tar.zst`.
    pub volid: String,
    /// `backup`, `rootdir`, `images`, …
    pub content: String,
    /// The guest it belongs to by its name.
    pub vmid: Option<Vmid>,
    /// `tar.zst`, `raw`, `pbs-ct`, …
    pub format: String,
    /// Size in bytes. A backup that still runs on a backup server shows 1.
    pub size: u64,
    /// When it was made.
    pub made_epoch_s: Option<u64>,
    /// Whether Proxmox refuses to delete it.
    pub protected: bool,
    /// The key that a backup is encrypted with. None, where it is encrypted and the key is not named.
    pub sealed: Option<KeyFingerprint>,
    /// The result of the backup server's last verification of it.
    pub verification: Option<Verification>,
}

impl StoredVolume {
    pub(super) fn read_list(value: &Value) -> Result<Vec<Self>, Unreadable> {
        let of = |row: Row<'_>| {
            Ok(Self {
                volid: row.text("volid")?,
                content: row.text("content")?,
                vmid: row.parsed_opt("vmid", "a VMID is expected")?,
                format: row.text("format")?,
                size: row.whole_opt("size")?.unwrap_or(0),
                made_epoch_s: row.whole_opt("ctime")?,
                protected: row.flag("protected")?,
                sealed: row.text_opt("encrypted")?.and_then(|text| text.parse().ok()),
                verification: row.row("verification").ok().and_then(verification),
            })
        };
        rows(value)?.into_iter().map(of).collect()
    }
}

fn verification(said: Row<'_>) -> Option<Verification> {
    let (state, upid) = (said.text("state").ok()?, said.text("upid").ok()?);
    Some(Verification { well: state == "ok", at: VerifyTask::parse(&upid)?.began() })
}

/// A network interface inside a running guest, with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `eth0`.
    pub name: String,
    /// Its MAC address.
    pub hardware: String,
    pub addresses: Vec<IpAddr>,
}

impl Interface {
    pub(super) fn read_list(value: &Value) -> Result<Vec<Self>, Unreadable> {
        let of = |row: Row<'_>| {
            let mut addresses: Vec<IpAddr> = Vec::new();
            for entry in row.rows("ip-addresses")? {
                addresses.extend(entry.parsed_opt::<IpAddr>("ip-address", "an address is expected")?);
            }
            Ok(Self { name: row.text("name")?, hardware: row.text("hwaddr")?, addresses })
        };
        rows(value)?.into_iter().map(of).collect()
    }
}

/// One row of the list of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    pub upid: Upid,
    /// How it ended; none while it runs.
    pub end: Option<TaskEnd>,
}

impl TaskRow {
    pub(super) fn read_list(value: &Value) -> Result<Vec<Self>, Unreadable> {
        let of = |row: Row<'_>| {
            // Rows of running tasks have the status RUNNING, or none and no end time.
            let status = row.text_opt("status")?.filter(|text| text != "RUNNING");
            Ok(Self {
                upid: row.parsed("upid", "a task name is expected")?,
                end: status.map(|t| TaskEnd::from_text(&t)),
            })
        };
        rows(value)?.into_iter().map(of).collect()
    }
}

#[cfg(test)]
#[path = "read/tests.rs"]
mod tests;
