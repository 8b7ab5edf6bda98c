//! Holders of a guest's tokens, and the freeze.
//!
//! The present token is in the guest's row. When another one replaces it, its hash moves to `former_token`. A caller
//! that shows it later is then known as a second holder, not as a stranger. Deliberately absent: the judgement, which
//! is `model::token_reuse`'s.

use std::net::IpAddr;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};

use super::columns::parsed;
use super::{Part, Store, StoreError, audit, guest};
use agent_core::model::records::GuestRecord;
use agent_core::model::token_reuse::{Holding, PresentedToken};

/// Earlier tokens that are remembered of each guest. A guest gets a new one when it is made anew.
const FORMER_MAX: u32 = 8;

/// A token's guest, and the records about its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub record: GuestRecord,
    /// Which of its tokens it is.
    pub shown: PresentedToken,
    /// The records about them.
    pub holding: Holding,
}

/// What became of a request to let a frozen guest in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thawed {
    /// It may use the local API again.
    Yes,
    /// It was not frozen.
    WasOpen,
    /// No such guest is known.
    Unknown,
}

/// Another token is about to replace the present one: the present one is kept as an earlier one.
pub(super) fn retire(transaction: &Transaction<'_>, uid: GuestUid) -> Result<(), StoreError> {
    let failed = || StoreError::sqlite("remember an earlier token");
    let uid = uid.to_string();
    transaction
        .execute(
            "INSERT OR REPLACE INTO former_token (hash, guest, generation)
             SELECT token_hash, uid, token_generation FROM guest WHERE uid = ?1 AND token_hash IS NOT NULL",
            [&uid],
        )
        .map_err(failed())?;
    transaction
        .execute(
            "DELETE FROM former_token WHERE guest = ?1 AND hash NOT IN
             (SELECT hash FROM former_token WHERE guest = ?1 ORDER BY generation DESC LIMIT ?2)",
            (&uid, FORMER_MAX),
        )
        .map_err(failed())?;
    Ok(())
}

/// The guest's uid, by one of its tokens. Found by hash: the time that the search for a hash of 256 random bits takes
/// reveals nothing.
fn owner(connection: &Connection, token: &TokenHash) -> Result<Option<(String, PresentedToken)>, StoreError> {
    let find = |sql: &str| {
        let row = connection.query_row(sql, [token.as_bytes()], |row| row.get::<_, String>(0));
        row.optional().map_err(StoreError::sqlite("find a token"))
    };
    if let Some(uid) = find("SELECT uid FROM guest WHERE token_hash = ?1")? {
        return Ok(Some((uid, PresentedToken::Current)));
    }
    Ok(find("SELECT guest FROM former_token WHERE hash = ?1")?.map(|uid| (uid, PresentedToken::Former)))
}

fn find(connection: &Connection, token: &TokenHash) -> Result<Option<Holder>, StoreError> {
    let Some((uid, shown)) = owner(connection, token)? else { return Ok(None) };
    let used_from: Option<String> = connection
        .query_row("SELECT token_used_from FROM guest WHERE uid = ?1", [&uid], |row| row.get(0))
        .optional()
        .map_err(StoreError::sqlite("read where a token was used"))?
        .flatten();
    let used_from = used_from.map(|text| parsed::<IpAddr>("an address", &text)).transpose()?;
    let record = guest::find(connection, parsed("a guest's uid", &uid)?)?;
    Ok(record.map(|record| {
        let holding = Holding { access: record.access, used_from };
        Holder { record, shown, holding }
    }))
}

impl Store {
    /// Whose token this is, or was.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn holder(&self, token: TokenHash) -> Result<Option<Holder>, StoreError> {
        self.read(move |connection| find(connection, &token)).await
    }

    /// The token of this generation was used from there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn token_used(&self, uid: GuestUid, generation: u32, from: IpAddr) -> Result<(), StoreError> {
        self.write(Part::Guests, "note where a token was used", move |transaction| {
            transaction
                .execute(
                    "UPDATE guest SET token_used_from = ?3 WHERE uid = ?1 AND token_generation = ?2",
                    (uid.to_string(), generation, from.to_string()),
                )
                .map_err(StoreError::sqlite("note where a token was used"))?;
            Ok(())
        })
        .await
    }

    /// Two holders have this guest's tokens: no call is accepted for it until a person has checked. Written to the
    /// audit once, however often it is seen.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn freeze_holders(
        &self,
        uid: GuestUid,
        seen: String,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Guests, "freeze a guest", move |transaction| {
            let changed = transaction
                .execute(
                    "UPDATE guest SET access = 'frozen' WHERE uid = ?1 AND access = 'open'",
                    [uid.to_string()],
                )
                .map_err(StoreError::sqlite("freeze a guest"))?;
            if changed == 0 {
                return Ok(());
            }
            let line = audit::Line {
                at: now,
                action: "token_twice",
                guest: Some(uid),
                operation: None,
                detail: &seen,
            };
            audit::append(transaction, &line)
        })
        .await
    }

    /// Lets a frozen guest use the local API again, with the token it has. A person checked the case; `why` is their
    /// reason.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn thaw(&self, uid: GuestUid, why: String, now: Timestamp) -> Result<Thawed, StoreError> {
        self.write(Part::Guests, "let a guest in again", move |transaction| {
            let Some(record) = guest::find(transaction, uid)? else { return Ok(Thawed::Unknown) };
            if record.access == agent_core::model::records::Access::Open {
                return Ok(Thawed::WasOpen);
            }
            transaction
                .execute("UPDATE guest SET access = 'open' WHERE uid = ?1", [uid.to_string()])
                .map_err(StoreError::sqlite("let a guest in again"))?;
            let line =
                audit::Line { at: now, action: "thawed", guest: Some(uid), operation: None, detail: &why };
            audit::append(transaction, &line)?;
            Ok(Thawed::Yes)
        })
        .await
    }
}
