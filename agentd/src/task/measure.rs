//! What the archives of goldens hash to now, for those that a guest is to be made from.
//!
//! What comes in: which goldens, and where root said that their archives lie. What goes out: a fact for each. A file that
//! did not change since is not read again; one that did is read whole, which takes some seconds for a gigabyte, on a
//! thread where nothing else waits. Deliberately absent: whether these bytes may be used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::strict::chain;

use crate::execute::DigestCache;
use crate::model::observed::GoldenFact;
use crate::model::policy::{Golden, Policy, Sha256Hex};
use crate::model::record::VolumeId;
use crate::port::golden_dump::{self, LyingGolden};

/// Looks at the archives of these goldens. One that root did not name is left out.
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

/// Takes up the goldens that were built into root's folder since, and names them all. One that root named himself stays as
/// he named it.
pub(super) async fn lying(policy: &mut Policy) -> Vec<GoldenVersion> {
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
    let mut versions = Vec::new();
    for LyingGolden { manifest, archive: file, .. } in read {
        versions.push(manifest.version.clone());
        let archive = VolumeId::new(format!("{}:backup/{}", dump.storage, manifest.archive));
        let made_at = golden_dump::made_at(&manifest);
        policy.goldens.entry(manifest.version).or_insert(Golden { archive, sha256: None, file, made_at });
    }
    versions
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
