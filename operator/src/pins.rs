//! What this operator knows of each host: its name, id, key, and the life of its records, as at the first use or as compared.
//!
//! A hub can show one host's id under another's name. So who signs holds what it shows to a file of their own, as ssh does
//! with `known_hosts`: what is new is noted, what changed is told and nothing is signed. One file of mode 0600, replaced
//! whole. Deliberately absent: a question; and taking a change over, which is `holdfast host pin`.

use std::path::{Path, PathBuf};

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::job::{HostEpoch, HostFingerprint, Payload, SeenHost};
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::storage::HostRecipient;
use holdfast_protocol::strict::{self, StrictError};
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
pub enum How {
    /// The hub showed it first, and nobody compared.
    FirstUse,
    /// A person compared it with what the box itself shows.
    Compared,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Its name.
    pub name: HostName,
    /// Its id.
    pub id: HostId,
    /// The life of its records.
    pub epoch: HostEpoch,
    /// The key that it made itself.
    pub key: HostRecipient,
    /// Since when.
    pub since: Timestamp,
    /// How.
    pub how: How,
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
pub struct Shown {
    /// Its name.
    pub name: HostName,
    /// Its id.
    pub id: HostId,
    /// The life of its records.
    pub epoch: HostEpoch,
    /// Its key.
    pub key: HostRecipient,
}

/// Whether a host was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is as it was.
    Same,
    /// Nothing of it is known. Whoever signs for it notes it.
    New,
}

/// Why nothing is signed for a host.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// The file is none of ours.
    #[error("{} is not a list of known hosts of this version: nothing was signed; look at it, or move it away", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: StrictError,
    },
    /// Cannot happen for text.
    #[error("the list of known hosts cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
    /// Too many.
    #[error("{HOSTS_MAX} hosts are known already: nothing was signed; take old ones out of {}", .0.display())]
    Full(PathBuf),
    /// The hub does not know the host's key or life.
    #[error(
        "{0} has not told its key and the life of its records yet: nothing was signed; wait for its next report, or update its agent"
    )]
    Untold(HostName),
    /// It is not as it was.
    #[error(
        "WHAT THE HUB SHOWS OF {name} IS NOT WHAT IS KNOWN OF IT since {since:.0} ({how}). Nothing was signed.\n{changes}\n\
         Either the box was set back or exchanged, or whoever runs the hub shows another host in its place. Look at the box \
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
        "the hub shows {shown} for {name}, and you gave {given}: nothing was pinned. One of the two is not that host's; \
         `agentd status` on the box tells which"
    )]
    Other {
        /// The host.
        name: HostName,
        /// The hub's.
        shown: HostFingerprint,
        /// The person's.
        given: HostFingerprint,
    },
    /// A job that others signed for something else.
    #[error("the job is signed for {signed}, and {known} is known here: nothing was signed")]
    Signed {
        /// What it says.
        signed: String,
        /// What is known.
        known: SeenHost,
    },
}

