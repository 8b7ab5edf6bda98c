//! Known hosts of an operator: name, id, key and epoch, as pinned.
//!
//! A hub can show one host's id under another's name. So an operator who signs compares what the hub shows with a file
//! of their own, as ssh does with `known_hosts`. A new host is recorded; a changed host is reported and nothing is
//! signed. One file of mode 0600, replaced whole. Deliberately absent: a question; and accepting a change, which is
//! `holdfast host pin`.

use std::path::{Path, PathBuf};

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::job::{HostEpoch, HostFingerprint, Payload, SeenHost};
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::storage::HostRecipient;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError};

const NAME: &str = "hosts.json";

/// A pin is some three hundred bytes.
const BYTES_MAX: usize = 2 * 1024 * 1024;

/// More hosts than any operator has.
const HOSTS_MAX: usize = 4096;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.known-hosts/v1")]
    V1,
}

/// How a host came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinOrigin {
    /// The hub showed it first, and no person compared it.
    FirstUse,
    /// A person compared it with what the host itself shows.
    Compared,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub name: HostName,
    pub id: HostId,
    /// The life of its records.
    pub epoch: HostEpoch,
    /// The key that it made itself.
    pub key: HostRecipient,
    pub since: Timestamp,
    pub how: PinOrigin,
}

/// All of them, as the file has them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    schema: Schema,
    hosts: Vec<Pin>,
}

/// A host as the hub shows it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownHost {
    pub name: HostName,
    pub id: HostId,
    /// The life of its records.
    pub epoch: HostEpoch,
    pub key: HostRecipient,
}

/// Whether a host was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinMatch {
    /// It is as it was.
    Same,
    /// The host is not pinned yet. The command that signs for it records it.
    New,
}

/// Why nothing is signed for a host.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    #[error(transparent)]
    File(#[from] ConfigError),
    /// The file does not have our format.
    #[error("{} is not a known-hosts file of this version: nothing was signed; check it, or move it away", path.display())]
    Malformed {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// Cannot happen for text.
    #[error("the list of known hosts cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
    #[error("{HOSTS_MAX} hosts are known already: nothing was signed; remove old ones from {}", .0.display())]
    Full(PathBuf),
    /// The hub does not know the host's key or life.
    #[error(
        "{0} has not reported its key and epoch yet: nothing was signed; wait for its next report, or update its agent"
    )]
    NotReported(HostName),
    /// It is not as it was.
    #[error(
        "THE HUB SHOWS {name} DIFFERENTLY THAN KNOWN since {since:.0} ({how}). Nothing was signed.\n{changes}\n\
         Either the host was reset or replaced, or the hub shows another host in its place. Check on the host \
         itself: `agentd status` there shows its fingerprint. If that is the one above, run\n  \
         holdfast host pin {name} --fingerprint {fingerprint}"
    )]
    Changed {
        /// As the hub calls it.
        name: HostName,
        /// Since when it is known.
        since: Timestamp,
        /// How it came to be known.
        how: &'static str,
        /// What is not as it was, a line each.
        changes: String,
        /// What the hub shows now.
        fingerprint: HostFingerprint,
    },
    /// The hub shows another fingerprint than the person gave.
    #[error(
        "the hub shows {shown} for {name}, and you gave {given}: nothing was pinned. Compare both with \
         `agentd status` on the host"
    )]
    OtherFingerprint { name: HostName, shown: HostFingerprint, given: HostFingerprint },
    /// A job that others signed for something else.
    #[error("the job is signed for {signed}, but {known} is known here: nothing was signed")]
    Signed {
        /// What it says.
        signed: String,
        /// What is known.
        known: SeenHost,
    },
}

impl ShownHost {
    /// Of what the hub says.
    pub fn of(detail: &HostDetail) -> Result<Self, PinError> {
        let (name, id) = (detail.host.name.clone(), detail.host.id);
        let key = detail.sections.agent.as_ref().and_then(|agent| agent.recipient.clone());
        let epoch = detail.sections.trust.as_ref().map(|trust| trust.epoch);
        match (key, epoch) {
            (Some(key), Some(epoch)) => Ok(Self { name, id, epoch, key }),
            _ => Err(PinError::NotReported(name)),
        }
    }

