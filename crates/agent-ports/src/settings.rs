//! The settings file: parsed and checked.
//!
//! All settings that a part of the program needs are here. Parts get their own piece from the composition root and
//! never read the file themselves. Only these have a silent default: the state folder, the two files of operators and
//! policy, the age of goldens, and the brake, which is on. Deliberately absent: secrets. A setting names the file of a
//! secret, and [`TokenSettings::read_token`] reads it when it is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use holdfast_protocol::id::{BridgeName, GoldenVersion, NodeName, PoolName, StorageName, TargetName, Vmid};
use holdfast_protocol::pin::PinSet;
use holdfast_protocol::size::{Cores, MemoryMib};
use notify::{ChannelPlace, EgressPolicy};
use serde::Deserialize;

use crate::model::addresses::AddressRange;
use crate::model::policy::{BrakeRule, GoldenDump, QuiesceBound, TestBridge};
use crate::model::tunnel::Tunnel;
use crate::pve::{ApiToken, Role};

mod load;
mod pve;
pub mod secret_file;
mod token_renewal;
pub mod tunnels;

pub use load::{SettingsError, counterpart_mistake};
pub use pve::pve_settings;
pub use secret_file::SecretFileError;
pub use token_renewal::TokenRenewalSettings;

/// A configuration is at most 64 KiB; a long one with comments has three.
pub const CONFIG_BYTES_MAX: u64 = 64 * 1024;

/// Where the configuration is.
#[derive(Clone, Debug, clap::Args)]
pub struct ConfigPath {
    /// The configuration file.
    #[arg(
        long,
        env = "HOLDFAST_AGENT_CONFIG",
        default_value = "/etc/holdfast/agent.toml",
        value_name = "FILE"
    )]
    pub config: PathBuf,
}

/// The settings that root gives the agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How Proxmox is reached, and what of it is ours.
    pub proxmox: ProxmoxSettings,
    /// The golden images that root named on this host.
    #[serde(default)]
    pub golden: Vec<GoldenSettings>,
    /// Where golden images are built on this host.
    #[serde(default)]
    pub golden_dump: Option<GoldenDumpSettings>,
    /// Where guests reach us.
    pub local_api: LocalApiSettings,
    /// Where we store persistent data.
    #[serde(default)]
    pub state: StateSettings,
    /// How long the audit is kept.
    #[serde(default)]
    pub audit: AuditSettings,
    /// How many guests documents may touch at once.
    #[serde(default)]
    pub brake: BrakeSettings,
    /// How long guests' programs may be stopped for a backup.
    #[serde(default)]
    pub quiesce: QuiesceSettings,
    /// Who may sign for this host.
    #[serde(default)]
    pub trust: TrustSettings,
    /// Which entries of storages the agent may make in Proxmox. Without it root makes them.
    #[serde(default)]
    pub storage_entries: Option<StorageEntrySettings>,
    /// Where backups are tried. Without it none is.
    #[serde(default)]
    pub scratch: Option<ScratchSettings>,
    /// Who hears from this host itself that its hub does not answer. Without it no one does.
    #[serde(default)]
    pub hub_alarm: Option<HubAlarmSettings>,
    /// Where a scraper gets the metrics of this host. Without it they are at the admin socket alone.
    #[serde(default)]
    pub metrics: Option<MetricsSettings>,
    /// How often tokens are renewed.
    #[serde(default)]
    pub token_renewal: TokenRenewalSettings,
    /// Tunnels that the agent looks after. Without one it looks after none.
    #[serde(default)]
    pub tunnel: Vec<Tunnel>,
}

/// Where a scraper gets the metrics of this host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// An address of the loopback, with port: who may log in on this host reads the names of guests there.
    pub listen: SocketAddr,
}

impl MetricsSettings {
    fn mistake(&self) -> Option<(String, &'static str)> {
        let possible = self.listen.ip().is_loopback() && self.listen.port() != 0;
        (!possible).then(|| {
            ("metrics.listen".to_owned(), "an address of the loopback with its port, such as 127.0.0.1:9469")
        })
    }
}

/// Who hears from this host itself that its hub does not answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubAlarmSettings {
    /// The file with the channel's settings: mail, ntfy or a webhook.
    pub file: Option<PathBuf>,
    /// Or a credential of the agent's unit with them, sealed by systemd.
    pub credential: Option<String>,
    /// After how many seconds of silence; 300 to 86400.
    #[serde(default = "usual_hub_alarm_s")]
    pub after_s: u32,
    /// How far the message may go: `public`, `private` or `loopback`.
    #[serde(default)]
    pub deliver_to: EgressPolicy,
}

