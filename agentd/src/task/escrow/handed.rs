//! The take-over of a lost host's recovery codes.
//!
//! In: what the hub handed over. Out: records of codes as if they had been made here, but marked as handed over. Until
//! the words are typed here, only the hub's statement says what is in a file. A repeat changes nothing.

use holdfast_protocol::desired::Desired;
use holdfast_protocol::escrow::EscrowFound;
use holdfast_protocol::id::{IdError, KeyFingerprint, TargetName};
use holdfast_protocol::json::chain;
use holdfast_protocol::restore::HandOver;
use holdfast_protocol::storage::Approval;
use holdfast_recovery::escrow::{Context, EscrowFile, OpenError, Record};

use super::EscrowTask;
use crate::plan::offsite;
use crate::port::host_replacement::HandOverError;
use crate::port::identity::{Identity, IdentityError};
use crate::port::store::StoreError;
use crate::port::store::escrow::HandedCode;

/// Used when the lost host's document names no target with the key: the backups may be gone, and the sheet still has
/// its number.
const NO_TARGET: &str = "lost-host";

/// Why they are not.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotTaken {
    #[error(transparent)]
    HandOver(#[from] HandOverError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("what the hub handed over as a wrapped key is refused")]
    File(#[from] OpenError),
    #[error("the wrapped key has no target")]
    Target(#[from] IdError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EscrowTask {
    /// Takes them over, where there are any.
    pub(super) async fn tag_guest(&self) -> Result<(), NotTaken> {
        let Some(handed) = self.hub.handed.read()?.filter(|handed| !handed.escrows.is_empty()) else {
            return Ok(());
        };
        let Some(identity) = self.hub.folder.read()? else { return Ok(()) };
        let mut codes = Vec::new();
        for found in &handed.escrows {
            match code(&handed, found, &identity) {
                Ok(code) => codes.push(code),
                // One that is none keeps back no other.
                Err(error) => {
                    let version = found.version.number;
                    tracing::warn!(%version, error = chain(&error), "a code of the lost box is not taken over");
                }
            }
        }
        Ok(self.store.take_over_codes(codes, self.clock.now()).await?)
    }
}

/// One of them, by what the hub says of it.
fn code(handed: &HandOver, found: &EscrowFound, identity: &Identity) -> Result<HandedCode, NotTaken> {
    let version = &found.version;
    let context = Context {
        host: identity.enrolled.host_id,
        host_name: identity.enrolled.host_name.clone(),
        customer: version.customer.clone(),
        epoch: version.epoch,
        code: version.code,
        made_at: version.made_at,
    };
    Ok(HandedCode {
        record: Record { context, fingerprint: version.fingerprint.clone() },
        target: target(handed, &version.fingerprint).map_or_else(|| NO_TARGET.parse(), Ok)?,
        version: version.number,
        file: EscrowFile::parse(found.file.as_bytes())?,
    })
}

/// The off-site target whose backups were encrypted with a key, by the lost host's document.
fn target(handed: &HandOver, key: &KeyFingerprint) -> Option<TargetName> {
    let document = Desired::parse(handed.desired.as_deref()?.as_bytes()).ok()?;
    let of = document.storage().iter().find(|target| offsite::key(&Approval::of(target)) == Some(key))?;
    Some(of.name.clone())
}
