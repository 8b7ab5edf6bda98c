//! Settings of alerts: rules, receivers, and the ping of an external watcher.
//!
//! A receiver's settings hold secrets, so they are a file of their own, or a credential that systemd decrypts for the
//! hub alone (`LoadCredentialEncrypted=`). `hub.toml` only names it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use alerts::{Rules, Ruleset};
use holdfast_protocol::id::ReceiverName;
use notify::EgressPolicy;
use notify::url::{SecretUrl, UrlError};
use serde::Deserialize;

use crate::task::delivery::Receiver;
use crate::task::watcher::WatcherSettings;

/// As many receivers as one hub has.
const RECEIVERS_MAX: usize = 64;

/// Settings of a receiver are short; a larger file is another one.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// How often an external watcher is pinged, in seconds.
const PING_USUAL_S: u32 = 60;

/// Everything about alerts.
#[derive(Clone, Debug)]
pub struct AlertSettings {
    /// The rules, checked against the receivers.
    pub rules: Ruleset,
    pub receivers: Vec<Receiver>,
    /// How far deliveries may reach.
    pub reach: EgressPolicy,
    pub watcher: Option<WatcherSettings>,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            rules: Ruleset::without_channels(),
            receivers: Vec::new(),
            reach: EgressPolicy::default(),
            watcher: None,
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

/// Why settings of alerts are refused.
#[derive(Debug, thiserror::Error)]
pub enum AlertSettingsError {
    #[error("receiver {name}: write either `file` or `credential`, and not both")]
    Place { name: ReceiverName },
    #[error("[[receiver]] names {name} twice: keep one of the two")]
    Twice { name: ReceiverName },
    #[error("{0} receivers; at most {RECEIVERS_MAX} are accepted")]
    TooMany(usize),
    #[error(
        "receiver {name}: {credential:?} is not the name of a credential: write letters, digits, '.', '_', '-'"
    )]
    CredentialName { name: ReceiverName, credential: String },
    #[error(
        "receiver {name}: systemd gives the hub no credentials: add LoadCredentialEncrypted= to its unit, or use `file`"
    )]
    NoCredentials { name: ReceiverName },
    #[error("{path} cannot be read: correct the path, or let the hub's user read it")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} holds a secret and every user can read it: run `chmod o= {path}`")]
    Open { path: PathBuf },
    #[error("{path} is longer than settings of a receiver are")]
    Long { path: PathBuf },
    #[error("{path} is refused: correct it")]
    Form {
        path: PathBuf,
        /// Where and why; never the secret.
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("{path} holds no URL: write one https URL")]
    Url {
        path: PathBuf,
        #[source]
        source: UrlError,
    },
    #[error("[watcher] every_s is {0}: 10 to 3600 seconds are possible")]
    Every(u32),
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
        for file in self.receivers {
            let receiver = receiver(file, credentials)?;
            if receivers.iter().any(|known| known.name == receiver.name) {
                return Err(AlertSettingsError::Twice { name: receiver.name });
            }
            receivers.push(receiver);
        }
        let names: Vec<ReceiverName> = receivers.iter().map(|receiver| receiver.name.clone()).collect();
        let rules = self.rules.unwrap_or_default().resolve(&names).map_err(AlertSettingsError::Rules)?;
        let watcher = self.watcher.map(watcher).transpose()?;
        Ok(AlertSettings { rules, receivers, reach: self.reach.unwrap_or_default(), watcher })
    }
}

fn receiver(file: ReceiverFile, credentials: Option<&Path>) -> Result<Receiver, AlertSettingsError> {
    let ReceiverFile { name, file, credential } = file;
    let path = match (file, credential) {
        (Some(path), None) => path,
        (None, Some(credential)) => {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            if credential.is_empty() || credential.starts_with('.') || !credential.bytes().all(fits) {
                return Err(AlertSettingsError::CredentialName { name, credential });
            }
            let folder = credentials.ok_or(AlertSettingsError::NoCredentials { name: name.clone() })?;
            folder.join(credential)
        }
        (Some(_), Some(_)) | (None, None) => return Err(AlertSettingsError::Place { name }),
    };
    let text = read_secret(&path)?;
    let channel = toml::from_str(&text).map_err(|mut source: toml::de::Error| {
        // The message would quote the line, and with it the secret.
        source.set_input(None);
        AlertSettingsError::Form { path, source: Box::new(source) }
    })?;
    Ok(Receiver { name, channel })
}

