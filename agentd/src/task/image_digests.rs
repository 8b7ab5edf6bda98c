//! The task that hashes images.
//!
//! In: the goldens, and where root said that their archives are stored. Out: a fact for each. A file that did not
//! change since is not read again. A changed file is read whole, which takes some seconds for a gigabyte, on a thread
//! of its own. The size of a root disk is in the archive's configuration, which is read from Proxmox once. Deliberately
//! absent: whether these bytes may be used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use holdfast_protocol::id::{GoldenVersion, StorageName};
use holdfast_protocol::json::chain;

use crate::execute::DigestCache;
use crate::gate::archive::{Lines, rootfs_bytes};
use crate::model::observed::GoldenFact;
use crate::model::policy::{Golden, Policy, Sha256Hex};
use crate::model::records::VolumeId;
use crate::port::golden_dump::{self, StoredImage};
use crate::port::pve::{Pve, Role};

/// The facts on the archives of these goldens. One that root did not name is left out.
pub(super) async fn archives(
    digests: &Arc<DigestCache>,
    policy: &Policy,
    wanted: BTreeSet<GoldenVersion>,
) -> BTreeMap<GoldenVersion, GoldenFact> {
    let mut facts = BTreeMap::new();
    for version in wanted {
        if let Some(golden) = policy.goldens.get(&version) {
            facts.insert(version, archive(digests, &golden.file).await);
        }
    }
    facts
}

/// The sizes of root disks, by the bytes of their archives.
#[derive(Default)]
pub(super) struct Roots(BTreeMap<Sha256Hex, u64>);

impl Roots {
    /// The sizes that are known. Each call reads at most one golden, so that an archive that cannot be read costs one
    /// call.
    pub async fn look(
        &mut self,
        pve: &dyn Pve,
        policy: &Policy,
        facts: &BTreeMap<GoldenVersion, GoldenFact>,
    ) -> BTreeMap<GoldenVersion, u64> {
        let bytes = |version: &GoldenVersion, golden: &Golden| match facts.get(version) {
            Some(GoldenFact::Is(sha256)) => Some(sha256.clone()),
            Some(GoldenFact::Unread(_)) => None,
            None => golden.sha256.clone(),
        };
        let unknown = policy.goldens.iter().find_map(|(version, golden)| {
            let sha256 = bytes(version, golden).filter(|_| facts.contains_key(version))?;
            (!self.0.contains_key(&sha256)).then_some((golden, sha256))
        });
        if let Some((golden, sha256)) = unknown
            && let Some(size) = root(pve, golden).await
        {
            self.0.insert(sha256, size);
        }
        let known = |(version, golden): (&GoldenVersion, &Golden)| {
            Some((version.clone(), *self.0.get(&bytes(version, golden)?)?))
        };
        policy.goldens.iter().filter_map(known).collect()
    }
}

/// The size of one root disk; none when the archive cannot be read. Then its restore gives the reason.
async fn root(pve: &dyn Pve, golden: &Golden) -> Option<u64> {
    let archive = golden.archive.as_str().parse().ok()?;
    match pve.archive_config(Role::Allocate, &archive).await {
        Ok(text) => rootfs_bytes(&Lines::read(text.expose()).ok()?),
        Err(error) => {
            tracing::debug!(archive = golden.archive.as_str(), "{}", chain(&error));
            None
        }
    }
}

/// Adds the goldens that were built into root's folder since, and names them all. An entry that root wrote stays as
/// root wrote it, and learns how its archive was made.
pub(super) async fn stored(policy: &mut Policy) -> Vec<GoldenVersion> {
    let Some(dump) = policy.golden_dump.clone() else { return Vec::new() };
    let folder = dump.folder.clone();
    let read = match tokio::task::spawn_blocking(move || golden_dump::read(&folder)).await {
        Ok(Ok((found, wrong))) => {
            for error in &wrong {
                tracing::warn!("{}", chain(error));
            }
            found
        }
        Ok(Err(error)) => {
            tracing::warn!("{}", chain(&error));
            Vec::new()
        }
        // The agent stops just now.
        Err(_) => Vec::new(),
    };
    let versions = read.iter().map(|image| image.manifest.version.clone()).collect();
    for image in read {
        add(&mut policy.goldens, &dump.storage, image);
    }
    versions
}

fn add(goldens: &mut BTreeMap<GoldenVersion, Golden>, storage: &StorageName, image: StoredImage) {
    let build = Some(image.manifest.image_build());
    let archive = VolumeId::new(format!("{storage}:backup/{}", image.manifest.archive));
    let built = Golden { archive: archive.clone(), sha256: None, file: image.archive, build: build.clone() };
    let known = goldens.entry(image.manifest.version).or_insert(built);
    if known.archive == archive {
        known.build = build;
    }
}

async fn archive(digests: &Arc<DigestCache>, file: &Path) -> GoldenFact {
    let read = match digests.remembered(file) {
        Some(digest) => Ok(digest),
        None => {
            let (digests, file) = (Arc::clone(digests), file.to_owned());
            match tokio::task::spawn_blocking(move || digests.sha256(&file)).await {
                Ok(read) => read.map_err(|error| error.to_string()),
                Err(_) => Err("reading it was cut short".to_owned()),
            }
        }
    };
    match read.and_then(|digest| Sha256Hex::try_from(digest).map_err(ToOwned::to_owned)) {
        Ok(sha256) => GoldenFact::Is(sha256),
        Err(why) => GoldenFact::Unread(why),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_of_root_learns_when_its_own_archive_was_built() {
        let folder = tempfile::tempdir().unwrap();
        let digest = "ab".repeat(32);
        for (version, second) in [("2026.11.1", 60), ("2026.11.2", 120), ("2026.11.3", 180)] {
            let manifest = json!({
                "schema": "holdfast.golden-manifest/v1", "version": version, "contents": "tiny",
                "archive": format!("vzdump-lxc-1-{version}.tar.zst"), "sha256": digest, "size_bytes": 1,
                "recipe_sha256": digest, "guestd_sha256": digest, "source_date_epoch": 1, "packages": [],
                "build": { "made_at_s": second, "seconds": 1, "entries": 1, "content_bytes": 1 },
            });
            let path = folder.path().join(format!("golden-{version}.json"));
            std::fs::write(path, manifest.to_string()).unwrap();
        }
        let of_root = |archive: &str| Golden {
            archive: VolumeId::new(archive),
            sha256: Sha256Hex::try_from(digest.clone()).ok(),
            file: "/root/it".into(),
            build: None,
        };
        let version = |text: &str| GoldenVersion::try_from(text.to_owned()).unwrap();
        let mut goldens = BTreeMap::from([
            (version("2026.11.1"), of_root("dump:backup/vzdump-lxc-1-2026.11.1.tar.zst")),
            (version("2026.11.2"), of_root("dump:backup/another.tar.zst")),
        ]);
        for image in golden_dump::read(folder.path()).unwrap().0 {
            add(&mut goldens, &"dump".parse().unwrap(), image);
        }
        let at = |second| Timestamp::from_second(second).ok();
        let all: Vec<_> = goldens
            .values()
            .map(|one| (one.build.as_ref().and_then(|build| build.built_at), one.sha256.is_some()))
            .collect();
        assert_eq!(all, [(at(60), true), (None, true), (at(180), false)]);
    }
}
