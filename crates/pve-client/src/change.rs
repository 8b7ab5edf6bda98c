//! Changing a guest's configuration: the closed list of changes we ever send.
//!
//! Input: one or more [`ConfigChange`] and the digest of the configuration that was read. Output: parameters for
//! `PUT …/config`. Deliberately absent: anything about features, devices, bind mounts, hooks, `lock` (a token can set
//! it, but no token can remove it), `unprivileged`, deletion of disks, and switching protection off, which needs a
//! [`LiftProof`](super::unprotect_proof::LiftProof) and its own call.

use std::borrow::Cow;

use holdfast_protocol::desired::CpuLimit;
use holdfast_protocol::id::{GuestName, MountPath, StorageName};
use holdfast_protocol::size::{CorePercent, Cores, CpuWeight, DiskGib, MemoryMib, SwapMib};

use super::config::{Digest, Switch};
use super::params::{Params, Value};
use super::restore::BootstrapEnv;
use super::volume::InBackup;
use agent_core::model::net::NetLine;

/// The number of a mount of a guest, `mp0` to `mp255`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MountSlot(pub u8);

/// The number of a network of a guest, `net0` to `net31`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetSlot(pub u8);

/// A disk that can be grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskSlot {
    /// The root file system.
    Rootfs,
    /// One of the mounts.
    Mount(MountSlot),
}

impl DiskSlot {
    /// As Proxmox names it.
    #[must_use]
    pub fn key(self) -> String {
        match self {
            Self::Rootfs => "rootfs".to_owned(),
            Self::Mount(MountSlot(number)) => format!("mp{number}"),
        }
    }
}

/// A tag: lower-case letters, digits, `_`, `-`, `+`, `.`; Proxmox folds case and would re-order others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(String);

/// Text that is no tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a tag of lower-case letters, digits, '_', '-', '+' and '.'")]
pub struct TagError(String);

impl Tag {
    /// As Proxmox writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Tag {
    type Err = TagError;
    fn from_str(text: &str) -> Result<Self, TagError> {
        let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let rest = |c: char| first(c) || "-+.".contains(c);
        if text.len() <= 64 && text.starts_with(first) && text.chars().all(rest) {
            Ok(Self(text.to_owned()))
        } else {
            Err(TagError(text.chars().take(64).collect()))
        }
    }
}

/// A description that Proxmox accepts: at most 8192 characters, no control characters but newlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description(String);

/// Text that is no description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a description is at most 8192 characters long and holds no control characters but newlines")]
pub struct DescriptionError;

impl Description {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Description {
    type Error = DescriptionError;
    fn try_from(text: String) -> Result<Self, DescriptionError> {
        let fits = text.chars().count() <= 8192 && !text.chars().any(|c| c.is_control() && c != '\n');
        if fits { Ok(Self(text)) } else { Err(DescriptionError) }
    }
}

/// A volume to be made and mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVolume {
    /// Which mount it becomes. It must be free: the digest guards against a race.
    pub slot: MountSlot,
    /// Where it is made.
    pub storage: StorageName,
    pub size: DiskGib,
    /// Where it is mounted in the guest.
    pub mount: MountPath,
    /// Whether backups hold it.
    pub in_backup: InBackup,
}

/// One thing to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigChange {
    Memory(MemoryMib),
    Swap(SwapMib),
    Cores(Cores),
    /// CPU time at most. A running guest has it at once (`29-limits-options`).
    CpuLimit(CpuLimit),
    /// Its weight where CPU time is short. A running guest has it at once.
    CpuWeight(CpuWeight),
    /// All tags, in place of those it has.
    Tags(Vec<Tag>),
    Description(Description),
    /// `protection=1`.
    Protect,
    /// Hands the bootstrap over. A running guest sees it only from its next start.
    SetEnv(BootstrapEnv),
    /// Takes the bootstrap away. A running guest keeps it in PID 1 until its next start.
    ClearEnv,
    /// Makes a volume. Refused while protection is on.
    AddVolume(NewVolume),
    /// Withdraws a requested mount that could not be made. Existing mounts are not changed.
    WithdrawRequest(MountSlot),
    /// Takes these labels away.
    Unlabel(Labels),
    /// The host name. A running guest has it from its next start.
    Hostname(GuestName),
    /// Whether it starts with the node.
    AtBoot(Switch),
    /// `nameserver` and `searchdomain`, one of them. A running guest has it from its next start.
    Names(NameKey, String),
    /// These take the host's values again. Pending changes are not withdrawn: see [`Self::WithdrawNames`].
    HostNames(Vec<NameKey>),
    /// Withdraws those changes of these keys that wait for the next start.
    WithdrawNames,
    /// One network, whole, under the number it has. It takes effect at once, in a running guest as well.
    Net(NetSlot, NetLine),
}

