//! Builds of golden images on several hosts, compared.
//!
//! What comes in: what hosts report of their images. What goes out: for each set of inputs, which archive digests came of it
//! and where. Builds of the same inputs have one digest; more than one means that a builder, or an archive that it fetched
//! from, is not what it seems. Deliberately absent: which of them is right.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{GoldenVersion, HostName};
use crate::job::act::Sha256Text;
use crate::report::{GoldenReport, ImageOrigin};

/// The images of the same inputs, over all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedBuilds {
    /// The digest of what determines the bytes.
    pub inputs_sha256: Sha256Text,
    /// The archives that came of them; one, where the builders agree.
    pub archives: Vec<BuiltArchive>,
}

/// One archive, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuiltArchive {
    /// Its digest, as the hosts hashed it.
    pub sha256: String,
    /// The versions that it has on them.
    pub versions: BTreeSet<GoldenVersion>,
    /// The hosts that built it.
    pub built_by: BTreeSet<HostName>,
    /// The hosts that received it.
    pub received_by: BTreeSet<HostName>,
}

/// What builds of the same inputs say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Two hosts or more built the same archive, and none another.
    Agree,
    /// Only one host built it: there is nothing to compare.
    Single,
    /// The same inputs gave different archives.
    Differ,
}

impl ComparedBuilds {
    /// Compares what hosts report. An image that a host did not hash, or whose manifest is not there, is left out.
    #[must_use]
    pub fn of<'a>(images: impl IntoIterator<Item = (&'a HostName, &'a GoldenReport)>) -> Vec<Self> {
        let mut found: BTreeMap<Sha256Text, BTreeMap<String, BuiltArchive>> = BTreeMap::new();
        for (host, image) in images {
            let (Some(build), Some(sha256)) = (&image.build, &image.sha256) else { continue };
            let archives = found.entry(build.inputs_sha256.clone()).or_default();
            let archive = archives.entry(sha256.clone()).or_insert_with(|| BuiltArchive {
                sha256: sha256.clone(),
                versions: BTreeSet::new(),
                built_by: BTreeSet::new(),
                received_by: BTreeSet::new(),
            });
            archive.versions.insert(image.version.clone());
            match build.origin {
                ImageOrigin::Built => archive.built_by.insert(host.clone()),
                ImageOrigin::Received => archive.received_by.insert(host.clone()),
            };
        }
        let compared = found.into_iter().map(|(inputs_sha256, archives)| Self {
            inputs_sha256,
            archives: archives.into_values().collect(),
        });
        compared.collect()
    }

    /// What they say together.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        match self.archives.as_slice() {
            [archive] if archive.built_by.len() > 1 => Agreement::Agree,
            [] | [_] => Agreement::Single,
            [_, _, ..] => Agreement::Differ,
        }
    }

    /// Whether an archive of this digest is among them.
    #[must_use]
    pub fn has(&self, sha256: &str) -> bool {
        self.archives.iter().any(|archive| archive.sha256 == sha256)
    }

    /// Which archive is on which hosts, in words.
    #[must_use]
    pub fn sentence(&self) -> String {
        const DIGITS: usize = 12;
        let archives = self.archives.iter().map(|archive| {
            let digest = archive.sha256.get(..DIGITS).unwrap_or(&archive.sha256);
            let names = |hosts: &BTreeSet<HostName>| {
                hosts.iter().map(HostName::as_str).collect::<Vec<_>>().join(", ")
            };
            match (archive.built_by.is_empty(), archive.received_by.is_empty()) {
                (false, true) => format!("{digest} built by {}", names(&archive.built_by)),
                (true, _) => format!("{digest} received by {}", names(&archive.received_by)),
                (false, false) => format!(
                    "{digest} built by {} and received by {}",
                    names(&archive.built_by),
                    names(&archive.received_by)
                ),
            }
        });
        archives.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(version: &str, inputs: &str, archive: &str, origin: &str) -> GoldenReport {
        serde_json::from_value(serde_json::json!({
            "version": version, "sha256": archive.repeat(32), "status": "waiting",
            "build": { "inputs_sha256": inputs.repeat(32), "size_bytes": 1, "origin": origin },
        }))
        .unwrap()
    }

    #[test]
    fn the_same_inputs_give_one_archive_or_the_builders_differ() {
        let hosts: Vec<HostName> =
            ["box1", "box2", "box3"].iter().map(|name| name.parse().unwrap()).collect();
        let compare = |images: &[(usize, GoldenReport)]| {
            ComparedBuilds::of(images.iter().map(|(host, image)| (&hosts[*host], image)))
        };
        // Under different versions, since one host had built another before.
        let two =
            [(0, image("2026.11.1", "aa", "11", "built")), (1, image("2026.11.2", "aa", "11", "built"))];
        let [agreed] = compare(&two).try_into().unwrap();
        assert_eq!(agreed.agreement(), Agreement::Agree);
        // A host that only received it is no second builder.
        let one = [two[0].clone(), (1, image("2026.11.1", "aa", "11", "received"))];
        let [single] = compare(&one).try_into().unwrap();
        assert_eq!(single.agreement(), Agreement::Single);
        assert!(single.sentence().ends_with("built by box1 and received by box2"), "{}", single.sentence());
        let three = [two[0].clone(), two[1].clone(), (2, image("2026.11.1", "aa", "22", "built"))];
        let [differ] = compare(&three).try_into().unwrap();
        assert_eq!(differ.agreement(), Agreement::Differ);
        assert_eq!(differ.sentence(), "111111111111 built by box1, box2; 222222222222 built by box3");
        assert!(differ.has(&"22".repeat(32)) && !differ.has(&"33".repeat(32)));
        // Other inputs, such as a newer package, are another image.
        let other = [two[0].clone(), (1, image("2026.11.1", "bb", "22", "built"))];
        assert!(compare(&other).iter().all(|one| one.agreement() == Agreement::Single));
        let mut unread = two[1].clone();
        unread.1.sha256 = None;
        assert_eq!(compare(&[two[0].clone(), unread])[0].agreement(), Agreement::Single, "not hashed");
    }
}