fn watcher(file: WatcherFile) -> Result<WatcherSettings, AlertSettingsError> {
    let every_s = file.every_s.unwrap_or(PING_USUAL_S);
    if !(10..=3_600).contains(&every_s) {
        return Err(AlertSettingsError::Every(every_s));
    }
    let text = read_secret(&file.url_file)?;
    let url = SecretUrl::try_from(holdfast_protocol::secret::Secret::new(text.trim().to_owned()));
    let url = url.map_err(|source| AlertSettingsError::Url { path: file.url_file, source })?;
    Ok(WatcherSettings { url, every_s })
}

/// A file that not every user can read.
fn read_secret(path: &Path) -> Result<zeroize::Zeroizing<String>, AlertSettingsError> {
    let failed = |source| AlertSettingsError::Read { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.mode() & 0o004 != 0 {
        return Err(AlertSettingsError::Open { path: path.to_owned() });
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(AlertSettingsError::Long { path: path.to_owned() });
    }
    std::fs::read_to_string(path).map(zeroize::Zeroizing::new).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::Channel;
    use std::os::unix::fs::PermissionsExt as _;

    const NTFY: &str = "kind = \"ntfy\"\nserver = \"https://ntfy.example/\"\ntopic = \"t0p1c\"\n";

    fn write(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn named(name: &str, file: Option<PathBuf>, credential: Option<&str>) -> AlertsFile {
        let receiver =
            ReceiverFile { name: name.parse().unwrap(), file, credential: credential.map(str::to_owned) };
        AlertsFile { receivers: vec![receiver], ..AlertsFile::default() }
    }

    #[test]
    fn a_receiver_is_read_out_of_a_file_or_a_credential() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "ops", NTFY, 0o600);
        for file in [named("ops", Some(path), None), named("ops", None, Some("ops"))] {
            let settings = file.load(Some(folder.path())).unwrap();
            assert!(matches!(settings.receivers[0].channel, Channel::Ntfy(_)));
            assert!(settings.rules.has_receiver(&"ops".parse().unwrap()));
        }
        assert!(AlertsFile::default().load(None).unwrap().receivers.is_empty());
    }

    #[test]
    fn what_is_wrong_is_refused_and_no_secret_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "open", NTFY, 0o644);
        assert!(matches!(named("a", Some(path), None).load(None), Err(AlertSettingsError::Open { .. })));
        let path = write(folder.path(), "bad", &NTFY.replace("kind", "knid"), 0o600);
        let refused = named("a", Some(path), None).load(None).unwrap_err();
        let text = holdfast_protocol::json::chain(&refused);
        assert!(matches!(refused, AlertSettingsError::Form { .. }) && !text.contains("t0p1c"), "{text}");
        let none = named("a", None, Some("a")).load(None);
        assert!(matches!(none, Err(AlertSettingsError::NoCredentials { .. })));
        let outside = named("a", None, Some("../a")).load(Some(folder.path()));
        assert!(matches!(outside, Err(AlertSettingsError::CredentialName { .. })));
        assert!(matches!(named("a", None, None).load(None), Err(AlertSettingsError::Place { .. })));
    }

    #[test]
    fn rules_are_checked_against_the_receivers() {
        let rules: Rules = toml::from_str("default_route = { receivers = [\"ops\"] }").unwrap();
        let refused = AlertsFile { rules: Some(rules), ..AlertsFile::default() }.load(None).unwrap_err();
        assert!(refused.to_string().contains("default_route.receivers"), "{refused}");
    }
}
