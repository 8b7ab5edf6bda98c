//! Desired documents in files, where parts may be left out.
//!
//! In: the file, and the document that the hub holds. Out: a whole document, checked by the same rules as hub and agent.
//! Left-out parts are taken from the held document (the three intervals, `levels`, `overcommit`, `customer_limits`, `policies`, `storage`, the `uid` of a guest of that name), counted on
//! (`generation`), or made (the `uid` of a new guest). What was made is shown in the difference before anything is put.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{
    CustomerLimits, DOCUMENT_BYTES_MAX, Desired, DesiredController, DesiredDocument, DesiredError,
    DesiredGuest, DesiredSchema, DesiredVolume, GuestLimits, GuestNetwork, GuestSize, OvercommitLevels,
    RunState, UseLevels,
};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CustomerId, GoldenVersion, GuestName, GuestUid, PolicyName, TargetName, Vmid};
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::maintenance::Maintenance;
use holdfast_protocol::protection::BackupPolicy;
use holdfast_protocol::size::{AlarmSeconds, BackupAgeHours, ObserveSeconds, PollSeconds};
use holdfast_protocol::storage::StorageTarget;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The poll interval when neither file nor hub has one.
const POLL_SECONDS: u32 = 30;

/// The file's content.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentFile {
    #[serde(default)]
    schema: DesiredSchema,
    #[serde(default)]
    generation: Option<Generation>,
    #[serde(default)]
    poll_interval_s: Option<PollSeconds>,
    #[serde(default)]
    observe_interval_s: Option<ObserveSeconds>,
    #[serde(default)]
    alarm_after_s: Option<AlarmSeconds>,
    #[serde(default)]
    levels: Option<UseLevels>,
    #[serde(default)]
    overcommit: Option<OvercommitLevels>,
    #[serde(default)]
    customer_limits: Option<Vec<CustomerLimits>>,
    #[serde(default)]
    policies: Option<Vec<BackupPolicy>>,
    #[serde(default)]
    storage: Option<Vec<StorageTarget>>,
    guests: Vec<DocumentFileGuest>,
}

/// [`DesiredGuest`], whose uid may be left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentFileGuest {
    #[serde(default)]
    uid: Option<GuestUid>,
    name: GuestName,
    customer: CustomerId,
    #[serde(default)]
    vmid: Option<Vmid>,
    run: RunState,
    golden: GoldenVersion,
    size: GuestSize,
    #[serde(default)]
    limits: Option<GuestLimits>,
    #[serde(default)]
    storage: Option<TargetName>,
    network: GuestNetwork,
    #[serde(default)]
    policy: Option<PolicyName>,
    #[serde(default)]
    controller: Option<DesiredController>,
    #[serde(default)]
    backup_before_exchange_h: Option<BackupAgeHours>,
    #[serde(default)]
    maintenance: Option<Maintenance>,
    #[serde(default)]
    levels: Option<UseLevels>,
    #[serde(default)]
    volumes: Vec<DesiredVolume>,
}

/// Why a file is no draft.
#[derive(Debug, thiserror::Error)]
pub enum DocumentFileError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not text", path.display())]
    NotText { path: PathBuf },
    #[error("{} is refused", path.display())]
    Json {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    #[error("{} is refused", path.display())]
    Toml {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
}

impl DocumentFileError {
    /// The code of a document that was read and refused.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Json { source, .. } => Some(source.code()),
            Self::Toml { .. } => Some(ErrorCode::Syntax),
            _ => None,
        }
    }
}

/// Reads a file; `-` is standard input.
pub fn read(path: &Path) -> Result<DocumentFile, DocumentFileError> {
    parse(path, &bytes(path)?)
}

/// Reads one part of a document from a file. The hub checks its form.
pub fn part(path: &Path) -> Result<Value, DocumentFileError> {
    parse(path, &bytes(path)?)
}

