//! One read of a window with its operation and backup.

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::window::{WindowPhase, WindowView};
use holdfast_protocol::operation::OperationKind;
use rusqlite::Connection;

use super::{Window, find, with};
use crate::request::{RequestOrOperation, find_asked};
use crate::{Store, StoreError, backup, guest_view};
use agent_core::model::boot::BootMoment;
use agent_core::model::policy::QuiesceBound;
use agent_core::model::records::BackupRecord;
use agent_core::model::request::Ask;
use agent_core::operation::Operation;

/// A window, or the request for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowLook {
    id: OperationId,
    stands: RequestOrOperation,
    window: Option<Window>,
    backup: Option<BackupRecord>,
}

impl WindowLook {
    fn at(connection: &Connection, id: OperationId) -> Result<Option<Self>, StoreError> {
        let Some(stands) = find_asked(connection, id)? else { return Ok(None) };
        let (window, backup) = (find(connection, id)?, backup::of(connection, id)?);
        Ok(Some(Self { id, stands, window, backup }))
    }

    /// Whose it is.
    #[must_use]
    pub fn guest(&self) -> GuestUid {
        match &self.stands {
            RequestOrOperation::Operation(progress) => progress.operation.uid(),
            RequestOrOperation::Kept(view) => view.guest,
            RequestOrOperation::Request(record) => record.request.guest,
        }
    }

    /// Whether it is about a window at all.
    #[must_use]
    pub fn is_window(&self) -> bool {
        let kind = match &self.stands {
            RequestOrOperation::Operation(progress) => progress.operation.kind(),
            RequestOrOperation::Kept(view) => view.kind,
            RequestOrOperation::Request(record) => record.request.ask.kind(),
        };
        kind == OperationKind::QuiescedBackup
    }

    /// Whether it waits for its lane still, and can be cancelled as other requests are.
    #[must_use]
    pub const fn waits(&self) -> bool {
        matches!(self.stands, RequestOrOperation::Request(_))
    }

    /// Why the window or request has ended, if it has.
    fn end(&self) -> Option<ErrorBody> {
        match &self.stands {
            RequestOrOperation::Operation(progress) => {
                progress.view().problem.filter(|_| progress.status().is_end())
            }
            RequestOrOperation::Kept(view) => view.problem.clone(),
            RequestOrOperation::Request(record) => record.end.as_ref().map(|end| end.problem.clone()),
        }
    }

    fn bound(&self) -> QuiesceBound {
        match &self.stands {
            RequestOrOperation::Operation(progress) => match &progress.operation {
                Operation::QuiescedBackup(backup) => backup.bound,
                Operation::AdoptGuest(_)
                | Operation::AttachVolume(_)
                | Operation::Backup(_)
                | Operation::Destroy(_)
                | Operation::DiscardCopy(_)
                | Operation::ExpireSnapshot(_)
                | Operation::Grow(_)
                | Operation::ReassignVolume(_)
                | Operation::RebaseGuest(_)
                | Operation::Provision(_)
                | Operation::PruneBackup(_)
                | Operation::Reconfigure(_)
                | Operation::RestoreCopy(_)
                | Operation::RestartGuest(_)
                | Operation::RestoreTest(_)
                | Operation::RollBack(_)
                | Operation::Snapshot(_)
                | Operation::Start(_)
                | Operation::Stop(_)
                | Operation::SwapGuest(_)
                | Operation::UpdateController(_) => QuiesceBound::usual(),
            },
            // How long it may have been is no longer kept; it is over.
            RequestOrOperation::Kept(_) => QuiesceBound::usual(),
            RequestOrOperation::Request(record) => match &record.request.ask {
                Ask::QuiescedBackup { bound, .. } => *bound,
                Ask::Snapshot { .. }
                | Ask::ExpireSnapshot { .. }
                | Ask::RollBack { .. }
                | Ask::Backup { .. }
                | Ask::Ordered(_) => QuiesceBound::usual(),
            },
        }
    }

    /// The window as its controller sees it.
    #[must_use]
    pub fn view(&self, now: &BootMoment) -> WindowView {
        let end = self.end();
        let phase = match &self.window {
            Some(window) => window.reported(now),
            None if end.is_some() => WindowPhase::Cancelled,
            None => WindowPhase::Requested,
        };
        let left = self.window.as_ref().map(|window| window.left(now));
        let left = left.map(|left| left.as_millis().div_ceil(1000));
        let mut kept = self.backup.as_ref().map(guest_view::kept);
        // A label that may still improve is not shown.
        if let Some(kept) = &mut kept
            && self.window.as_ref().is_some_and(|window| !window.is_settled(now))
        {
            kept.label = None;
        }
        WindowView {
            id: self.id,
            phase,
            bound_s: self.bound().seconds(),
            left_s: left.and_then(|left| u32::try_from(left).ok()),
            label: kept.as_ref().and_then(|kept| kept.label.clone()),
            kept,
            // A problem that a person must solve has priority over one that the phase shows to the controller.
            problem: end.or_else(|| self.window.as_ref().and_then(|window| window.problem(now))),
        }
    }
}

impl Store {
    /// Reads a window, or the request for one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn look_at_window(&self, id: OperationId) -> Result<Option<WindowLook>, StoreError> {
        let look = self.read(move |connection| WindowLook::at(connection, id)).await?;
        let unwritten = self.unwritten.of(id);
        Ok(look.map(|look| WindowLook { window: look.window.map(|window| with(window, &unwritten)), ..look }))
    }
}
