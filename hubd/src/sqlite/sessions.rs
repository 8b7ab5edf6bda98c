//! Sessions of operators.

use async_trait::async_trait;
use holdfast_protocol::id::{OperatorName, SessionId};
use holdfast_protocol::secret::TokenHash;
use holdfast_protocol::sign_in::{SessionKind, SessionView};
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};

use super::columns::{Id, Text, Time};
use super::events::emit;
use super::settled::Scope;
use super::writer::{Shape, Tx};
use super::{Failed, Sqlite, operators};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{
    NewSession, PAGE_MAX, SESSIONS_KEPT, SESSIONS_MAX, SessionChoice, SessionEnd, SessionRecord, Sessions,
    StoreError,
};

const COLUMNS: &str = "id, operator, kind, made_at, used_at, idle_ends_at, ends_at, address, user_agent";

pub(super) const fn kind_word(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Full => "full",
        SessionKind::Setup => "setup",
    }
}

/// The table's check allows these two alone.
pub(super) fn read_kind(row: &Row<'_>) -> rusqlite::Result<SessionKind> {
    let word: String = row.get("kind")?;
    Ok(if word == "full" { SessionKind::Full } else { SessionKind::Setup })
}

fn read(row: &Row<'_>) -> rusqlite::Result<SessionView> {
    let time = |name: &str| row.get::<_, Time>(name).map(|time| time.0);
    Ok(SessionView {
        id: SessionId::new(row.get::<_, Id>("id")?.0),
        operator: row.get::<_, Text<_>>("operator")?.0,
        kind: read_kind(row)?,
        made_at: time("made_at")?,
        used_at: time("used_at")?,
        idle_ends_at: time("idle_ends_at")?,
        ends_at: time("ends_at")?,
        address: row.get("address")?,
        user_agent: row.get("user_agent")?,
    })
}

/// Opens a session for an operator. One too many ends the one that was used longest ago.
pub(super) fn open(
    tx: &Tx<'_>,
    new: &NewSession,
    operator: &OperatorName,
    kind: SessionKind,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO sessions (hash, id, operator, kind, made_at, used_at, idle_ends_at, ends_at, address, user_agent)
               VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9)";
    tx.prepare_cached(sql)?.execute(params![
        new.token.as_bytes(),
        Id(new.id.uuid()),
        operator.as_str(),
        kind_word(kind),
        Time(new.at),
        Time(new.ends.idle),
        Time(new.ends.absolute),
        new.address,
        new.user_agent,
    ])?;
    let sql = "DELETE FROM sessions WHERE operator = ?1 AND hash != ?2 AND hash NOT IN
                   (SELECT hash FROM sessions WHERE operator = ?1 ORDER BY used_at DESC LIMIT ?3)";
    tx.prepare_cached(sql)?.execute(params![operator.as_str(), new.token.as_bytes(), SESSIONS_MAX])?;
    Ok(())
}

