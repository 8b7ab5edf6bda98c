//! A container's configuration, read.
//!
//! Input: the answer of `GET …/config`. Output: typed values for the keys that the agent decides by, every other key
//! unchanged (so that nothing is lost), and the digest that a change must repeat. `env` may hold a claim: it is kept as
//! a secret. Deliberately absent: judging, which is the gate's work.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::volume::{Backing, Disk, VolumeId};
use super::wire::{Row, Unreadable, split_tags};
use agent_core::model::cpu::CpuFacts;
use agent_core::model::net::ResolverText;

/// Names one state of a configuration. A change that carries it fails when the state is another by then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// As Proxmox writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// 40 hex digits, else none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| Self(text.to_owned()))
    }
}

/// Whether something is switched on in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Set to 1.
    On,
    /// Set to 0, or not set.
    Off,
}

impl Switch {
    fn of(flag: bool) -> Self {
        if flag { Self::On } else { Self::Off }
    }
}

/// One container's configuration.
#[derive(Clone, Debug)]
pub struct GuestConfig {
    /// Names this state of it.
    pub digest: Digest,
    pub hostname: Option<String>,
    /// MiB. Proxmox's default is 512 when not set.
    pub memory_mib: u64,
    /// MiB. Proxmox's default is 512 when not set.
    pub swap_mib: u64,
    /// Cores; not set is all of the host.
    pub cores: Option<u64>,
    pub tags: BTreeSet<String>,
    /// Description, without the newline that Proxmox appends.
    pub description: String,
    /// Whether Proxmox refuses to destroy it.
    pub protection: Switch,
    /// Whether root inside the guest is an unprivileged user on the host.
    pub unprivileged: Switch,
    /// Whether it starts with the node.
    pub onboot: Switch,
    /// Whether it is a template.
    pub template: Switch,
    /// A lock that a task holds or left behind.
    pub lock: Option<String>,
    /// `nesting=1,keyctl=1`.
    pub features: Option<String>,
    /// The environment of its first process. Set while a claim is being delivered.
    pub env: Option<Secret>,
    /// The root file system. None in the half-made state that a killed restore leaves behind.
    pub rootfs: Option<Disk>,
    /// Other disks by the number of their slot.
    pub mounts: BTreeMap<u16, Disk>,
    /// Volumes that belong to it and are mounted nowhere.
    pub unused: BTreeSet<VolumeId>,
    /// Networks by number, as written.
    pub nets: BTreeMap<u16, String>,
    /// Every key that has no field above, as text.
    pub other: BTreeMap<String, String>,
    /// Every key as text, whether it has a field or not, but for digest, description and environment.
    pub written: BTreeMap<String, String>,
    /// Raw `lxc.` lines.
    pub raw_lxc: Vec<String>,
}

impl GuestConfig {
    /// All volumes of the guest, mounted or not.
    #[must_use]
    pub fn volumes(&self) -> BTreeSet<VolumeId> {
        let disks = self.rootfs.iter().chain(self.mounts.values());
        disks.filter_map(Disk::volume).cloned().chain(self.unused.iter().cloned()).collect()
    }

    /// Its lines, for callers that judge the kind of a guest: each key with its value, a disk by its backing. A lock
    /// and the names of snapshots do not matter for that.
    #[must_use]
    pub fn lines(&self) -> BTreeMap<String, String> {
        let mut lines = self.other.clone();
        lines.remove("parent");
        let flag = |on: Switch| if on == Switch::On { "1" } else { "0" };
        lines.insert("unprivileged".to_owned(), flag(self.unprivileged).to_owned());
        if self.template == Switch::On {
            lines.insert("template".to_owned(), "1".to_owned());
        }
        lines.extend(self.features.iter().map(|text| ("features".to_owned(), text.clone())));
        lines.extend(self.nets.iter().map(|(n, text)| (format!("net{n}"), text.clone())));
        let behind = |disk: &Disk| match &disk.backing {
            Backing::Volume(id) => id.to_string(),
            Backing::Goal(text) | Backing::Host(text) => text.clone(),
        };
        lines.extend(self.rootfs.iter().map(|disk| ("rootfs".to_owned(), behind(disk))));
        lines.extend(self.mounts.iter().map(|(n, disk)| (format!("mp{n}"), behind(disk))));
        lines
    }

