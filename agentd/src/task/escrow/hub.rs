//! Copies of wrapped keys at the hub.
//!
//! The hub's statement alone counts for nothing. It is believed to hold a file only when it answers a nonce with
//! something that only the holder of the file can compute. The file is never read back whole, because the customer
//! would be notified of a read. No version at the hub is ever overwritten, so a lost or changed file is put again under
//! a later number. A version that this host never put is reported, and the newest file is put again behind it. A number
//! far ahead is not followed, so that nothing can use up the numbers. When this host took the place of another one,
//! that host's numbers continue: the versions that were handed over count as our own, and the rest do not count as
//! foreign. A hub that is away raises no alarm about a copy that was proved before; its silence is reported elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::audit::hex;
use holdfast_protocol::escrow::{
    EscrowBytes, EscrowList, EscrowNumber, EscrowOpened, EscrowPut, EscrowPutSchema, NUMBER_JUMP_MAX, Notice,
    proof,
};
use holdfast_protocol::job::{Nonce, UtcSecond};
use holdfast_protocol::json::chain;
use holdfast_recovery::escrow::CodeNumber;

use super::{EscrowTask, Round};
use crate::execute::failpoint::{Moment, around};
use crate::model::escrow::{Codes, CopyPlace, KeptFile};
use crate::port::host_replacement::{HandOverError, HandOverFolder};
use crate::port::hub::{Hub, HubError};
use crate::port::identity::{IdentityError, IdentityFolder};
use crate::port::store::StoreError;
use crate::port::store::escrow::EscrowError;
use crate::task::hub_sync::Dial;

/// How the hub is called: each time with the agent's current identity, since its certificate is renewed.
#[derive(Clone)]
pub struct HubCopies {
    /// The identity of this agent.
    pub folder: IdentityFolder,
    /// How the hub is called.
    pub dial: Dial,
    /// What the host left whose place this one took.
    pub handed: HandOverFolder,
}

/// Why a copy is not as it should be.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Escrow(#[from] EscrowError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("this box is not enrolled")]
    NotEnrolled,
    #[error(transparent)]
    HandOver(#[from] HandOverError),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error("it was put there, and the hub cannot prove that it holds it: tell the hub's operator")]
    Unproved,
    #[error(
        "the hub lists version {0}, far ahead of any that this box put, so nothing is put behind it: tell the hub's operator"
    )]
    Far(EscrowNumber),
    #[error("the file cannot be sent: this is a fault of this program")]
    Unsendable,
    #[error("there is no randomness to ask the hub with")]
    Randomness(#[source] getrandom::Error),
}

/// The hub, the files that it says it holds, and the last number that it has accepted.
struct HubEscrow {
    hub: Hub,
    list: EscrowList,
    newest: Option<EscrowNumber>,
    /// The last number that the host put whose place this one took; 0 if there was none.
    before: u32,
    strange: Strange,
}

/// Whether the hub lists a version later than all that this host put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strange {
    No,
    /// Another host put it, or the records here are older than the hub's.
    Newer,
    /// No honest hub takes such a number.
    Far(EscrowNumber),
}

/// What was found of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldVersion {
    Yes,
    /// Never there, as far as is known here.
    NotYet,
    /// There is something else, or nothing any more.
    Lost,
    /// Proved, and a version that this host never put is newer.
    Overtaken,
}

impl HeldVersion {
    /// What is reported to a person about it.
    const fn alarm(self, was_right: bool) -> Option<&'static str> {
        match (self, was_right) {
            (Self::Yes, _) | (Self::NotYet, false) => None,
            (Self::Lost, _) | (Self::NotYet, true) => {
                Some("the hub lost it, or holds something else in its place")
            }
            (Self::Overtaken, _) => Some(
                "the hub lists a newer version that this box never put: somebody else has its certificate, or its records \
                 are older than the hub's",
            ),
        }
    }
}

impl EscrowTask {
    /// Compares all kept files with what the hub holds.
    pub(super) async fn at_hub(
        &self,
        known: &Codes,
        files: &BTreeMap<CodeNumber, KeptFile>,
        given_up: &BTreeSet<CodeNumber>,
    ) -> Result<Round, StoreError> {
        let at_hub = |code: CodeNumber| {
            known.copies.iter().find(|copy| copy.code == code && copy.place == CopyPlace::Hub)
        };
        for code in given_up.iter().filter(|code| at_hub(**code).is_some()) {
            self.forget(*code, &CopyPlace::Hub).await?;
        }
        if files.is_empty() {
            return Ok(Round::Right);
        }
        let mut listing = match self.listing().await {
            Ok(answered) => answered,
            Err(error) => {
                tracing::warn!(error = chain(&error), "the hub cannot be asked for wrapped keys");
                for code in files.keys().filter(|code| at_hub(**code).is_none()) {
                    let problem = format!("it is not there yet: {}", chain(&error));
                    self.note(*code, &CopyPlace::Hub, Some(problem)).await?;
                }
                return Ok(Round::Again);
            }
        };
        let mut round = Round::Right;
        // In the order in which they were kept: the hub takes no number that is behind its newest.
        let mut in_order: Vec<_> = files.iter().collect();
        in_order.sort_by_key(|(_, kept)| kept.version);
        let newest = in_order.last().map(|(code, _)| **code);
        for (code, kept) in in_order {
            let was_right = at_hub(*code).is_some_and(|copy| copy.problem.is_none());
            let last = newest == Some(*code);
            let problem = match self.one(&mut listing, kept, (was_right, last)).await {
                Ok(()) => match listing.list.notice {
                    Notice::Webhook => None,
                    Notice::Unset => Some(
                        "it is there, and the hub would hand it to nobody: the hub's operator sets whom it notifies of reads"
                            .to_owned(),
                    ),
                },
                Err(Failed::Store(error)) => return Err(error),
                // Asking a lying hub sooner does not help, and each try would use up a number.
                Err(error @ (Failed::Unproved | Failed::Far(_))) => Some(chain(&error)),
                Err(error) => {
                    round = Round::Again;
                    Some(chain(&error))
                }
            };
            self.note(*code, &CopyPlace::Hub, problem).await?;
        }
        Ok(round)
    }