/// A restart of the hub's machine is over by then.
const fn usual_hub_alarm_s() -> u32 {
    900
}

impl HubAlarmSettings {
    fn mistake(&self) -> Option<(String, &'static str)> {
        let possible = (300..=86_400).contains(&self.after_s);
        (!possible).then(|| ("hub_alarm.after_s".to_owned(), "300 to 86400 seconds"))
    }

    /// Where the channel's settings are.
    #[must_use]
    pub fn place(&self) -> ChannelPlace {
        ChannelPlace { file: self.file.clone(), credential: self.credential.clone() }
    }
}

/// Where backups are tried: in scratch guests, with a token that reaches nothing else.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScratchSettings {
    /// The pool of scratch guests.
    pub pool: PoolName,
    /// VMIDs for them, both ends included; not from the range of the guests.
    pub vmid_range: [Vmid; 2],
    /// Where their disks are made: a storage that holds no archives.
    pub storage: StorageName,
    /// How much memory one gets.
    pub memory_mib: MemoryMib,
    /// How many cores.
    pub cores: Cores,
    /// Their own token.
    pub token: TokenSettings,
    /// The address at which their controllers may reach this agent. Without it they are checked only from outside.
    #[serde(default)]
    pub speech: Option<TestBridge>,
    /// For a storage of backups the entry of Proxmox by which they are read for tests: the same namespace of the same server,
    /// by an account that may only read. Without one they are read by the storage's own.
    #[serde(default)]
    pub twins: BTreeMap<StorageName, StorageName>,
}

/// Which entries of storages the agent may make in Proxmox, once they are signed for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageEntrySettings {
    /// The file of the sealed `storage` token.
    pub sealed_token: PathBuf,
    /// The storage targets that root lets it make entries for.
    pub targets: BTreeSet<TargetName>,
}

/// How Proxmox is reached, and what of it is ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxmoxSettings {
    /// `https://127.0.0.1:8006`, without a path.
    pub url: String,
    /// The node that this agent manages.
    pub node: NodeName,
    /// Its certificate, by key or whole.
    pub pins: PinSet,
    /// The pool of our guests.
    pub pool: PoolName,
    /// Where root disks and hot volumes are made.
    pub storage: StorageName,
    /// Where bulk volumes are made.
    pub bulk_storage: Option<StorageName>,
    /// Further storages on which documents may place disks of guests.
    #[serde(default)]
    pub guest_storages: BTreeSet<StorageName>,
    /// Where backups are stored.
    pub backup_storage: Option<StorageName>,
    /// The bridge of our guests.
    pub bridge: BridgeName,
    /// Addresses on it that other devices use, such as a DHCP server's range: no guest of a document gets one.
    #[serde(default)]
    pub reserved_addresses: Vec<AddressRange>,
    /// The VMIDs the agent may pick from, both ends included.
    pub vmid_range: [Vmid; 2],
    /// One token for each kind of work.
    pub tokens: ProxmoxTokens,
}

/// One token for each kind of work, so that a mistake in one kind of work cannot use the rights of another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxmoxTokens {
    /// Observes.
    pub observe: TokenSettings,
    /// Power, configuration, snapshots, backups of the guests in the pool.
    pub operate: TokenSettings,
    /// Restores into the pool and destroys from it.
    pub allocate: TokenSettings,
}

/// One token of Proxmox.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSettings {
    /// `user@realm!name`.
    pub id: String,
    /// The file that holds its secret and nothing else.
    pub secret_file: PathBuf,
}

impl TokenSettings {
    fn mistake(&self, at: &str) -> Option<(String, &'static str)> {
        let parts = self.id.split_once('!').map(|(user, token)| (user.split_once('@'), token));
        let whole = matches!(parts, Some((Some((user, realm)), token)) if !user.is_empty() && !realm.is_empty() && !token.is_empty());
        if !whole {
            Some((format!("{at}.id"), "user@realm!name"))
        } else if !self.secret_file.is_absolute() {
            Some((format!("{at}.secret_file"), "an absolute path"))
        } else {
            None
        }
    }