impl Shown {
    /// Of what the hub says.
    pub fn of(detail: &HostDetail) -> Result<Self, PinError> {
        let (name, id) = (detail.host.name.clone(), detail.host.id);
        let key = detail.sections.agent.as_ref().and_then(|agent| agent.recipient.clone());
        let epoch = detail.sections.trust.as_ref().map(|trust| trust.epoch);
        match (key, epoch) {
            (Some(key), Some(epoch)) => Ok(Self { name, id, epoch, key }),
            _ => Err(PinError::Untold(name)),
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

impl How {
    const fn words(self) -> &'static str {
        match self {
            Self::FirstUse => "at its first use",
            Self::Compared => "compared by a person",
        }
    }
}

impl Pins {
    /// Reads the file; none is an empty one.
    pub fn load(folder: &Path) -> Result<Self, PinError> {
        let Some(bytes) = config::read_private(folder, NAME, BYTES_MAX)? else { return Ok(Self::default()) };
        let path = folder.join(NAME);
        let pins: Self = strict::parse("the file", &bytes, BYTES_MAX)
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
    fn akin<'a>(&'a self, shown: &'a Shown) -> impl Iterator<Item = &'a Pin> {
        self.hosts.iter().filter(|pin| pin.name == shown.name || pin.id == shown.id || pin.key == shown.key)
    }

    /// Holds what the hub shows to what is known.
    pub fn judge(&self, shown: &Shown) -> Result<Known, PinError> {
        for pin in self.akin(shown) {
            let changes = changes(pin, shown);
            if !changes.is_empty() {
                return Err(PinError::Changed {
                    name: shown.name.clone(),
                    since: pin.since,
                    how: pin.how.words(),
                    changes: changes.join("\n"),
                    fingerprint: shown.fingerprint(),
                });
            }
        }
        Ok(if self.akin(shown).next().is_some() { Known::Same } else { Known::New })
    }

    /// Notes what is shown, in the place of all that is akin to it.
    pub fn note(&mut self, shown: Shown, how: How, since: Timestamp, folder: &Path) -> Result<(), PinError> {
        let akin: Vec<Pin> = self.akin(&shown).cloned().collect();
        self.hosts.retain(|pin| !akin.contains(pin));
        if self.hosts.len() >= HOSTS_MAX {
            return Err(PinError::Full(folder.join(NAME)));
        }
        let Shown { name, id, epoch, key } = shown;
        self.hosts.push(Pin { name, id, epoch, key, since, how });
        self.hosts.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }
}

fn changes(pin: &Pin, shown: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, was: String, is: String| {
        if was != is {
            lines.push(format!("  {what}: it was {was}, and is {is}"));
        }
    };
    line("name", pin.name.to_string(), shown.name.to_string());
    line("id", pin.id.to_string(), shown.id.to_string());
    line("key", pin.key.to_string(), shown.key.to_string());
    line("epoch of its records", pin.epoch.to_string(), shown.epoch.to_string());
    lines
}

/// Holds a job that others signed already to what is known here.
pub fn same_job(payload: &Payload, shown: &Shown) -> Result<(), PinError> {
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
pub struct Checked {
    /// As the hub shows it, and as it is known.
    pub shown: Shown,
    known: Known,
    pins: Pins,
    folder: PathBuf,
}

impl Checked {
    /// Holds what the hub shows of a host to the file.
    pub fn of(detail: &HostDetail, folder: &Path) -> Result<Self, PinError> {
        let (shown, pins) = (Shown::of(detail)?, Pins::load(folder)?);
        let known = pins.judge(&shown)?;
        Ok(Self { shown, known, pins, folder: folder.to_owned() })
    }

    /// What a person reads before they sign.
    pub fn words(&self) -> Option<String> {
        let (name, fingerprint) = (&self.shown.name, self.shown.fingerprint());
        (self.known == Known::New).then(|| {
            format!(
                "{name} is new to you: its fingerprint is {fingerprint}, by the hub's word. Compare it with `agentd status` on \
                 the box; it is noted when you sign.\n"
            )
        })
    }

    /// Notes a host that is new, before anything is signed for it.
    pub fn keep(mut self, now: Timestamp) -> Result<(), PinError> {
        match self.known {
            Known::Same => Ok(()),
            Known::New => {
                self.pins.note(self.shown, How::FirstUse, now, &self.folder)?;
                self.pins.store(&self.folder)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, id: u128, key: char, epoch: u32) -> Shown {
        Shown {
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
            assert_eq!(pins.judge(&host).unwrap(), Known::New);
            pins.note(host, How::FirstUse, at(), folder).unwrap();
        }
        pins.store(folder).unwrap();
        pins
    }

    #[test]
    fn a_host_is_as_it_was_or_nothing_is_signed() {
        let home = tempfile::tempdir().unwrap();
        known(home.path());
        let pins = Pins::load(home.path()).unwrap();
        assert_eq!(pins.judge(&shown("box7", 7, 'q', 1)).unwrap(), Known::Same);
        assert_eq!(pins.judge(&shown("box9", 9, 'r', 1)).unwrap(), Known::New);
        for (other, what) in [
            (shown("box7", 8, 'p', 1), "id"),
            (shown("box7", 9, 'q', 1), "id"),
            (shown("box7", 7, 'r', 1), "key"),
            (shown("box7", 7, 'q', 2), "epoch"),
            (shown("box9", 7, 'q', 1), "name"),
            (shown("box9", 9, 'p', 1), "name"),
        ] {
            let error = pins.judge(&other).unwrap_err();
            assert!(matches!(error, PinError::Changed { .. }), "{other:?}: {error}");
            let text = error.to_string();
            assert!(text.contains(what) && text.contains("Nothing was signed"), "{text}");
            assert!(text.contains(other.fingerprint().as_str()) && text.contains("2026-11-21"), "{text}");
        }
    }

    #[test]
    fn what_is_compared_takes_the_place_of_all_that_is_akin() {
        let home = tempfile::tempdir().unwrap();
        let mut pins = known(home.path());
        let swapped = shown("box7", 8, 'p', 1);
        pins.note(swapped.clone(), How::Compared, at(), home.path()).unwrap();
        assert_eq!(pins.judge(&swapped).unwrap(), Known::Same);
        assert_eq!(pins.hosts.len(), 1, "neither the old box7 nor the old box8 is left");
    }

    #[test]
    fn a_file_of_another_form_is_no_empty_one() {
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
