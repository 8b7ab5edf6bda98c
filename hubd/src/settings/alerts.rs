//! Settings of alerts: rules, receivers, and the ping of an external watcher.
//!
//! A receiver's settings hold secrets, so they are a file of their own, or a credential that systemd decrypts for the
//! hub alone (`LoadCredentialEncrypted=`). `hub.toml` only names it.

use std::path::{Path, PathBuf};

use alerts::{Rules, Ruleset};
use holdfast_protocol::id::ReceiverName;
use jiff::SignedDuration;
use notify::channel_file::read_secret;
use notify::url::{SecretUrl, UrlError};
use notify::{ChannelFileError, ChannelPlace, EgressPolicy};
use serde::Deserialize;

use crate::api::SettingsFiles;
use crate::task::delivery::Receiver;
use crate::task::hub_backup::BackupWatch;
use crate::task::watcher::WatcherSettings;

/// As many receivers as one hub has.
const RECEIVERS_MAX: usize = 64;

/// How often an external watcher is pinged, in seconds.
const PING_USUAL_S: u32 = 60;

/// How old the newest backup of the hub may be, in hours: one a day, and time to take it.
const BACKUP_AGE_USUAL_H: u16 = 30;

/// Everything about alerts.
#[derive(Clone, Debug)]
pub struct AlertSettings {
    /// The rules, checked against the receivers.
    pub rules: Ruleset,
    pub receivers: Vec<Receiver>,
    /// How far deliveries may reach.
    pub reach: EgressPolicy,
    pub watcher: Option<WatcherSettings>,
    /// Where the hub's own backups are.
    pub backup: Option<BackupWatch>,
    /// From which rules and receivers were read.
    pub files: SettingsFiles,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            rules: Ruleset::without_channels(),
            receivers: Vec::new(),
            reach: EgressPolicy::default(),
            watcher: None,
            backup: None,
            files: SettingsFiles::default(),
        }
    }
}

/// The parts of `hub.toml` about alerts.
#[derive(Debug, Default)]
pub(super) struct AlertsFile {
    pub rules: Option<Rules>,
    pub receivers: Vec<ReceiverFile>,
    pub reach: Option<EgressPolicy>,
    pub watcher: Option<WatcherFile>,
    pub backup: Option<BackupFile>,
    /// The file itself.
    pub files: SettingsFiles,
}

/// Names a receiver, and where its settings are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiverFile {
    name: ReceiverName,
    /// A file that only the hub's user and root can read.
    file: Option<PathBuf>,
    /// A credential of the hub's unit.
    credential: Option<String>,
}

/// Names the file with the address of the external watcher.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatcherFile {
    url_file: PathBuf,
    every_s: Option<u32>,
}

/// Where backups of the hub's folder are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupFile {
    path: PathBuf,
    age_max_hours: Option<u16>,
}