    async fn listing(&self) -> Result<HubEscrow, Failed> {
        let identity = self.hub.folder.read()?.ok_or(Failed::NotEnrolled)?;
        let hub = (self.hub.dial)(&identity)?;
        let list = hub.list_escrow().await?;
        let newest = list.versions.iter().map(|view| view.number).max();
        let handed = self.hub.handed.read()?.map(|handed| handed.escrows).unwrap_or_default();
        let before = handed.iter().map(|found| found.version.number.number()).max().unwrap_or(0);
        let ours = self.store.last_version().await?.map_or(0, EscrowNumber::number).max(before);
        let strange = match newest {
            Some(newest) if newest.number() > ours.saturating_add(NUMBER_JUMP_MAX) => Strange::Far(newest),
            Some(newest) if newest.number() > ours => Strange::Newer,
            _ => Strange::No,
        };
        Ok(HubEscrow { hub, list, newest, before, strange })
    }

    /// One file: proved, or put and then proved; its last drill is reported too.
    async fn one(
        &self,
        listing: &mut HubEscrow,
        kept: &KeptFile,
        (was_right, last): (bool, bool),
    ) -> Result<(), Failed> {
        let bytes =
            EscrowBytes::try_from(kept.file.to_text().into_bytes()).map_err(|_| Failed::Unsendable)?;
        let (code, failpoints) = (kept.code.number(), self.failpoints.as_ref());
        let mut version = kept.version;
        let held = match listing.held(version, &bytes).await? {
            HeldVersion::Yes if last && listing.strange != Strange::No => HeldVersion::Overtaken,
            held => held,
        };
        if let Some(was) = held.alarm(was_right) {
            self.note(code, &CopyPlace::Hub, Some(was.to_owned())).await?;
        }
        if held != HeldVersion::Yes {
            if let Strange::Far(number) = listing.strange {
                return Err(Failed::Far(number));
            }
            let before = EscrowNumber::try_from(listing.before).ok();
            if let Some(newest) = listing.newest.max(before).filter(|newest| *newest >= version) {
                let renewed = self.store.renew_version(code, newest, self.clock.now());
                version = around(failpoints, ("version_renewed", Moment::Intent), renewed).await?;
            }
            let put = put(kept, version, bytes.clone());
            around(failpoints, ("put", Moment::Effect), listing.hub.put_escrow(&put)).await?;
            listing.newest = Some(version);
            if !listing.proves(version, &bytes).await? {
                return Err(Failed::Unproved);
            }
        }
        let reported =
            listing.list.versions.iter().find(|view| view.number == version).and_then(|view| view.opened_at);
        let drilled = kept.code.drilled_at.and_then(|at| UtcSecond::new(at).ok());
        if let Some(at) = drilled.filter(|at| reported.is_none_or(|reported| reported < *at)) {
            let opened = EscrowOpened { at };
            let reported = listing.hub.report_escrow_opened(version, &opened);
            around(failpoints, ("drill_reported", Moment::Reported), reported).await?;
        }
        Ok(())
    }
}

impl HubEscrow {
    async fn held(&self, version: EscrowNumber, bytes: &EscrowBytes) -> Result<HeldVersion, Failed> {
        match self.list.versions.iter().find(|view| view.number == version) {
            None => Ok(HeldVersion::NotYet),
            // The lost host's own version, which was not handed over.
            Some(view) if version.number() <= self.before && view.sha256 != bytes.sha256() => {
                Ok(HeldVersion::NotYet)
            }
            Some(view) if view.sha256 != bytes.sha256() => Ok(HeldVersion::Lost),
            Some(_) if self.proves(version, bytes).await? => Ok(HeldVersion::Yes),
            Some(_) => Ok(HeldVersion::Lost),
        }
    }

    /// Whether the hub says what only the holder of these bytes can say.
    async fn proves(&self, version: EscrowNumber, bytes: &EscrowBytes) -> Result<bool, Failed> {
        let mut fresh = [0_u8; 16];
        getrandom::fill(&mut fresh).map_err(Failed::Randomness)?;
        let nonce = Nonce::try_from(hex(&fresh)).map_err(|_| Failed::Unsendable)?;
        let said = self.hub.prove_escrow(version, &nonce).await?;
        Ok(said.number == version && said.proof == proof(&nonce, bytes))
    }
}

fn put(kept: &KeptFile, number: EscrowNumber, file: EscrowBytes) -> EscrowPut {
    let context = &kept.code.record.context;
    EscrowPut {
        schema: EscrowPutSchema::V1,
        number,
        sha256: file.sha256(),
        file,
        customer: context.customer.clone(),
        epoch: context.epoch,
        code: context.code,
        fingerprint: kept.code.key().clone(),
        made_at: context.made_at,
    }
}