/// The parts of a guest's resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKey {
    Servers,
    /// The search domains for short names.
    Search,
}

impl NameKey {
    /// As Proxmox names it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Servers => "nameserver",
            Self::Search => "searchdomain",
        }
    }
}

/// The parts of a guest's identity that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    Tags,
    Description,
    Both,
}

impl ConfigChange {
    fn param(&self) -> (Cow<'static, str>, Value) {
        match self {
            Self::Memory(size) => ("memory".into(), size.get().into()),
            Self::Swap(size) => ("swap".into(), size.get().into()),
            Self::Cores(cores) => ("cores".into(), cores.get().into()),
            Self::CpuLimit(CpuLimit::Unlimited) => (DELETE.into(), "cpulimit".into()),
            Self::CpuLimit(CpuLimit::CorePercent(percent)) => ("cpulimit".into(), cores(*percent).into()),
            Self::CpuWeight(weight) => ("cpuunits".into(), weight.get().into()),
            Self::Tags(tags) => {
                let text: Vec<&str> = tags.iter().map(Tag::as_str).collect();
                ("tags".into(), text.join(";").into())
            }
            Self::Description(text) => ("description".into(), text.as_str().into()),
            Self::Protect => ("protection".into(), Value::On),
            Self::SetEnv(env) => ("env".into(), Value::Secret(env.property())),
            Self::ClearEnv => ("delete".into(), "env".into()),
            Self::AddVolume(volume) => {
                let NewVolume { slot, storage, size, mount, in_backup } = volume;
                let backup = match in_backup {
                    InBackup::Yes => 1,
                    InBackup::No => 0,
                };
                let text = format!("{storage}:{},mp={mount},backup={backup}", size.get());
                (DiskSlot::Mount(*slot).key().into(), text.into())
            }
            Self::Unlabel(labels) => {
                let keys = match labels {
                    Labels::Tags => "tags",
                    Labels::Description => "description",
                    Labels::Both => "description,tags",
                };
                ("delete".into(), keys.into())
            }
            Self::Hostname(name) => ("hostname".into(), name.as_str().into()),
            Self::AtBoot(Switch::On) => ("onboot".into(), Value::On),
            Self::AtBoot(Switch::Off) => ("onboot".into(), Value::Text("0".to_owned())),
            Self::Names(key, text) => (key.key().into(), text.as_str().into()),
            Self::HostNames(keys) => {
                let keys: Vec<&str> = keys.iter().map(|key| key.key()).collect();
                ("delete".into(), keys.join(",").into())
            }
            Self::WithdrawNames => ("revert".into(), "nameserver,searchdomain".into()),
            Self::Net(NetSlot(number), line) => (format!("net{number}").into(), line.to_string().into()),
            Self::WithdrawRequest(slot) => ("revert".into(), DiskSlot::Mount(*slot).key().into()),
        }
    }
}

/// The parameter that takes options away. It is sent once, with all of them.
const DELETE: &str = "delete";

/// As Proxmox writes a number of cores: `1`, `1.5`, `0.05`.
fn cores(percent: CorePercent) -> String {
    let (whole, part) = (percent.get() / 100, percent.get() % 100);
    let text = format!("{whole}.{part:02}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Changes for one call, bound to the state on which they were decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigUpdate {
    digest: Digest,
    changes: Vec<ConfigChange>,
}

/// An invalid list of changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigUpdateError {
    /// Proxmox answers an empty change with an error.
    #[error("there is nothing to change")]
    Empty,
    /// The later one would win silently.
    #[error("{0} is changed twice in one call")]
    Twice(String),
}

impl ConfigUpdate {
    /// Binds changes to the state they were decided on.
    ///
    /// # Errors
    /// When there are none, or two of the same key.
    pub fn new(digest: Digest, changes: Vec<ConfigChange>) -> Result<Self, ConfigUpdateError> {
        let key = |change: &ConfigChange| {
            let (key, value) = change.param();
            if key == DELETE { format!("{DELETE} {}", value.expose()) } else { key.into_owned() }
        };
        let mut keys: Vec<String> = changes.iter().map(key).collect();
        keys.sort();
        let twice = keys.iter().zip(keys.iter().skip(1)).find(|(a, b)| a == b).map(|(key, _)| key.clone());
        match (changes.is_empty(), twice) {
            (true, _) => Err(ConfigUpdateError::Empty),
            (false, Some(key)) => Err(ConfigUpdateError::Twice(key)),
            (false, None) => Ok(Self { digest, changes }),
        }
    }