/// The session with a token, with its operator.
pub(super) fn record(
    connection: &rusqlite::Connection,
    token: TokenHash,
    now: Timestamp,
) -> rusqlite::Result<Option<SessionRecord>> {
    let sql = format!(
        "SELECT {COLUMNS}, name, role, scope, revoked_at, NULL AS expires_at FROM sessions JOIN operators ON name = operator
         WHERE hash = ?1 AND idle_ends_at > ?2 AND ends_at > ?2 AND revoked_at IS NULL"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let read = |row: &Row<'_>| Ok(SessionRecord { view: read(row)?, owner: operators::read(row)? });
    statement.query_row(params![token.as_bytes(), Time(now)], read).optional()
}

pub(super) fn prune(tx: &Tx<'_>, now: Timestamp) -> rusqlite::Result<()> {
    let before = now.checked_sub(SESSIONS_KEPT).unwrap_or(Timestamp::MIN);
    tx.execute("DELETE FROM sessions WHERE ends_at < ?1", [Time(before)])?;
    tx.execute("DELETE FROM sign_in_links WHERE expires_at < ?1", [Time(now)])?;
    Ok(())
}

#[async_trait]
impl Sessions for Sqlite {
    async fn session(&self, token: TokenHash, now: Timestamp) -> Result<Option<SessionRecord>, StoreError> {
        self.read("look up a session", move |connection| record(connection, token, now)).await
    }

    async fn use_session(
        &self,
        token: TokenHash,
        now: Timestamp,
        idle_ends_at: Timestamp,
    ) -> Result<(), StoreError> {
        let written =
            self.write_within("note the use of a session", Shape::Single, Scope::NoHost, move |tx| {
                let sql =
                    "UPDATE sessions SET used_at = ?2, idle_ends_at = ?3 WHERE hash = ?1 AND used_at < ?2";
                let row = params![token.as_bytes(), Time(now), Time(idle_ends_at)];
                tx.prepare_cached(sql)?.execute(row)?;
                Ok::<_, Failed<std::convert::Infallible>>(())
            });
        written.await.map_err(StoreError::from)
    }

    async fn sessions(
        &self,
        of: Option<OperatorName>,
        now: Timestamp,
    ) -> Result<Vec<SessionView>, StoreError> {
        self.read("list sessions", move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM sessions JOIN operators ON name = operator
                 WHERE idle_ends_at > ?1 AND ends_at > ?1 AND revoked_at IS NULL AND (?2 IS NULL OR operator = ?2)
                 ORDER BY made_at DESC, id LIMIT ?3"
            );
            let of = of.as_ref().map(|name| name.as_str());
            connection.prepare_cached(&sql)?.query_map(params![Time(now), of, PAGE_MAX], read)?.collect()
        })
        .await
    }

    async fn end_session(&self, end: SessionEnd) -> Result<Option<SessionView>, StoreError> {
        let ended = self.write_within("end a session", Shape::Single, Scope::NoHost, move |tx| {
            let sql = format!(
                "SELECT hash, {COLUMNS} FROM sessions
                 WHERE (?1 IS NULL OR hash = ?1) AND (?2 IS NULL OR id = ?2) AND (?3 IS NULL OR operator = ?3)
                     AND idle_ends_at > ?4 AND ends_at > ?4"
            );
            let (token, id, owner) = match &end.session {
                SessionChoice::Token(token) => (Some(*token), None, None),
                SessionChoice::Own(id, owner) => (None, Some(*id), Some(owner)),
                SessionChoice::Any(id) => (None, Some(*id), None),
            };
            let key = params![
                token.as_ref().map(|token| token.as_bytes().as_slice()),
                id.map(|id| Id(id.uuid())),
                owner.map(|name| name.as_str()),
                Time(end.at)
            ];
            let found = tx
                .prepare_cached(&sql)?
                .query_row(key, |row| Ok((row.get::<_, [u8; 32]>("hash")?, read(row)?)))
                .optional()?;
            let Some((hash, view)) = found else { return Ok(None) };
            // The row stays, as one that ended: it says from where its operator signs in.
            let sql = "UPDATE sessions SET idle_ends_at = ?2, ends_at = ?2 WHERE hash = ?1";
            tx.prepare_cached(sql)?.execute(params![hash, Time(end.at)])?;
            let event = NewEvent {
                at: end.at,
                kind: EventKind::SessionEnded,
                host: None,
                actor: Some(end.actor),
                correlation: end.correlation,
                message: format!("a session of {} from {} was ended", view.operator, view.address),
            };
            emit(tx, &event)?;
            Ok::<_, Failed<std::convert::Infallible>>(Some(view))
        });
        ended.await.map_err(StoreError::from)
    }

    async fn has_signed_in_from(&self, name: OperatorName, address: String) -> Result<bool, StoreError> {
        self.read("look up earlier sign-ins", move |connection| {
            let sql = "SELECT 1 FROM sessions WHERE operator = ?1 AND address = ?2";
            connection.prepare_cached(sql)?.exists(params![name.as_str(), address])
        })
        .await
    }
}