    /// Its short fingerprint.
    pub fn fingerprint(&self) -> HostFingerprint {
        HostFingerprint::of(self.id, &self.name, &self.key)
    }

    /// As a job says it.
    pub fn seen(&self) -> SeenHost {
        SeenHost::of(self.id, self.name.clone(), &self.key)
    }
}

impl PinOrigin {
    const fn text(self) -> &'static str {
        match self {
            Self::FirstUse => "at its first use",
            Self::Compared => "compared by an operator",
        }
    }
}

impl Pins {
    /// Reads the file; none is an empty one.
    pub fn load(folder: &Path) -> Result<Self, PinError> {
        let Some(bytes) = config::read_private(folder, NAME, BYTES_MAX)? else { return Ok(Self::default()) };
        let path = folder.join(NAME);
        let pins: Self = json::parse("the file", &bytes, BYTES_MAX)
            .map_err(|source| PinError::Malformed { path: path.clone(), source })?;
        if pins.hosts.len() > HOSTS_MAX { Err(PinError::Full(path)) } else { Ok(pins) }
    }

    /// Writes the file: whole or not at all.
    pub fn store(&self, folder: &Path) -> Result<(), PinError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(PinError::Unwritable)?;
        config::write_private(folder, NAME, &bytes)?;
        Ok(())
    }

    /// Those that share name, id or key with what is shown: any of the three is enough to be known.
    fn related<'a>(&'a self, shown: &'a ShownHost) -> impl Iterator<Item = &'a Pin> {
        self.hosts.iter().filter(|pin| pin.name == shown.name || pin.id == shown.id || pin.key == shown.key)
    }

    /// Holds what the hub shows to what is known.
    pub fn check(&self, shown: &ShownHost) -> Result<PinMatch, PinError> {
        for pin in self.related(shown) {
            let changes = changes(pin, shown);
            if !changes.is_empty() {
                return Err(PinError::Changed {
                    name: shown.name.clone(),
                    since: pin.since,
                    how: pin.how.text(),
                    changes: changes.join("\n"),
                    fingerprint: shown.fingerprint(),
                });
            }
        }
        Ok(if self.related(shown).next().is_some() { PinMatch::Same } else { PinMatch::New })
    }

    /// Notes what is shown, in the place of all that is akin to it.
    pub fn note(
        &mut self,
        shown: ShownHost,
        how: PinOrigin,
        since: Timestamp,
        folder: &Path,
    ) -> Result<(), PinError> {
        let related: Vec<Pin> = self.related(&shown).cloned().collect();
        self.hosts.retain(|pin| !related.contains(pin));
        if self.hosts.len() >= HOSTS_MAX {
            return Err(PinError::Full(folder.join(NAME)));
        }
        let ShownHost { name, id, epoch, key } = shown;
        self.hosts.push(Pin { name, id, epoch, key, since, how });
        self.hosts.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }
}

fn changes(pin: &Pin, shown: &ShownHost) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, was: String, is: String| {
        if was != is {
            lines.push(format!("  {what}: was {was}, is {is}"));
        }
    };
    line("name", pin.name.to_string(), shown.name.to_string());
    line("id", pin.id.to_string(), shown.id.to_string());
    line("key", pin.key.to_string(), shown.key.to_string());
    line("epoch of its records", pin.epoch.to_string(), shown.epoch.to_string());
    lines
}

/// Holds a job that others signed already to what is known here.
pub fn same_job(payload: &Payload, shown: &ShownHost) -> Result<(), PinError> {
    let known = shown.seen();
    let same = payload.host.as_ref() == Some(&known)
        && payload.host_id == shown.id
        && payload.host_epoch == shown.epoch;
    let signed =
        payload.host.as_ref().map_or_else(|| "a host without its name".to_owned(), ToString::to_string);
    let signed = format!("{signed}, id {}, epoch {}", payload.host_id, payload.host_epoch);
    if same { Ok(()) } else { Err(PinError::Signed { signed, known }) }
}

/// A host that may be signed for, and what is noted of it then.
pub struct CheckedHost {
    /// As the hub shows it, and as it is known.
    pub shown: ShownHost,
    known: PinMatch,
    pins: Pins,
    folder: PathBuf,
}

