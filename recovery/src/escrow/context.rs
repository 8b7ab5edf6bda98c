//! Escrow context: what a wrapped key is for, compared on opening.
//!
//! It is stored inside the file, with the key.

use holdfast_protocol::escrow::CodeNumber;
use holdfast_protocol::id::{CustomerId, HostId, HostName, KeyFingerprint};
use holdfast_protocol::job::{HostEpoch, UtcSecond};
use serde::{Deserialize, Serialize};

use super::error::OpenError;

/// What it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    pub host: HostId,
    /// As people call it.
    pub host_name: HostName,
    /// Whose data the key opens.
    pub customer: CustomerId,
    /// Which life of the host's state.
    pub epoch: HostEpoch,
    pub code: CodeNumber,
    /// When the code was made, for people.
    pub made_at: UtcSecond,
}

/// The record of an escrow that is kept outside of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What it is for.
    pub context: Context,
    /// Which key is in it.
    pub fingerprint: KeyFingerprint,
}

impl Record {
    /// Compares with what was found, the coarsest first.
    pub(super) fn compare(&self, found: &Self) -> Result<(), OpenError> {
        let (wanted, inside) = (&self.context, &found.context);
        let made_at = inside.made_at;
        if wanted.host != inside.host {
            let (inside, wanted) = (inside.host_name.clone(), wanted.host_name.clone());
            return Err(OpenError::OtherHost { inside, wanted, made_at });
        }
        if wanted.customer != inside.customer {
            let (inside, wanted) = (inside.customer.clone(), wanted.customer.clone());
            return Err(OpenError::OtherCustomer { inside, wanted, made_at });
        }
        if wanted.epoch != inside.epoch {
            let (inside, wanted) = (inside.epoch, wanted.epoch);
            return Err(OpenError::OtherEpoch { inside, wanted, made_at });
        }
        if wanted.code != inside.code {
            let (inside, wanted) = (inside.code, wanted.code);
            return Err(OpenError::OtherCode { inside, wanted, made_at });
        }
        if self.fingerprint != found.fingerprint {
            let (inside, wanted) = (found.fingerprint.clone(), self.fingerprint.clone());
            return Err(OpenError::OtherKey { inside, wanted });
        }
        Ok(())
    }
}