fn bytes(path: &Path) -> Result<Vec<u8>, DocumentFileError> {
    let unread = |source| DocumentFileError::Read { path: path.to_owned(), source };
    // One byte more than the limit is read, so that a longer file is detected.
    let bound = u64::try_from(DOCUMENT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(bound).read_to_end(&mut bytes).map_err(unread)?;
    } else {
        std::fs::File::open(path).map_err(unread)?.take(bound).read_to_end(&mut bytes).map_err(unread)?;
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, DocumentFileError> {
    if path.extension().is_some_and(|extension| extension == "toml") && bytes.len() <= DOCUMENT_BYTES_MAX {
        let text =
            std::str::from_utf8(bytes).map_err(|_| DocumentFileError::NotText { path: path.to_owned() })?;
        return toml::from_str(text)
            .map_err(|source| DocumentFileError::Toml { path: path.to_owned(), source: Box::new(source) });
    }
    json::parse("the document", bytes, DOCUMENT_BYTES_MAX)
        .map_err(|source| DocumentFileError::Json { path: path.to_owned(), source })
}

impl DocumentFile {
    /// Completes and checks it. `held` is the hub's document, `floor` the highest generation that hub or host knows;
    /// `new_uid` makes an identity for a new guest.
    pub fn complete(
        self,
        held: Option<&DesiredDocument>,
        floor: Generation,
        mut new_uid: impl FnMut() -> GuestUid,
    ) -> Result<Desired, DesiredError> {
        let known: BTreeMap<&GuestName, GuestUid> =
            held.iter().flat_map(|held| &held.guests).map(|guest| (&guest.name, guest.uid)).collect();
        let poll = held.map(|held| held.poll_interval_s).or_else(|| PollSeconds::try_from(POLL_SECONDS).ok());
        let guests = self.guests.into_iter().map(|guest| DesiredGuest {
            uid: guest.uid.or_else(|| known.get(&guest.name).copied()).unwrap_or_else(&mut new_uid),
            name: guest.name,
            customer: guest.customer,
            vmid: guest.vmid,
            run: guest.run,
            golden: guest.golden,
            size: guest.size,
            limits: guest.limits,
            storage: guest.storage,
            network: guest.network,
            policy: guest.policy,
            controller: guest.controller,
            backup_before_exchange_h: guest.backup_before_exchange_h,
            maintenance: guest.maintenance,
            levels: guest.levels,
            volumes: guest.volumes,
        });
        Desired::check(DesiredDocument {
            schema: self.schema,
            generation: self.generation.unwrap_or_else(|| floor.next()),
            poll_interval_s: self.poll_interval_s.or(poll).unwrap_or(PollSeconds::MAX),
            observe_interval_s: self
                .observe_interval_s
                .or_else(|| held.and_then(|held| held.observe_interval_s)),
            alarm_after_s: self.alarm_after_s.or_else(|| held.and_then(|held| held.alarm_after_s)),
            levels: self.levels.or_else(|| held.and_then(|held| held.levels)),
            overcommit: self.overcommit.or_else(|| held.and_then(|held| held.overcommit)),
            customer_limits: self
                .customer_limits
                .or_else(|| held.map(|held| held.customer_limits.clone()))
                .unwrap_or_default(),
            policies: self.policies.or_else(|| held.map(|held| held.policies.clone())).unwrap_or_default(),
            storage: self.storage.or_else(|| held.map(|held| held.storage.clone())).unwrap_or_default(),
            guests: guests.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::json::chain;
    use uuid::Uuid;

    use super::*;

    const TOML: &str = r#"
        [[guests]]
        name = "web-1"
        customer = "acme"
        run = "running"
        golden = "2026.11.1"
        size = { cores = 2, memory_mib = 512, swap_mib = 0, rootfs_gib = 8 }
        network = { bridge = "vmbr0", address = "10.66.0.91/24" }
        [[guests.volumes]]
        name = "media"
        mount = "/srv/media"
        size_gib = 100
        kind = { bulk = { none = "rebuilt from the origin" } }
    "#;

    fn uid(n: u128) -> GuestUid {
        GuestUid::new(Uuid::from_u128(n))
    }

    #[test]
    fn missing_parts_come_from_the_hub_or_are_generated() {
        let draft = || parse::<DocumentFile>(Path::new("x.toml"), TOML.as_bytes()).unwrap();
        let first = draft().complete(None, Generation::NONE, || uid(1)).unwrap();
        assert_eq!(first.document().generation, Generation::new(1));
        assert_eq!((first.guests()[0].uid, first.document().poll_interval_s.get()), (uid(1), 30));
        let mut held = first.document().clone();
        held.poll_interval_s = PollSeconds::try_from(5).unwrap();
        let second = draft().complete(Some(&held), Generation::new(7), || panic!("no new guest")).unwrap();
        assert_eq!(second.document().generation, Generation::new(8));
        assert_eq!((second.guests()[0].uid, second.document().poll_interval_s.get()), (uid(1), 5));
    }

    #[test]
    fn json_and_toml_are_equivalent() {
        let toml = parse::<DocumentFile>(Path::new("x.toml"), TOML.as_bytes()).unwrap().complete(
            None,
            Generation::NONE,
            || uid(1),
        );
        let json = serde_json::to_vec(toml.as_ref().unwrap().document()).unwrap();
        let back = parse::<DocumentFile>(Path::new("x.json"), &json).unwrap().complete(
            None,
            Generation::NONE,
            || uid(2),
        );
        assert_eq!(toml.unwrap().numbered(), back.unwrap().numbered());
    }

    #[test]
    fn errors_name_their_location() {
        let cases = [
            ("x.toml", TOML.replace("cores = 2", "cores = 0"), "0 cores is out of range"),
            ("x.toml", TOML.replace("cores = 2", "kores = 2"), "unknown field `kores`"),
            ("x.toml", format!("{TOML}\nfeatures = \"keyctl=1\""), "unknown field `features`"),
            ("x.json", "{\"guests\":[{\"name\":\"A\"}]}".to_owned(), "guests[0].name"),
            ("x.json", "{\"guests\":[],\"guests\":[]}".to_owned(), "duplicate field"),
            ("x.json", "{}".to_owned(), "missing field `guests`"),
        ];
        for (path, text, words) in cases {
            let message = chain(&parse::<DocumentFile>(Path::new(path), text.as_bytes()).unwrap_err());
            assert!(message.contains(words), "{words}: {message}");
        }
        let twice = format!("{TOML}{TOML}");
        let error = parse::<DocumentFile>(Path::new("x.toml"), twice.as_bytes())
            .unwrap()
            .complete(None, Generation::NONE, {
                let mut n = 0;
                move || {
                    n += 1;
                    uid(n)
                }
            })
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::DuplicateName);
    }
}