    /// Its name servers and search domain, including changes that wait for its next start.
    #[must_use]
    pub fn resolver(&self) -> ResolverText {
        let text = |key: &str| self.other.get(key).cloned();
        ResolverText { servers: text("nameserver"), search: text("searchdomain") }
    }

    /// How much CPU time it may use. Changes of it never wait (`29-limits-options`).
    #[must_use]
    pub fn cpu(&self) -> CpuFacts {
        let text = |key: &str| self.other.get(key).map(String::as_str);
        CpuFacts::read(text("cpulimit"), text("cpuunits"))
    }

    /// The bridges it is plugged in to; an empty name for a network without one.
    #[must_use]
    pub fn bridges(&self) -> BTreeSet<String> {
        let bridge = |net: &String| {
            let named = net.split(',').find_map(|part| part.strip_prefix("bridge="));
            named.unwrap_or_default().to_owned()
        };
        self.nets.values().map(bridge).collect()
    }

    /// Reads the `data` of `GET …/config`.
    ///
    /// # Errors
    /// Names the key that cannot be read.
    pub fn read(value: &Value) -> Result<Self, Unreadable> {
        let row = Row::of(value)?;
        let digest = row.text("digest")?;
        let (mounts, unused) = (numbered(row, "mp")?, numbered(row, "unused")?);
        let mut config = Self {
            digest: Digest::parse(&digest)
                .ok_or_else(|| Unreadable("digest: 40 hex digits are expected".to_owned()))?,
            hostname: row.text_opt("hostname")?,
            memory_mib: row.whole_opt("memory")?.unwrap_or(512),
            swap_mib: row.whole_opt("swap")?.unwrap_or(512),
            cores: row.whole_opt("cores")?,
            tags: split_tags(&row.text_opt("tags")?.unwrap_or_default()).into_iter().collect(),
            description: row.text_opt("description")?.map(|text| one_newline_less(&text)).unwrap_or_default(),
            protection: Switch::of(row.flag("protection")?),
            unprivileged: Switch::of(row.flag("unprivileged")?),
            onboot: Switch::of(row.flag("onboot")?),
            template: Switch::of(row.flag("template")?),
            lock: row.text_opt("lock")?,
            features: row.text_opt("features")?,
            env: row.text_opt("env")?.map(Secret::new),
            rootfs: row.text_opt("rootfs")?.map(|text| disk("rootfs", &text)).transpose()?,
            mounts: mounts
                .iter()
                .map(|(n, text)| Ok((*n, disk(&format!("mp{n}"), text)?)))
                .collect::<Result<_, _>>()?,
            unused: unused.values().map(|text| volume(text)).collect::<Result<_, _>>()?,
            nets: numbered(row, "net")?,
            other: row.scalars(),
            written: row.scalars(),
            raw_lxc: raw_lines(value),
        };
        config.other.retain(|key, _| !has_field(key));
        config.written.retain(|key, _| !["description", "digest", "env"].contains(&key.as_str()));
        Ok(config)
    }
}

