//! The host of a job: its name and short fingerprint.
//!
//! The hub assigns a host's id. Its name and the key that it made itself are also known on the host, where a person can
//! read the same fingerprint (`agentd status`). Deliberately absent: the life of the host's records, which is its
//! epoch.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::{HostId, HostName};
use crate::storage::HostRecipient;
use crate::text::texts;

/// Eighty bits: a second host with the same value cannot be found, and a person can read it out.
const BYTES: usize = 10;

/// So many hex digits form a group.
const GROUP: usize = 4;

texts! {
    /// The short fingerprint of a host: five groups of four lower-case hex digits, with '-' between them.
    HostFingerprint, 24..=24, "a host's fingerprint is five groups of four lower-case hex digits, as `agentd status` shows it", is_fingerprint;
}

fn is_fingerprint(text: &str) -> bool {
    let hex = |group: &str| {
        group.len() == GROUP && group.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    text.split('-').count() == BYTES * 2 / GROUP && text.split('-').all(hex)
}

impl HostFingerprint {
    /// Of a host: its id, its name, and the key that it made itself and keeps for ever.
    #[must_use]
    pub fn of(id: HostId, name: &HostName, key: &HostRecipient) -> Self {
        // No part can hold the byte between them.
        let text = format!("holdfast.host/v1\0{id}\0{name}\0{key}");
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let digits: Vec<char> = hex::encode(digest).chars().take(BYTES * 2).collect();
        let groups: Vec<String> = digits.chunks(GROUP).map(|group| group.iter().collect()).collect();
        Self(groups.join("-"))
    }
}

impl fmt::Display for HostFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for HostFingerprint {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::try_from(text.to_owned())
    }
}

/// A host as the signer knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenHost {
    /// Its name.
    pub name: HostName,
    /// Its short fingerprint.
    pub fingerprint: HostFingerprint,
}

impl SeenHost {
    /// Of a host whose parts are known.
    #[must_use]
    pub fn of(id: HostId, name: HostName, key: &HostRecipient) -> Self {
        let fingerprint = HostFingerprint::of(id, &name, key);
        Self { name, fingerprint }
    }
}

impl fmt::Display for SeenHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: u128, name: &str, key: char) -> HostFingerprint {
        let key = format!("age1{}", key.to_string().repeat(58)).parse().unwrap();
        HostFingerprint::of(HostId::new(uuid::Uuid::from_u128(id)), &name.parse().unwrap(), &key)
    }

    #[test]
    fn each_part_of_a_host_changes_its_fingerprint() {
        let one = of(1, "box7", 'q');
        assert_eq!(one, of(1, "box7", 'q'));
        for other in [of(2, "box7", 'q'), of(1, "box8", 'q'), of(1, "box7", 'p')] {
            assert_ne!(one, other);
        }
        assert_eq!(one.as_str().parse::<HostFingerprint>().unwrap(), one);
    }

    #[test]
    fn a_host_is_shown_by_its_name_and_fingerprint() {
        let fingerprint: HostFingerprint = "4f2a-9c01-77de-b3a8-0c11".parse().unwrap();
        assert_eq!(fingerprint.to_string(), "4f2a-9c01-77de-b3a8-0c11");
        let seen = SeenHost { name: "box7".parse().unwrap(), fingerprint };
        assert_eq!(seen.to_string(), "box7 (4f2a-9c01-77de-b3a8-0c11)");
    }

    #[test]
    fn it_has_one_spelling() {
        let good = "4f2a-9c01-77de-b3a8-0c11";
        assert!(good.parse::<HostFingerprint>().is_ok());
        for bad in [
            "",
            "4f2a-9c01-77de-b3a8",
            "4F2A-9c01-77de-b3a8-0c11",
            "4f2a9c0177deb3a80c110000",
            "4f2a-9c01-77de-b3a8-0c1g",
            "4f2a-9c01-77de-b3a80-c11",
            "4f2a-9c01-77de-b3a8-0c11 ",
        ] {
            assert!(bad.parse::<HostFingerprint>().is_err(), "{bad}");
        }
    }
}