impl CheckedHost {
    /// Holds what the hub shows of a host to the file.
    pub fn of(detail: &HostDetail, folder: &Path) -> Result<Self, PinError> {
        let (shown, pins) = (ShownHost::of(detail)?, Pins::load(folder)?);
        let known = pins.check(&shown)?;
        Ok(Self { shown, known, pins, folder: folder.to_owned() })
    }

    /// What a person reads before they sign.
    pub fn notice(&self) -> Option<String> {
        let (name, fingerprint) = (&self.shown.name, self.shown.fingerprint());
        (self.known == PinMatch::New).then(|| {
            format!(
                "{name} is not known yet: the hub shows fingerprint {fingerprint}. Compare it with `agentd status` on \
                 the host; it is pinned when you sign.\n"
            )
        })
    }

    /// Notes a host that is new, before anything is signed for it.
    pub fn save(mut self, now: Timestamp) -> Result<(), PinError> {
        match self.known {
            PinMatch::Same => Ok(()),
            PinMatch::New => {
                self.pins.note(self.shown, PinOrigin::FirstUse, now, &self.folder)?;
                self.pins.store(&self.folder)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, id: u128, key: char, epoch: u32) -> ShownHost {
        ShownHost {
            name: name.parse().unwrap(),
            id: HostId::new(uuid::Uuid::from_u128(id)),
            epoch: HostEpoch::new(epoch),
            key: format!("age1{}", key.to_string().repeat(58)).parse().unwrap(),
        }
    }

    fn at() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn known(folder: &Path) -> Pins {
        let mut pins = Pins::load(folder).unwrap();
        for host in [shown("box7", 7, 'q', 1), shown("box8", 8, 'p', 1)] {
            assert_eq!(pins.check(&host).unwrap(), PinMatch::New);
            pins.note(host, PinOrigin::FirstUse, at(), folder).unwrap();
        }
        pins.store(folder).unwrap();
        pins
    }

    #[test]
    fn a_changed_host_is_refused() {
        let home = tempfile::tempdir().unwrap();
        known(home.path());
        let pins = Pins::load(home.path()).unwrap();
        assert_eq!(pins.check(&shown("box7", 7, 'q', 1)).unwrap(), PinMatch::Same);
        assert_eq!(pins.check(&shown("box9", 9, 'r', 1)).unwrap(), PinMatch::New);
        for (other, what) in [
            (shown("box7", 8, 'p', 1), "id"),
            (shown("box7", 9, 'q', 1), "id"),
            (shown("box7", 7, 'r', 1), "key"),
            (shown("box7", 7, 'q', 2), "epoch"),
            (shown("box9", 7, 'q', 1), "name"),
            (shown("box9", 9, 'p', 1), "name"),
        ] {
            let error = pins.check(&other).unwrap_err();
            assert!(matches!(error, PinError::Changed { .. }), "{other:?}: {error}");
            let text = error.to_string();
            assert!(text.contains(what) && text.contains("Nothing was signed"), "{text}");
            assert!(text.contains(other.fingerprint().as_str()) && text.contains("2026-11-21"), "{text}");
        }
    }

    #[test]
    fn a_compared_host_replaces_all_related_pins() {
        let home = tempfile::tempdir().unwrap();
        let mut pins = known(home.path());
        let swapped = shown("box7", 8, 'p', 1);
        pins.note(swapped.clone(), PinOrigin::Compared, at(), home.path()).unwrap();
        assert_eq!(pins.check(&swapped).unwrap(), PinMatch::Same);
        assert_eq!(pins.hosts.len(), 1, "neither the old box7 nor the old box8 is left");
    }

    #[test]
    fn a_malformed_file_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        known(home.path());
        let path = home.path().join(NAME);
        let good = std::fs::read_to_string(&path).unwrap();
        for bad in ["", "{}", &good.replacen("\"hosts\"", "\"also\": 1, \"hosts\"", 1)] {
            std::fs::write(&path, bad).unwrap();
            assert!(matches!(Pins::load(home.path()), Err(PinError::Malformed { .. })), "{bad}");
        }
        std::fs::write(&path, &good).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
        let open = Pins::load(home.path());
        assert!(matches!(open, Err(PinError::File(ConfigError::OpenToOthers { .. }))), "others may write it");
    }
}