/// Proxmox appends exactly one.
fn one_newline_less(text: &str) -> String {
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

fn disk(key: &str, text: &str) -> Result<Disk, Unreadable> {
    Disk::parse(text, key).ok_or_else(|| Unreadable(format!("{key}: {text:?} is not a disk")))
}

fn volume(text: &str) -> Result<VolumeId, Unreadable> {
    text.parse().map_err(|_| Unreadable(format!("unused: {text:?} is not a volume")))
}

/// The values of `mp0`, `mp1`, … by number.
fn numbered(row: Row<'_>, stem: &str) -> Result<BTreeMap<u16, String>, Unreadable> {
    let mut found = BTreeMap::new();
    for key in row.keys() {
        if let Some(number) = slot(key, stem) {
            found.extend(row.text_opt(key)?.map(|text| (number, text)));
        }
    }
    Ok(found)
}

fn slot(key: &str, stem: &str) -> Option<u16> {
    let digits = key.strip_prefix(stem)?;
    digits.parse().ok().filter(|number: &u16| number.to_string() == digits)
}

fn has_field(key: &str) -> bool {
    const FIELDS: [&str; 14] = [
        "cores",
        "description",
        "digest",
        "env",
        "features",
        "hostname",
        "lock",
        "memory",
        "onboot",
        "protection",
        "rootfs",
        "swap",
        "tags",
        "template",
    ];
    FIELDS.contains(&key)
        || key == "unprivileged"
        || ["mp", "net", "unused"].iter().any(|stem| slot(key, stem).is_some())
}

/// `"lxc": [["lxc.idmap", "u 0 100000 65536"], …]`.
fn raw_lines(value: &Value) -> Vec<String> {
    let lines = value.get("lxc").and_then(Value::as_array).into_iter().flatten();
    lines
        .map(|line| match line.as_array().map(Vec::as_slice) {
            Some([Value::String(key), Value::String(text)]) => format!("{key}: {text}"),
            _ => line.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recorded() -> Value {
        json!({
            "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:FF:15:7C,ip=10.66.0.100/24,type=veth",
            "digest": "0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0", "description": "two\nlines\n", "unprivileged": 1,
            "memory": "128", "ostype": "debian", "hostname": "ct100", "swap": 0, "arch": "amd64", "protection": 1,
            "rootfs": "labbtrfs:100/vm-100-disk-0.raw,size=1G", "tags": "hf-1a2b3c4d;holdfast",
            "mp0": "labbtrfs:100/vm-100-disk-1.raw,mp=/mnt/bulk,backup=0,size=1G",
            "unused0": "labbtrfs:100/vm-100-disk-7.raw", "env": "HOLDFAST_BOOTSTRAP=abc", "features": "nesting=1,keyctl=1",
            "lxc": [["lxc.cap.drop", "sys_admin"]], "startup": "order=1"
        })
    }

    #[test]
    fn a_configuration_and_what_we_do_not_know_of_it() {
        let config = GuestConfig::read(&recorded()).unwrap();
        assert_eq!((config.memory_mib, config.swap_mib, config.cores), (128, 0, None));
        assert_eq!(config.description, "two\nlines");
        assert_eq!((config.protection, config.onboot), (Switch::On, Switch::Off));
        assert_eq!(config.tags.iter().map(String::as_str).collect::<Vec<_>>(), ["hf-1a2b3c4d", "holdfast"]);
        assert_eq!(config.volumes().len(), 3);
        assert_eq!(
            config.other.keys().map(String::as_str).collect::<Vec<_>>(),
            ["arch", "ostype", "startup"]
        );
        assert_eq!(config.raw_lxc, ["lxc.cap.drop: sys_admin"]);
        assert!(!format!("{config:?}").contains("abc"), "env may hold a claim");
    }

    #[test]
    fn a_killed_restore_leaves_one_line() {
        let config = GuestConfig::read(
            &json!({"lock": "create", "digest": "0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0"}),
        )
        .unwrap();
        assert_eq!((config.lock.as_deref(), config.rootfs), (Some("create"), None));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (key, value) in [("memory", json!("lots")), ("mp0", json!("nothing")), ("digest", json!("short"))]
        {
            let mut config = recorded();
            config[key] = value;
            let Unreadable(text) = GuestConfig::read(&config).unwrap_err();
            assert!(text.starts_with(key), "{text}");
        }
    }
}
