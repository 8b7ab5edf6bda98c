//! Root's settings: ways, addresses, and customers that must consent.
//!
//! In: the text of `/etc/holdfast/break-glass.toml`. Out: settings that mean something, or the first mistake. Without the
//! file, or with `enabled = false`, every order is refused. Deliberately absent: anything that an order could change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use holdfast_protocol::break_glass::{OpenMinutes, PersonKey, WayName};
use holdfast_protocol::id::{CustomerId, HostId, HostName};
use holdfast_protocol::job::{HostEpoch, HostFingerprint, SeenHost};
use serde::{Deserialize, Serialize};

/// Larger than any file of settings.
pub const BYTES_MAX: u64 = 64 * 1024;

/// Ways of one host.
const WAYS_MAX: usize = 16;

/// Addresses that a way may be used from.
const FROM_MAX: usize = 16;

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub enabled: bool,
    /// Who this host is, as root knows it.
    pub host: HostSettings,
    /// The operators file.
    #[serde(default = "operators")]
    pub operators: PathBuf,
    /// The policy; one that is not there is the first policy.
    #[serde(default = "policy")]
    pub policy: PathBuf,
    /// The keys with which customers consent, in the form of the operators file.
    #[serde(default = "consent_keys")]
    pub consent_keys: PathBuf,
    /// The longest time for which any way may be open.
    #[serde(default = "minutes_max")]
    pub minutes_max: OpenMinutes,
    #[serde(default)]
    pub recordings: RecordingSettings,
    /// Customers with guests on this host.
    #[serde(default)]
    pub customers: BTreeMap<CustomerId, CustomerSettings>,
    pub ways: BTreeMap<WayName, Way>,
}

/// Who this host is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSettings {
    pub id: HostId,
    pub name: HostName,
    pub fingerprint: HostFingerprint,
    pub epoch: HostEpoch,
}

/// What is kept of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordingSettings {
    pub keep_days: u16,
    /// A session whose recording grows beyond this ends.
    pub mib_max: u16,
    /// With so much in the folder no session begins.
    pub total_mib_max: u32,
}

impl Default for RecordingSettings {
    fn default() -> Self {
        Self { keep_days: 90, mib_max: 64, total_mib_max: 1_024 }
    }
}

/// What a customer wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomerSettings {
    pub consent: ConsentRule,
}

/// Whether a customer signs before a way is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsentRule {
    NotNeeded,
    Signature,
}

/// One way into the host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Way {
    /// A recorded login shell of root for the key that the order names.
    AuthorizedKeys {
        from: BTreeSet<SourceAddress>,
        #[serde(default)]
        minutes_max: Option<OpenMinutes>,
    },
    /// One recorded program, for a key that root named.
    ForcedCommand {
        from: BTreeSet<SourceAddress>,
        key: PersonKey,
        /// The program by its whole path, with its arguments.
        run: Vec<String>,
        #[serde(default)]
        minutes_max: Option<OpenMinutes>,
    },
}

impl Way {
    #[must_use]
    pub const fn from(&self) -> &BTreeSet<SourceAddress> {
        match self {
            Self::AuthorizedKeys { from, .. } | Self::ForcedCommand { from, .. } => from,
        }
    }

    #[must_use]
    pub const fn minutes_max(&self) -> Option<OpenMinutes> {
        match self {
            Self::AuthorizedKeys { minutes_max, .. } | Self::ForcedCommand { minutes_max, .. } => {
                *minutes_max
            }
        }
    }
}

/// An address, or a network in CIDR form, that a way may be used from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceAddress(String);

impl SourceAddress {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SourceAddress {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        const RULE: &str = "an address is 10.0.0.7, 10.0.0.0/24, fd00::7 or fd00::/64; a network of all addresses is not taken";
        let (address, length) = text.split_once('/').map_or((text.as_str(), None), |(a, l)| (a, Some(l)));
        let address: IpAddr = address.parse().map_err(|_| RULE)?;
        let most = if address.is_ipv4() { 32_u8 } else { 128 };
        let length = length.map_or(Ok(most), |length| length.parse::<u8>().map_err(|_| RULE))?;
        if (1..=most).contains(&length) { Ok(Self(text)) } else { Err(RULE) }
    }
}

impl From<SourceAddress> for String {
    fn from(address: SourceAddress) -> Self {
        address.0
    }
}

fn operators() -> PathBuf {
    "/etc/holdfast/operators".into()
}

fn policy() -> PathBuf {
    "/etc/holdfast/policy.toml".into()
}

fn consent_keys() -> PathBuf {
    "/etc/holdfast/consent-keys".into()
}

fn minutes_max() -> OpenMinutes {
    OpenMinutes::HOURS_2
}

