//! What the archives of goldens hash to now, for those that a guest is to be made from.
//!
//! What comes in: which goldens, and where root said that their archives lie. What goes out: a fact for each. A file that
//! did not change since is not read again; one that did is read whole, which takes some seconds for a gigabyte, on a
//! thread where nothing else waits. Deliberately absent: whether these bytes may be used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use holdfast_protocol::id::GoldenVersion;

use crate::execute::DigestCache;
use crate::model::observed::GoldenFact;
use crate::model::policy::{Policy, Sha256Hex};

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
