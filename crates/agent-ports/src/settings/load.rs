//! Reading and checking of the settings file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use holdfast_protocol::id::StorageName;

use super::tunnels;
use super::{
    CONFIG_BYTES_MAX, ConfigPath, GoldenDump, HubAlarmSettings, IpAddr, MetricsSettings, ProxmoxSettings,
    Settings, TargetName, TestBridge,
};

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error(
        "the configuration {} cannot be read: name the right file with --config, or run `agentd setup`",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Larger than any sane configuration.
    #[error("the configuration {} is larger than {CONFIG_BYTES_MAX} bytes: is it the right file?", path.display())]
    Size {
        /// The file.
        path: PathBuf,
    },
    /// Not TOML, or not of our form.
    #[error("the configuration {} is refused at `{at}`: correct it there", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The key.
        at: String,
        /// The error there.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// Of the right form, but with values that cannot be right.
    #[error("the configuration {} is refused at `{at}`: {rule}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        at: String,
        /// The expected value there.
        rule: &'static str,
    },
}

impl Settings {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// [`SettingsError`], with the key of the first mistake.
    pub fn load(at: &ConfigPath) -> Result<Self, SettingsError> {
        let path = &at.config;
        let read = |source| SettingsError::Read { path: path.clone(), source };
        if std::fs::metadata(path).map_err(read)?.len() > CONFIG_BYTES_MAX {
            return Err(SettingsError::Size { path: path.clone() });
        }
        Self::parse(&std::fs::read_to_string(path).map_err(read)?, path)
    }

    /// Checks a configuration's text. `path` is only named in errors.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, SettingsError> {
        let form =
            |at: String, source| SettingsError::Form { path: path.to_owned(), at, source: Box::new(source) };
        let reader = toml::Deserializer::parse(text).map_err(|source| form(".".to_owned(), source))?;
        let settings: Self = serde_path_to_error::deserialize(reader)
            .map_err(|error| form(error.path().to_string(), error.into_inner()))?;
        match settings.mistake() {
            None => Ok(settings),
            Some((at, rule)) => Err(SettingsError::Value { path: path.to_owned(), at, rule }),
        }
    }

    /// The first invalid value that its type could not refuse.
    fn mistake(&self) -> Option<(String, &'static str)> {
        self.proxmox
            .mistake()
            .or_else(|| self.golden_mistake())
            .or_else(|| self.place_mistake())
            .or_else(|| self.audit.mistake())
            .or_else(|| self.brake.mistake())
            .or_else(|| self.hub_alarm.as_ref().and_then(HubAlarmSettings::mistake))
            .or_else(|| self.metrics.as_ref().and_then(MetricsSettings::mistake))
            .or_else(|| self.token_renewal.mistake())
            .or_else(|| tunnels::mistake(&self.tunnel))
            .or_else(|| self.scratch_mistake())
            .or_else(|| self.counterpart_mistake())
    }

    fn golden_mistake(&self) -> Option<(String, &'static str)> {
        if self.golden_dump.as_ref().is_some_and(|dump| !dump.folder.is_absolute()) {
            return Some(("golden_dump.folder".to_owned(), "an absolute path"));
        }
        let refresh = self.golden_dump.as_ref().map(|dump| dump.refresh_days);
        if refresh.is_some_and(|days| !GoldenDump::REFRESH_DAYS_POSSIBLE.contains(&days)) {
            return Some(("golden_dump.refresh_days".to_owned(), "1 to 3650 days"));
        }
        self.golden.iter().enumerate().find_map(|(index, golden)| {
            let at = |field: &str| format!("golden[{index}].{field}");
            let twice = self.golden.iter().take(index).any(|earlier| earlier.version == golden.version);
            let is_hex = |text: &String| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
            let hex = golden.sha256.as_ref().is_none_or(is_hex);
            if twice {
                Some((at("version"), "this version stands twice; a version names one archive for ever"))
            } else if !hex {
                Some((at("sha256"), "64 hex digits, as `sha256sum` prints them"))
            } else if !golden.archive.contains(":backup/") {
                Some((at("archive"), "a volume such as local:backup/vzdump-lxc-9000-….tar.zst"))
            } else if !golden.file.is_absolute() {
                Some((at("file"), "an absolute path"))
            } else {
                None
            }
        })
    }

    fn scratch_mistake(&self) -> Option<(String, &'static str)> {
        let scratch = self.scratch.as_ref()?;
        let at = |field: &str| format!("scratch.{field}");
        let ([first, last], [from, to]) = (scratch.vmid_range, self.proxmox.vmid_range);
        if first > last {
            return Some((at("vmid_range"), "[first, last], the first not above the last"));
        }
        if first <= to && from <= last {
            return Some((
                at("vmid_range"),
                "numbers that proxmox.vmid_range does not hold: guests have those",
            ));
        }
        if scratch.pool == self.proxmox.pool {
            return Some((at("pool"), "a pool of its own, apart from proxmox.pool"));
        }
        if self.proxmox.backup_storage.as_ref() == Some(&scratch.storage) {
            let rule = "a storage without archives: with its token one could delete them there";
            return Some((at("storage"), rule));
        }
        scratch.token.mistake("scratch.token").or_else(|| self.speech_mistake(scratch.speech.as_ref()?))
    }

    /// A twin has no other purpose: the rights on it are for tests, and its content belongs to another storage.
    fn counterpart_mistake(&self) -> Option<(String, &'static str)> {
        let scratch = self.scratch.as_ref()?;
        let targets = self.storage_entries.iter().flat_map(|entries| &entries.targets);
        let backups: BTreeSet<&str> = (self.proxmox.backup_storage.iter().map(StorageName::as_str))
            .chain(targets.map(TargetName::as_str))
            .collect();
        let goldens = self.golden.iter().filter_map(|golden| golden.archive.split(':').next());
        let others: BTreeSet<&str> = [&self.proxmox.storage, &scratch.storage]
            .into_iter()
            .chain(&self.proxmox.bulk_storage)
            .chain(&self.proxmox.guest_storages)
            .chain(self.golden_dump.iter().map(|dump| &dump.storage))
            .map(StorageName::as_str)
            .chain(goldens)
            .collect();
        counterpart_mistake(&scratch.twins, &backups, &others)
            .map(|(of, rule)| (format!("scratch.twins.{of}"), rule))
    }

    fn speech_mistake(&self, speech: &TestBridge) -> Option<(String, &'static str)> {
        let at = |field: &str| format!("scratch.speech.{field}");
        if speech.bridge == self.proxmox.bridge {
            return Some((
                at("bridge"),
                "a bridge of its own, apart from proxmox.bridge: guests are on that",
            ));
        }
        let IpAddr::V4(own) = speech.listener.ip() else {
            return Some((at("listener"), "an IPv4 address with its port"));
        };
        if !speech.guest.reaches(own) || speech.guest.address() == own {
            return Some((at("guest"), "another address in the network of scratch.speech.listener"));
        }
        if self.local_api.listen.contains(&speech.listener) {
            return Some((
                at("listener"),
                "an address of its own, apart from local_api.listen: guests call there",
            ));
        }
        None
    }

    fn place_mistake(&self) -> Option<(String, &'static str)> {
        if !self.state.dir.is_absolute() {
            return Some(("state.dir".to_owned(), "an absolute path"));
        }
        if self.storage_entries.as_ref().is_some_and(|entries| !entries.sealed_token.is_absolute()) {
            return Some(("storage_entries.sealed_token".to_owned(), "an absolute path"));
        }
        if self.local_api.listen.is_empty() {
            return Some((
                "local_api.listen".to_owned(),
                "at least one address of the guests' bridge, with port",
            ));
        }
        self.local_api.listen.iter().enumerate().find_map(|(index, address)| {
            let bad = address.ip().is_unspecified() || address.ip().is_multicast();
            bad.then(|| {
                let rule = "one address of the guests' bridge: listening everywhere would show the API to networks \
                            that have no guests";
                (format!("local_api.listen[{index}]"), rule)
            })
        })
    }
}