/// Why settings of alerts are refused.
#[derive(Debug, thiserror::Error)]
pub enum AlertSettingsError {
    #[error("[[receiver]] names {name} twice: keep one of the two")]
    Twice { name: ReceiverName },
    #[error("{0} receivers; at most {RECEIVERS_MAX} are accepted")]
    TooMany(usize),
    #[error("the settings of receiver {name} are refused")]
    Receiver {
        name: ReceiverName,
        #[source]
        source: ChannelFileError,
    },
    #[error("the settings of the watcher are refused")]
    Watcher(#[source] ChannelFileError),
    #[error("{} holds no URL: write one https URL", path.display())]
    Url {
        path: PathBuf,
        #[source]
        source: UrlError,
    },
    #[error("[watcher] every_s is {0}: 10 to 3600 seconds are possible")]
    Every(u32),
    #[error("[backup] path is {}: write an absolute path", .0.display())]
    BackupPath(PathBuf),
    #[error("[backup] age_max_hours is {0}: 1 to 8760 hours are possible")]
    BackupAge(u16),
    #[error("the rules in [alerts] are refused: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Rules(Vec<alerts::rules::RulesError>),
}

impl AlertsFile {
    /// Reads the files that are named, and checks the rules. `credentials` is the folder that systemd made for the hub.
    pub(super) fn load(self, credentials: Option<&Path>) -> Result<AlertSettings, AlertSettingsError> {
        if self.receivers.len() > RECEIVERS_MAX {
            return Err(AlertSettingsError::TooMany(self.receivers.len()));
        }
        let mut receivers: Vec<Receiver> = Vec::new();
        let mut files = self.files;
        for file in self.receivers {
            file.file.iter().for_each(|path| files.add(path));
            let receiver = receiver(file, credentials)?;
            if receivers.iter().any(|known| known.name == receiver.name) {
                return Err(AlertSettingsError::Twice { name: receiver.name });
            }
            receivers.push(receiver);
        }
        let names: Vec<ReceiverName> = receivers.iter().map(|receiver| receiver.name.clone()).collect();
        let rules = self.rules.unwrap_or_default().resolve(&names).map_err(AlertSettingsError::Rules)?;
        let watcher = self.watcher.map(watcher).transpose()?;
        let backup = self.backup.map(backup).transpose()?;
        let reach = self.reach.unwrap_or_default();
        Ok(AlertSettings { rules, receivers, reach, watcher, backup, files })
    }
}

fn receiver(file: ReceiverFile, credentials: Option<&Path>) -> Result<Receiver, AlertSettingsError> {
    let ReceiverFile { name, file, credential } = file;
    match (ChannelPlace { file, credential }).read(credentials) {
        Ok(channel) => Ok(Receiver { name, channel }),
        Err(source) => Err(AlertSettingsError::Receiver { name, source }),
    }
}

fn backup(file: BackupFile) -> Result<BackupWatch, AlertSettingsError> {
    let hours = file.age_max_hours.unwrap_or(BACKUP_AGE_USUAL_H);
    if !(1..=8_760).contains(&hours) {
        return Err(AlertSettingsError::BackupAge(hours));
    }
    if !file.path.is_absolute() {
        return Err(AlertSettingsError::BackupPath(file.path));
    }
    Ok(BackupWatch { path: file.path, age_max: SignedDuration::from_hours(hours.into()) })
}

fn watcher(file: WatcherFile) -> Result<WatcherSettings, AlertSettingsError> {
    let every_s = file.every_s.unwrap_or(PING_USUAL_S);
    if !(10..=3_600).contains(&every_s) {
        return Err(AlertSettingsError::Every(every_s));
    }
    let text = read_secret(&file.url_file).map_err(AlertSettingsError::Watcher)?;
    let url = SecretUrl::try_from(holdfast_protocol::secret::Secret::new(text.trim().to_owned()));
    let url = url.map_err(|source| AlertSettingsError::Url { path: file.url_file, source })?;
    Ok(WatcherSettings { url, every_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_backups_is_absolute_and_its_age_bounded() {
        let of = |path: &str, age_max_hours| backup(BackupFile { path: path.into(), age_max_hours });
        let usual = of("/var/backups/hub", None).unwrap();
        assert_eq!(usual.age_max, SignedDuration::from_hours(30));
        assert!(matches!(of("backups", None), Err(AlertSettingsError::BackupPath(_))));
        for hours in [0, 8_761] {
            assert!(matches!(of("/a", Some(hours)), Err(AlertSettingsError::BackupAge(_))));
        }
    }

    #[test]
    fn a_receiver_is_named_when_its_settings_are_refused() {
        let receiver =
            ReceiverFile { name: "ops".parse().unwrap(), file: None, credential: Some("a".into()) };
        let refused =
            AlertsFile { receivers: vec![receiver], ..AlertsFile::default() }.load(None).unwrap_err();
        let text = holdfast_protocol::json::chain(&refused);
        assert!(text.contains("receiver ops") && text.contains("LoadCredentialEncrypted="), "{text}");
    }

    #[test]
    fn rules_are_checked_against_the_receivers() {
        let rules: Rules = toml::from_str("default_route = { receivers = [\"ops\"] }").unwrap();
        let refused = AlertsFile { rules: Some(rules), ..AlertsFile::default() }.load(None).unwrap_err();
        assert!(refused.to_string().contains("default_route.receivers"), "{refused}");
    }
}
