//! The task that fetches an offered release of the agent.
//!
//! In: the hub's offer, asked for every ten minutes and during a trial twice in a minute, and the state of the slots. Out:
//! the release in a folder for root's gate, and a restart of this agent once no operation is under way; and for the gate's
//! question, whether the release on trial was withdrawn. A hub can offer; what runs is decided by the release
//! keys of the host, in the gate. Deliberately absent: the verdict on a build.

use std::sync::Arc;
use std::time::Duration;

use agent_slots::SlotsState;
use agent_slots::offer::{NotFetched, Offer, judge_offer};
use agent_slots::withdrawal::{TrialWithdrawal, ends_trial};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::chain;
use holdfast_protocol::release::stored::{OfferedRelease, WithdrawnRelease};
use holdfast_protocol::release::{
    ReleaseError, ReleaseFileKind, ReleaseManifest, SignedRelease, VersionNumber,
};
use tokio::sync::watch;

use super::hub_sync::Dial;
use super::stop::Stop;
use crate::port::clock::Clock;
use crate::port::hub::{Hub, HubError};
use crate::port::identity::{IdentityError, IdentityFolder};
use crate::port::store::{Store, StoreError};
use crate::port::update_folder::{UpdateFolder, UpdateFolderError};

/// The interval of the question. A rollout is paced in minutes.
const ASK_EVERY: Duration = Duration::from_secs(600);

/// A trial lasts two minutes at least, and a rollout that is held should end it.
const ASK_ON_TRIAL: Duration = Duration::from_secs(30);

/// The first question waits until the start's own work is done.
const FIRST: Duration = Duration::from_secs(60);

/// How often it is looked whether the operations under way have ended.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// An operation longer than this goes on after the restart, from its journal.
const DRAIN_MAX: Duration = Duration::from_secs(1_800);

/// An agent has a tenth of that; the gate has the same bound.
const PROGRAM_BYTES_MAX: u64 = 128 * 1024 * 1024;

pub struct AgentUpdateTask {
    pub store: Store,
    /// The identity of this agent.
    pub folder: IdentityFolder,
    /// How the hub is called.
    pub dial: Dial,
    pub updates: UpdateFolder,
    /// The state of the slots, as it is now.
    pub slots: fn() -> Option<SlotsState>,
    /// What the gate is told when it asks.
    pub withdrawal: watch::Sender<Option<TrialWithdrawal>>,
    /// Asks this process to stop; systemd starts it again, behind the gate.
    pub restart: Arc<dyn Fn() + Send + Sync>,
    pub clock: Arc<dyn Clock>,
}

