//! Changes of a host's document: put, or only judged.
//!
//! In: the version that the operator saw, and the next document. Out: the new version, or what it would do. A part of a
//! document, an earlier version and a whole document go the same way, with the same checks. The next document is made from
//! the version that was *seen*, and the store decides whether that is still the newest: so a request that is repeated under
//! its key finds its first answer.

use holdfast_protocol::desired::{Desired, DesiredDocument, DesiredSchema, Reason};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::{DesiredVersion, HostDetail, HostState};
use holdfast_protocol::resource::requests::ChangePreview;
use holdfast_protocol::size::PollSeconds;
use serde::Deserialize;

use super::Hub;
use super::mutation::Head;
use super::problem::ApiError;
use crate::domain::desired::{IfMatch, PutError, judge_document};
use crate::domain::host::HostRef;
use crate::store::{Put, PutDone};

/// How often the agent polls where the first part of a host's first document is put.
const POLL_SECONDS: u32 = 30;

/// Whether a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Apply,
    DryRun,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DryRunQuery {
    dry_run: Option<bool>,
}

impl DryRunQuery {
    pub(super) fn of(mode: Mode) -> Self {
        Self { dry_run: Some(mode == Mode::DryRun) }
    }

    pub(super) fn mode(&self) -> Mode {
        mode(self.dry_run)
    }
}

pub(super) fn mode(dry_run: Option<bool>) -> Mode {
    match dry_run {
        Some(true) => Mode::DryRun,
        Some(false) | None => Mode::Apply,
    }
}

/// What came of a change.
pub(super) enum Outcome {
    Put(PutDone),
    Judged(Box<ChangePreview>),
}

/// One version of a host's document.
pub(super) async fn version_of(
    hub: &Hub,
    host: &HostRef,
    generation: Generation,
) -> Result<Option<DesiredVersion>, ApiError> {
    let found = hub.store.desired_history(host.clone(), Some(generation.next()), 1).await?;
    let found = found.ok_or_else(|| ApiError::not_found("host"))?;
    Ok(found.into_iter().find(|version| version.generation == generation))
}

/// A version as the document that it is. It was checked when it was put, by this hub or an earlier one.
pub(super) fn parsed(version: &DesiredVersion) -> Result<Desired, ApiError> {
    Ok(Desired::parse(version.document.as_bytes())?)
}

/// The version that the operator saw, and its host.
pub(super) struct Basis {
    pub host: HostRef,
    pub detail: HostDetail,
    seen: IfMatch,
    /// An empty document where the operator saw none.
    pub document: DesiredDocument,
}

impl Basis {
    pub(super) async fn read(hub: &Hub, host: HostRef, seen: IfMatch) -> Result<Self, ApiError> {
        let detail = hub.store.host(host.clone(), hub.clock.now()).await?;
        let detail = detail.ok_or_else(|| ApiError::not_found("host"))?;
        if seen.0 == Generation::NONE {
            return Ok(Self { host, detail, seen, document: empty() });
        }
        let Some(version) = version_of(hub, &host, seen.0).await? else {
            return Err(PutError::Moved { current: detail.host.wanted, seen: seen.0 }.into());
        };
        let document = parsed(&version)?.document().clone();
        Ok(Self { host, detail, seen, document })
    }

    /// The next document, checked as any other. It takes the next generation that hub and host do not have.
    pub(super) fn put(&self, reason: Reason, mut next: DesiredDocument) -> Result<Put, ApiError> {
        next.generation = self.seen.0.max(self.detail.host.held).next();
        let desired = Desired::check(next)?;
        let text = serde_json::to_string_pretty(desired.document()).map_err(|error| {
            ApiError::internal(format!("a document that was read cannot be written: {error}"))
        })?;
        if text.len() > holdfast_protocol::desired::DOCUMENT_BYTES_MAX {
            // Read again by its length, so that the refusal is that of a whole document.
            Desired::parse(text.as_bytes())?;
        }
        Ok(Put { host: self.host.clone(), seen: self.seen, reason, desired, text })
    }
}

fn empty() -> DesiredDocument {
    DesiredDocument {
        schema: DesiredSchema::V1,
        generation: Generation::NONE,
        poll_interval_s: PollSeconds::try_from(POLL_SECONDS).unwrap_or(PollSeconds::MAX),
        observe_interval_s: None,
        alarm_after_s: None,
        levels: None,
        overcommit: None,
        customer_limits: Vec::new(),
        policies: Vec::new(),
        storage: Vec::new(),
        guests: Vec::new(),
    }
}

/// Puts a document, or judges it by the same rules and says what it would do.
pub(super) async fn put_or_judge(
    hub: &Hub,
    (head, body): (Head, &[u8]),
    put: Put,
    mode: Mode,
) -> Result<Outcome, ApiError> {
    match mode {
        Mode::Apply => {
            let by = head.by(hub, body)?;
            let done = hub.store.put_desired(by, put).await?.ok_or_else(|| ApiError::not_found("host"))?;
            hub.long_polls.wake(done.host);
            Ok(Outcome::Put(done))
        }
        Mode::DryRun => Ok(Outcome::Judged(Box::new(judge(hub, &put).await?))),
    }
}

async fn judge(hub: &Hub, put: &Put) -> Result<ChangePreview, ApiError> {
    let missing = || ApiError::not_found("host");
    let detail = hub.store.host(put.host.clone(), hub.clock.now()).await?.ok_or_else(missing)?;
    if detail.host.state == HostState::Revoked {
        return Err(missing());
    }
    let current = hub.store.desired(put.host.clone()).await?.ok_or_else(missing)?;
    judge_document(current.as_ref(), detail.host.held, (put.seen, &put.desired), &detail.sections)?;
    let before = current.as_ref().map(parsed).transpose()?;
    let before = before.as_ref().map(Desired::document);
    Ok(ChangePreview::of(&detail, before, put.desired.document()))
}
