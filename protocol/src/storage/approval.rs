//! The part of a storage target that operators sign for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Backend, Sealed, StorageClass, StorageRole, StorageTarget};
use crate::id::TargetName;
use crate::job::act::Sha256Text;

/// A target as it is approved. Its label and the choice between targets may change without a signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Its name.
    pub name: TargetName,
    /// What it is.
    pub backend: Backend,
    /// How fast it is said to be.
    pub class: StorageClass,
    /// What it is for.
    pub role: StorageRole,
    /// What its sealed credentials hash to: another account on the same server is another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creds: Option<Sha256Text>,
}

impl Approval {
    /// What approving this request means.
    #[must_use]
    pub fn of(target: &StorageTarget) -> Self {
        Self {
            name: target.name.clone(),
            backend: target.backend.clone(),
            class: target.class,
            role: target.role,
            creds: target.creds.as_ref().and_then(Sealed::digest),
        }
    }
}