/// Why a release was not fetched.
#[derive(Debug, thiserror::Error)]
enum UpdateError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("this host is not enrolled")]
    NotEnrolled,
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error("the hub offers manifest {offered}, and its release {version} has {found}", offered = .offered.as_str(), found = .found.as_str())]
    OtherManifest { version: VersionNumber, offered: Sha256Text, found: Sha256Text },
    #[error("release {0} names no agent, or several")]
    NoAgent(VersionNumber),
    #[error("the agent of release {version} has {bytes} bytes; at most {PROGRAM_BYTES_MAX} are fetched")]
    TooLarge { version: VersionNumber, bytes: u64 },
    #[error("the hub sent {got} bytes after byte {from} of the agent")]
    Part { from: u64, got: usize },
    #[error(transparent)]
    Folder(#[from] UpdateFolderError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a round came to.
#[derive(Debug, PartialEq, Eq)]
enum Round {
    /// There is nothing to do.
    Nothing,
    /// A release waits for the gate: the agent is to be restarted.
    Fetched(VersionNumber),
    /// One waits since before this start: no gate looked at it.
    NotLookedAt,
}

impl AgentUpdateTask {
    /// Asks until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut pause = self.pause().min(FIRST);
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return,
                () = self.clock.sleep(pause) => {}
            }
            pause = self.pause();
            match self.round().await {
                Ok(Round::Nothing) => {}
                Ok(Round::NotLookedAt) => tracing::warn!(
                    "a fetched release of the agent waits, and no gate looked at it: is holdfast-agent-gate started before agentd?"
                ),
                Ok(Round::Fetched(version)) => {
                    tracing::info!(%version, "a release of the agent is fetched; the agent restarts when its operations have ended");
                    tokio::select! {
                        biased;
                        () = stop.requested() => return,
                        () = self.drained() => {}
                    }
                    (self.restart)();
                }
                Err(error) => tracing::warn!(error = chain(&error), "the offered release was not fetched"),
            }
        }
    }

    /// Until the next question.
    fn pause(&self) -> Duration {
        let on_trial = (self.slots)().is_some_and(|state| state.trial.is_some());
        if on_trial { ASK_ON_TRIAL } else { ASK_EVERY }
    }

    /// Keeps for the gate what the hub says of the release on trial. A hub that is silent changes nothing.
    fn note_withdrawal(&self, withdrawn: Option<&WithdrawnRelease>) {
        let ends = ends_trial(withdrawn, (self.slots)().as_ref());
        self.withdrawal.send_if_modified(|kept| {
            let changed = *kept != ends;
            if let (true, Some(ends)) = (changed, &ends) {
                tracing::warn!(
                    "the release on trial is offered no more, and its trial ends: {}",
                    ends.reason.as_str()
                );
            }
            kept.clone_from(&ends);
            changed
        });
    }

    async fn round(&self) -> Result<Round, UpdateError> {
        if self.updates.waits()? {
            return Ok(Round::NotLookedAt);
        }
        let identity = self.folder.read()?.ok_or(UpdateError::NotEnrolled)?;
        let hub = (self.dial)(&identity)?;
        let answer = hub.release_offer().await?;
        self.note_withdrawal(answer.withdrawn.as_ref());
        let Some(OfferedRelease { version, manifest_sha256 }) = answer.release else {
            return Ok(Round::Nothing);
        };
        let offer = Offer { version, manifest: manifest_sha256 };
        // Where this program is older than the package's, the gate would have started that one.
        let packaged = env!("CARGO_PKG_VERSION").parse().unwrap_or(VersionNumber::new(0, 0, 0));
        if let Err(why) = judge_offer(&offer, packaged, (self.slots)().as_ref(), self.clock.now()) {
            match why {
                NotFetched::NotNewer | NotFetched::Busy => {}
                NotFetched::Failed | NotFetched::Refused => {
                    tracing::debug!(%version, ?why, "the offered release is not fetched again");
                }
            }
            return Ok(Round::Nothing);
        }
        self.fetch(&hub, &offer).await?;
        Ok(Round::Fetched(version))
    }

    async fn fetch(&self, hub: &Hub, offer: &Offer) -> Result<(), UpdateError> {
        let version = offer.version;
        let text = hub.release(version).await?.signed;
        let signed = SignedRelease::parse(text.as_bytes())?;
        let found = Sha256Text::of(&signed.manifest);
        if found != offer.manifest {
            return Err(UpdateError::OtherManifest { version, offered: offer.manifest.clone(), found });
        }
        let manifest = ReleaseManifest::parse(&signed.manifest)?;
        let file = manifest.only(ReleaseFileKind::Agent).ok_or(UpdateError::NoAgent(version))?;
        let (sha256, size) = (&file.sha256, file.size_bytes);
        if size > PROGRAM_BYTES_MAX {
            return Err(UpdateError::TooLarge { version, bytes: size });
        }
        let mut here = self.updates.begin(sha256, size)?;
        while here < size {
            let part = hub.artifact_part(sha256, here, size).await?;
            let got = part.len() as u64;
            if got == 0 || got > size - here {
                return Err(UpdateError::Part { from: here, got: part.len() });
            }
            self.updates.append(sha256, &part)?;
            here += got;
        }
        Ok(self.updates.offer(sha256, &text)?)
    }

    /// Waits until no operation is under way, for a while. A restart in the middle of one is safe too.
    async fn drained(&self) {
        let until = self.clock.monotonic() + DRAIN_MAX;
        while self.clock.monotonic() < until {
            match self.store.open_operations().await {
                Ok(open) if open.is_empty() => return,
                Ok(_) | Err(_) => self.clock.sleep(LOOK_EVERY).await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
