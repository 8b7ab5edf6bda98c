//! Canonical JSON, and the digest of what is so.
//!
//! Canonical JSON is that of RFC 8785 for what we write: no white space, members by name, no number but integers. The
//! content digest of a host is SHA-256 of its canonical JSON without any member called `observed`. That of a snapshot is
//! SHA-256 over the lines `ID DIGEST`, one for each host in the document's order. Head and tail are not in it.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::host::StateHost;
use crate::job::act::Sha256Text;

/// The member that says when something was so, and in which words.
const OBSERVED: &str = "observed";

/// The canonical JSON of a value.
///
/// # Errors
/// When it has a key that is not text.
pub fn canonical(value: &impl Serialize) -> Result<String, serde_json::Error> {
    // The map of `Value` is sorted by name.
    serde_json::to_string(&serde_json::to_value(value)?)
}

/// The digest of what is so of a host.
///
/// # Errors
/// As [`canonical`].
pub fn content_digest(host: &StateHost) -> Result<Sha256Text, serde_json::Error> {
    let mut value = serde_json::to_value(host)?;
    strip(&mut value);
    Ok(Sha256Text::of(serde_json::to_string(&value)?.as_bytes()))
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove(OBSERVED);
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The content digest of a snapshot, host by host.
#[derive(Clone, Debug, Default)]
pub(super) struct ContentDigest(Sha256);

impl ContentDigest {
    pub(super) fn add(&mut self, host: &StateHost) -> Result<(), serde_json::Error> {
        let digest = content_digest(host)?;
        self.0.update(format!("{} {}\n", host.id, digest.as_str()));
        Ok(())
    }

    pub(super) fn end(self) -> String {
        hex::encode(self.0.finalize())
    }
}