impl ProxmoxSettings {
    fn mistake(&self) -> Option<(String, &'static str)> {
        let at = |field: &str| format!("proxmox.{field}");
        let host = self.url.strip_prefix("https://");
        if !host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' '])) {
            return Some((at("url"), "https://address:8006, without a path"));
        }
        let [from, to] = self.vmid_range;
        if from > to {
            return Some((at("vmid_range"), "[first, last], the first not above the last"));
        }
        let tokens = [
            ("observe", &self.tokens.observe),
            ("operate", &self.tokens.operate),
            ("allocate", &self.tokens.allocate),
        ];
        tokens.into_iter().find_map(|(name, token)| token.mistake(&format!("proxmox.tokens.{name}")))
    }
}

/// The first storage whose twin cannot be one, by names alone. `setup` makes the same check.
pub fn counterpart_mistake<'a>(
    twins: &'a BTreeMap<StorageName, StorageName>,
    backups: &BTreeSet<&str>,
    others: &BTreeSet<&str>,
) -> Option<(&'a StorageName, &'static str)> {
    twins.iter().find_map(|(of, counterpart)| {
        let shared = twins.iter().any(|(other, its)| other != of && its == counterpart);
        let rule = if !backups.contains(of.as_str()) {
            "a storage of backups on the left: proxmox.backup_storage, or one of storage_entries.targets"
        } else if backups.contains(counterpart.as_str()) || others.contains(counterpart.as_str()) {
            "an entry on the right that is used for nothing else"
        } else if shared {
            "an entry of its own for each storage"
        } else {
            return None;
        };
        Some((of, rule))
    })
}