    /// Reads the token: this one, or the one that stands in while it is made anew.
    ///
    /// # Errors
    /// [`SecretFileError`] when the file cannot be read, is open to others, or does not hold one line.
    pub fn read_token(&self) -> Result<ApiToken, SecretFileError> {
        secret_file::token(&self.id, &secret_file::read(&self.secret_file)?, &self.secret_file)
    }
}

/// One golden image.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenSettings {
    /// Its version, by which desired documents name it.
    pub version: GoldenVersion,
    /// Its archive as Proxmox names it, `local:backup/vzdump-lxc-….tar.zst`.
    pub archive: String,
    /// SHA-256 of that archive, hex: root's approval of these bytes. Without it an operator signs for the bytes.
    pub sha256: Option<String>,
    /// The same archive as a file this agent can read, for checking the digest.
    pub file: PathBuf,
}

/// Where golden images are built on this host. Guests may be made from an image there once an operator signed for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenDumpSettings {
    /// The storage as Proxmox names it, such as `local`.
    pub storage: StorageName,
    /// Its dump folder, such as `/var/lib/vz/dump`: `golden_dump` of /etc/holdfast/helper.toml.
    pub folder: PathBuf,
    /// When the newest image there is older than so many days, this is reported.
    #[serde(default = "usual_refresh_days")]
    pub refresh_days: u32,
}

const fn usual_refresh_days() -> u32 {
    GoldenDump::REFRESH_DAYS
}

/// Where guests reach us.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalApiSettings {
    /// Addresses of this host on the guests' bridge, with port. Never all addresses at once.
    pub listen: Vec<SocketAddr>,
}

/// How long guests' programs may be stopped for a backup.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuiesceSettings {
    /// The bound of a quiesce window, in seconds: 60 to 3600.
    pub bound_s: QuiesceBound,
}

impl Default for QuiesceSettings {
    fn default() -> Self {
        Self { bound_s: QuiesceBound::usual() }
    }
}

/// Where we store persistent data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSettings {
    /// The folder of the database and the identity.
    pub dir: PathBuf,
}

impl Default for StateSettings {
    fn default() -> Self {
        Self { dir: PathBuf::from("/var/lib/holdfast") }
    }
}

/// How long the audit is kept.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSettings {
    /// Months after which a part of the audit that is stored in a file is removed; twelve at least.
    pub keep_months: u16,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { keep_months: 36 }
    }
}

impl AuditSettings {
    fn mistake(self) -> Option<(String, &'static str)> {
        let possible = (12..=1_200).contains(&self.keep_months);
        (!possible).then(|| ("audit.keep_months".to_owned(), "12 to 1200 months"))
    }
}

/// Who may sign for this host: two files that root installs. A signed update replaces them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrustSettings {
    /// Operators and their keys, in the form of OpenSSH's `allowed_signers`. Without it no operator may sign.
    pub operators: PathBuf,
    /// How many of them each verb needs, its delay, its daily cap. Without it the built-in rules hold.
    pub policy: PathBuf,
}

impl Default for TrustSettings {
    fn default() -> Self {
        Self { operators: "/etc/holdfast/operators".into(), policy: "/etc/holdfast/policy.toml".into() }
    }
}

/// How many running guests documents may stop, restart or resize within a window; more waits for a signature.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrakeSettings {
    /// The number of changes that is always allowed.
    pub at_least: u32,
    /// And this share of those that run, in percent.
    pub share_percent: u32,
    /// Within so many hours.
    pub window_hours: u32,
}

impl BrakeSettings {
    /// The rule in the form that the plan takes.
    #[must_use]
    pub const fn rule(self) -> BrakeRule {
        BrakeRule { at_least: self.at_least, share_percent: self.share_percent, window_h: self.window_hours }
    }

    fn mistake(self) -> Option<(String, &'static str)> {
        if self.share_percent > 100 {
            Some(("brake.share_percent".to_owned(), "0 to 100"))
        } else if self.window_hours == 0 || self.window_hours > BrakeRule::WINDOW_MAX_H {
            Some(("brake.window_hours".to_owned(), "1 to 168, which is a week"))
        } else {
            None
        }
    }
}

/// A brake that was not named is on.
impl Default for BrakeSettings {
    fn default() -> Self {
        let BrakeRule { at_least, share_percent, window_h } = BrakeRule::usual();
        Self { at_least, share_percent, window_hours: window_h }
    }
}

#[cfg(test)]
mod tests;