    #[must_use]
    pub fn changes(&self) -> &[ConfigChange] {
        &self.changes
    }

    /// The state they were decided on.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    pub(super) fn params(&self) -> Params {
        let all = self.changes.iter().map(ConfigChange::param);
        let (deleted, mut params): (Params, Params) = all.partition(|(key, _)| key == DELETE);
        let deleted: Vec<String> = deleted.iter().map(|(_, value)| value.expose().into_owned()).collect();
        if !deleted.is_empty() {
            params.push((DELETE.into(), deleted.join(",").into()));
        }
        params.push(("digest".into(), self.digest.as_str().into()));
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest() -> Digest {
        Digest::parse("0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0").unwrap()
    }

    #[test]
    fn an_update_says_each_key_once() {
        let memory = |mib| ConfigChange::Memory(MemoryMib::try_from(mib).unwrap());
        assert_eq!(ConfigUpdate::new(digest(), Vec::new()), Err(ConfigUpdateError::Empty));
        let twice = ConfigUpdate::new(digest(), vec![memory(128), ConfigChange::Protect, memory(256)]);
        assert_eq!(twice, Err(ConfigUpdateError::Twice("memory".to_owned())));
        assert!(ConfigUpdate::new(digest(), vec![memory(128), ConfigChange::Protect]).is_ok());
    }

    #[test]
    fn a_bulk_volume_as_it_was_proved() {
        let volume = NewVolume {
            slot: MountSlot(0),
            storage: "labbtrfs".parse().unwrap(),
            size: DiskGib::try_from(1).unwrap(),
            mount: "/mnt/bulk".parse().unwrap(),
            in_backup: InBackup::No,
        };
        let (key, value) = ConfigChange::AddVolume(volume).param();
        assert_eq!((key.as_ref(), value.expose().as_ref()), ("mp0", "labbtrfs:1,mp=/mnt/bulk,backup=0"));
    }

    #[test]
    fn a_network_is_sent_whole_and_each_once() {
        let line = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.66.0.20/24,link_down=1";
        let net = |number| ConfigChange::Net(NetSlot(number), line.parse().unwrap());
        let (key, value) = net(3).param();
        assert_eq!((key.as_ref(), value.expose().as_ref()), ("net3", line));
        assert!(ConfigUpdate::new(digest(), vec![net(0), net(1)]).is_ok());
        assert_eq!(
            ConfigUpdate::new(digest(), vec![net(1), net(1)]),
            Err(ConfigUpdateError::Twice("net1".to_owned()))
        );
        let (key, value) = ConfigChange::AtBoot(Switch::Off).param();
        assert_eq!((key.as_ref(), value.expose().as_ref()), ("onboot", "0"));
    }

    #[test]
    fn limits_of_cpu_time_are_written_as_they_were_recorded() {
        let limit = |percent: u32| ConfigChange::CpuLimit(CpuLimit::CorePercent(percent.try_into().unwrap()));
        for (percent, text) in [(150, "1.5"), (100, "1"), (5, "0.05"), (1_000, "10"), (1_110, "11.1")] {
            let (key, value) = limit(percent).param();
            assert_eq!((key.as_ref(), value.expose().as_ref()), ("cpulimit", text));
        }
        let (key, value) = ConfigChange::CpuWeight(50.try_into().unwrap()).param();
        assert_eq!((key.as_ref(), value.expose().as_ref()), ("cpuunits", "50"));
    }

    #[test]
    fn what_is_taken_away_is_sent_in_one_parameter() {
        let unlimited = || ConfigChange::CpuLimit(CpuLimit::Unlimited);
        let names = || ConfigChange::HostNames(vec![NameKey::Servers, NameKey::Search]);
        let update = ConfigUpdate::new(digest(), vec![unlimited(), ConfigChange::Protect, names()]).unwrap();
        let sent = update.params().into_iter();
        let sent: Vec<String> = sent.map(|(key, value)| format!("{key}={}", value.expose())).collect();
        assert_eq!(sent[..2], ["protection=1", "delete=cpulimit,nameserver,searchdomain"]);
        let twice = ConfigUpdate::new(digest(), vec![unlimited(), unlimited()]);
        assert_eq!(twice, Err(ConfigUpdateError::Twice("delete cpulimit".to_owned())));
    }

    #[test]
    fn tags_that_proxmox_would_change_are_refused() {
        for bad in ["", "Holdfast", "a;b", "a b", "-a", "ä", "a,b"] {
            assert!(bad.parse::<Tag>().is_err(), "{bad:?}");
        }
        assert!("hf-1a2b3c4d".parse::<Tag>().is_ok());
    }
}