/// Why a file of settings is not used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the settings are not in the form of break-glass.toml")]
    Form(#[source] toml::de::Error),
    #[error("the settings name {0} ways; 1 to {WAYS_MAX} are accepted")]
    Ways(usize),
    #[error("way {way} names {found} addresses; 1 to {FROM_MAX} are accepted")]
    From { way: WayName, found: usize },
    #[error("way {0} runs a program: give its whole path, and arguments of printable characters")]
    Run(WayName),
    #[error("recordings.{0} is 0: nothing could be recorded; at least 1 is needed")]
    Recordings(&'static str),
}

impl Settings {
    /// Reads the file, whole or not at all.
    ///
    /// # Errors
    /// [`SettingsError`], at the first mistake.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let settings: Self = toml::from_str(text).map_err(SettingsError::Form)?;
        if !(1..=WAYS_MAX).contains(&settings.ways.len()) {
            return Err(SettingsError::Ways(settings.ways.len()));
        }
        for (name, way) in &settings.ways {
            let found = way.from().len();
            if !(1..=FROM_MAX).contains(&found) {
                return Err(SettingsError::From { way: name.clone(), found });
            }
            if let Way::ForcedCommand { run, .. } = way
                && !is_program(run)
            {
                return Err(SettingsError::Run(name.clone()));
            }
        }
        let RecordingSettings { keep_days, mib_max, total_mib_max } = settings.recordings;
        let numbers = [
            ("keep_days", u32::from(keep_days)),
            ("mib_max", u32::from(mib_max)),
            ("total_mib_max", total_mib_max),
        ];
        match numbers.into_iter().find(|(_, number)| *number == 0) {
            Some((name, _)) => Err(SettingsError::Recordings(name)),
            None => Ok(settings),
        }
    }

    /// The host, in the form in which a signer names it.
    #[must_use]
    pub fn own(&self) -> SeenHost {
        SeenHost { name: self.host.name.clone(), fingerprint: self.host.fingerprint.clone() }
    }

    /// The customers that must consent: those of the file that are to be asked, and those that the order names and the
    /// file does not excuse.
    #[must_use]
    pub fn asked(&self, named: &BTreeSet<CustomerId>) -> BTreeSet<CustomerId> {
        let signs = |customer: &&CustomerId| {
            let rule = self.customers.get(*customer).map_or(ConsentRule::Signature, |one| one.consent);
            rule == ConsentRule::Signature
        };
        self.customers.keys().chain(named).filter(signs).cloned().collect()
    }
}

fn is_program(run: &[String]) -> bool {
    let plain = |part: &String| !part.is_empty() && part.len() <= 256 && !part.chars().any(char::is_control);
    let absolute = run.first().is_some_and(|program| program.starts_with('/'));
    absolute && run.len() <= 16 && run.iter().all(plain)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TEXT: &str = r#"
enabled = true
[host]
id = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02"
name = "box7"
fingerprint = "4f2a-9c01-77de-b3a8-0c11"
epoch = 3
[customers.acme]
consent = "signature"
[customers.byte]
consent = "not_needed"
[ways.tunnel]
kind = "authorized_keys"
from = ["10.77.0.0/24", "fd00::7"]
minutes_max = 60
[ways.restart]
kind = "forced_command"
from = ["10.77.0.9"]
key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFhmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZm"
run = ["/usr/bin/systemctl", "restart", "agentd"]
"#;

    #[test]
    fn the_file_is_read_whole_or_not_at_all() {
        let settings = Settings::parse(TEXT).unwrap();
        assert_eq!((settings.ways.len(), settings.minutes_max.minutes()), (2, 120));
        assert_eq!(settings.recordings, RecordingSettings::default());
        for (old, new) in [
            ("enabled = true", "enabled = true\ntunnel = 1"),
            ("enabled = true\n", ""),
            ("epoch = 3", "epoch = 3\ncolour = 1"),
            ("\"signature\"", "\"word\""),
            ("from = [\"10.77.0.9\"]", "from = []"),
            ("from = [\"10.77.0.9\"]", "from = [\"0.0.0.0/0\"]"),
            ("from = [\"10.77.0.9\"]", "from = [\"*\"]"),
            ("from = [\"10.77.0.9\"]", "from = [\"10.77.0.9\\\",pty\"]"),
            ("/usr/bin/systemctl", "systemctl"),
            ("\"agentd\"", "\"a\\nb\""),
            ("minutes_max = 60", "minutes_max = 481"),
            ("[customers.acme]", "[recordings]\nkeep_days = 0\n[customers.acme]"),
        ] {
            assert!(TEXT.contains(old), "{old}");
            assert!(Settings::parse(&TEXT.replacen(old, new, 1)).is_err(), "{new}");
        }
    }

    #[test]
    fn the_shipped_example_is_read_and_is_off() {
        let example = include_str!("../break-glass.toml");
        assert!(!Settings::parse(example).unwrap().enabled);
        // Lines that are commented out have no space after the `#`; sentences do.
        let line = |line: &str| {
            line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line).to_owned()
        };
        let whole =
            example.lines().map(line).collect::<Vec<_>>().join("\n").replace("AAAA…", &"A".repeat(68));
        let whole = Settings::parse(&whole).unwrap();
        assert_eq!((whole.ways.len(), whole.customers.len()), (2, 1));
        assert_eq!(whole.recordings, RecordingSettings::default());
    }

    #[test]
    fn a_customer_that_the_file_does_not_excuse_is_asked() {
        let settings = Settings::parse(TEXT).unwrap();
        let named =
            |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<BTreeSet<CustomerId>>();
        assert_eq!(settings.asked(&named(&[])), named(&["acme"]), "also where the order leaves it out");
        assert_eq!(settings.asked(&named(&["acme", "byte"])), named(&["acme"]));
        assert_eq!(
            settings.asked(&named(&["byte", "cube"])),
            named(&["acme", "cube"]),
            "one that is not listed"
        );
    }
}
