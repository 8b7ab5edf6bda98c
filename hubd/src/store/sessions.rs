//! Sessions of operators.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, OperatorName, SessionId};
use holdfast_protocol::secret::TokenHash;
use holdfast_protocol::sign_in::{SessionKind, SessionView};
use jiff::Timestamp;

use super::{OperatorRecord, StoreError};
use crate::domain::sign_in::SessionEnds;

/// Sessions of one operator; beyond them the one that was used longest ago ends.
pub const SESSIONS_MAX: u32 = 20;

/// A session to be opened. Of a session by a link, the link names the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    pub token: TokenHash,
    pub id: SessionId,
    pub operator: Option<OperatorName>,
    pub kind: SessionKind,
    pub at: Timestamp,
    pub ends: SessionEnds,
    /// Where the person signs in from.
    pub address: String,
    /// The browser, shortened.
    pub user_agent: String,
}

/// A session with its operator, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    pub view: SessionView,
    pub owner: OperatorRecord,
}

/// Which session is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// The one with this token.
    Token(TokenHash),
    /// This one, if it is the operator's.
    Own(SessionId, OperatorName),
    /// This one, for an admin.
    Any(SessionId),
}

/// The end of a session before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    pub session: SessionChoice,
    pub actor: OperatorName,
    pub at: Timestamp,
    pub correlation: CorrelationId,
}

/// Sessions of people.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// The session with this token, if it is good now and its operator was not removed.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn session(&self, token: TokenHash, now: Timestamp) -> Result<Option<SessionRecord>, StoreError>;

    /// Writes down that a session was used.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn use_session(
        &self,
        token: TokenHash,
        now: Timestamp,
        idle_ends_at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Open sessions, the newest first: of one operator, or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn sessions(
        &self,
        of: Option<OperatorName>,
        now: Timestamp,
    ) -> Result<Vec<SessionView>, StoreError>;

    /// Ends a session; none where there is no such one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn end_session(&self, end: SessionEnd) -> Result<Option<SessionView>, StoreError>;

    /// Whether the operator signed in from this address lately.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn has_signed_in_from(&self, name: OperatorName, address: String) -> Result<bool, StoreError>;
}
