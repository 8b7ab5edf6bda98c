//! The task that fetches approved builds of the guest agent.
//!
//! In: the document in use, and what operators approved. Out: the bytes in the folder that `agentd release import` fills,
//! fetched from the hub's release store by digest, and why one is missing. A digest is trusted because of the signature,
//! never because of where its bytes came from. Deliberately absent: which guest gets them, and when.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::chain;
use tokio::sync::watch;

use super::hub_sync::Dial;
use super::stop::Stop;
use crate::model::observed::{MissingController, MissingControllers};
use crate::model::policy::Sha256Hex;
use crate::plan::controller_builds;
use crate::port::artifacts::{ArtifactError, Artifacts};
use crate::port::clock::Clock;
use crate::port::hub::{Hub, HubError, PART_BYTES};
use crate::port::identity::{IdentityError, IdentityFolder};
use crate::port::store::{Changes, Store, StoreError};

/// While a build is missing: each look goes on where a download was cut off.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// While none is: what guests run changes too, and a build that none needs may go.
const AT_REST: Duration = Duration::from_secs(3_600);

pub struct ControllerFetchTask {
    pub store: Store,
    /// The identity of this agent.
    pub folder: IdentityFolder,
    /// How the hub is called.
    pub dial: Dial,
    pub artifacts: Artifacts,
    /// What the hub did not give, for the plan.
    pub missing: watch::Sender<Arc<MissingControllers>>,
    pub clock: Arc<dyn Clock>,
}

/// Why a build was not fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("this host is not enrolled")]
    NotEnrolled,
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error("the hub sent {got} bytes where {PART_BYTES} were asked for")]
    Part { got: usize },
    #[error("{0} is no SHA-256")]
    Digest(String),
    #[error("the agent stops")]
    Stops,
}

impl FetchError {
    fn why(&self) -> MissingController {
        match self {
            Self::Hub(HubError::Refused { problem, .. }) if problem.code == ErrorCode::NotFound => {
                MissingController::NotAtHub
            }
            other => MissingController::Failed(chain(other)),
        }
    }
}

impl ControllerFetchTask {
    /// Fetches until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut changes = self.store.changes();
        loop {
            let asked = asked(&mut changes);
            if let Err(error) = self.round().await {
                tracing::warn!(error = chain(&error), "builds of the guest agent were not looked after");
            }
            let pause = if self.missing.borrow().is_empty() { AT_REST } else { LOOK_EVERY };
            let next = self.clock.monotonic() + pause;
            // A newer document or approval is carried out at once.
            while self::asked(&mut changes) == asked && self.clock.monotonic() < next {
                tokio::select! {
                    biased;
                    () = stop.requested() => return,
                    changed = changes.changed() => if changed.is_err() { return },
                    () = self.clock.sleep(next.saturating_sub(self.clock.monotonic())) => {}
                }
            }
        }
    }

    async fn round(&self) -> Result<(), StoreError> {
        let document = self.store.desired().await?;
        let desired = document.as_ref().map_or(&[][..], |document| document.guests());
        // The generation by which the reconcile loop asks, so that both have one answer.
        let generation = document.as_ref().map_or(Generation::NONE, |one| one.numbered().generation);
        let records = self.store.records(generation, self.clock.now()).await?;
        let needed = controller_builds::needed(desired, &records);
        let wanted = controller_builds::to_fetch(desired, &records);
        let artifacts = self.artifacts.clone();
        let room = on_disk(move || {
            let removed = artifacts.make_room(&needed)?;
            Ok((removed, artifacts.stored()))
        });
        let stored = match room.await {
            Ok((removed, stored)) => {
                for sha256 in removed {
                    tracing::info!(
                        sha256 = sha256.as_str(),
                        "a build of the guest agent that nothing needs was removed"
                    );
                }
                stored
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "unneeded builds of the guest agent were not removed");
                self.artifacts.stored()
            }
        };
        let mut missing = BTreeMap::new();
        for sha256 in wanted.into_iter().filter(|sha256| !stored.contains_key(sha256)) {
            match self.fetch(&sha256).await {
                Ok(bytes) => {
                    tracing::info!(
                        sha256 = sha256.as_str(),
                        bytes,
                        "a build of the guest agent was fetched from the hub"
                    );
                }
                Err(error) => {
                    tracing::debug!(
                        sha256 = sha256.as_str(),
                        error = chain(&error),
                        "a build was not fetched"
                    );
                    missing.insert(sha256, error.why());
                }
            }
        }
        self.missing.send_if_modified(|was| {
            let differs = **was != missing;
            if differs {
                *was = Arc::new(missing);
            }
            differs
        });
        Ok(())
    }

    async fn fetch(&self, sha256: &Sha256Hex) -> Result<u64, FetchError> {
        let identity = self.folder.read()?.ok_or(FetchError::NotEnrolled)?;
        let hub: Hub = (self.dial)(&identity)?;
        let text = sha256.as_str();
        let named = Sha256Text::try_from(text.to_owned()).map_err(|_| FetchError::Digest(text.to_owned()))?;
        let mut here = self.begin(sha256).await?;
        loop {
            let part = hub.next_part(&named, here).await?;
            let got = u64::try_from(part.len()).unwrap_or(u64::MAX);
            if got > PART_BYTES {
                return Err(FetchError::Part { got: part.len() });
            }
            here = here.saturating_add(got);
            if got > 0 {
                let (artifacts, of) = (self.artifacts.clone(), sha256.clone());
                on_disk(move || artifacts.append(&of, &part)).await?;
            }
            if got < PART_BYTES {
                let (artifacts, of) = (self.artifacts.clone(), sha256.clone());
                return on_disk(move || artifacts.complete(&of)).await;
            }
        }
    }

    async fn begin(&self, sha256: &Sha256Hex) -> Result<u64, FetchError> {
        let (artifacts, of) = (self.artifacts.clone(), sha256.clone());
        on_disk(move || artifacts.begin(&of)).await
    }
}

/// What decides which builds are fetched: the document, and what operators signed.
fn asked(changes: &mut watch::Receiver<Changes>) -> (u64, u64) {
    let changes = changes.borrow_and_update();
    (changes.desired, changes.jobs)
}

/// Runs work on the disk where it delays nothing else.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| FetchError::Stops)??)
}

#[cfg(test)]
mod tests;
