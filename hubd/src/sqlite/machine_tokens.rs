//! Tokens of machines and the hashes of their secrets.

use async_trait::async_trait;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::machine_token::TokenView;
use holdfast_protocol::secret::TokenHash;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::access::{read_grant, scope_column};
use super::columns::{Text, Time};
use super::events::emit;
use super::settled::Scope;
use super::writer::{Shape, Tx};
use super::{Failed, Sqlite};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{
    By, MachineRecord, MachineTokenError, MachineTokens, NewMachineToken, NewSecret, SECRETS_MAX, SecretMade,
    StoreError, TOKENS_PER_MAKER_MAX, USE_WRITTEN_S, WriteError,
};

const COLUMNS: &str = "name, maker, role, scope, created_at, used_at, revoked_at,
    (SELECT max(expires_at) FROM machine_secrets WHERE token = name) AS expires_at FROM machine_tokens";

fn read(row: &Row<'_>) -> rusqlite::Result<TokenView> {
    let grant = read_grant(row)?;
    let time = |column| row.get::<_, Option<Time>>(column).map(|time| time.map(|time| time.0));
    Ok(TokenView {
        name: row.get::<_, Text<_>>("name")?.0,
        maker: row.get::<_, Text<_>>("maker")?.0,
        role: grant.role(),
        scope: grant.scope().clone(),
        created_at: row.get::<_, Time>("created_at")?.0,
        expires_at: time("expires_at")?,
        used_at: time("used_at")?,
        revoked_at: time("revoked_at")?,
    })
}

fn one(connection: &Connection, name: &OperatorName) -> rusqlite::Result<Option<TokenView>> {
    let sql = format!("SELECT {COLUMNS} WHERE name = ?1");
    connection.prepare_cached(&sql)?.query_row([name.as_str()], read).optional()
}

fn going_on(tx: &Tx<'_>, name: &OperatorName) -> Result<TokenView, Failed<MachineTokenError>> {
    let found = one(tx, name)?.filter(|view| view.revoked_at.is_none());
    found.ok_or_else(|| Failed::Refused(MachineTokenError::Unknown { name: name.clone() }))
}

fn put_secret(tx: &Tx<'_>, name: &OperatorName, secret: &NewSecret, at: Timestamp) -> rusqlite::Result<()> {
    let sql = "INSERT INTO machine_secrets (hash, token, created_at, expires_at) VALUES (?1, ?2, ?3, ?4)";
    let row = params![secret.hash.as_bytes(), name.as_str(), Time(at), Time(secret.expires_at)];
    tx.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

fn log(tx: &Tx<'_>, by: &By, kind: EventKind, message: String) -> rusqlite::Result<()> {
    let (at, actor, correlation) = (by.at, Some(by.operator.clone()), by.correlation);
    emit(tx, &NewEvent { at, kind, host: None, actor, correlation, message })
}

/// Ends all secrets of a token that are there.
fn end(tx: &Tx<'_>, name: &OperatorName, at: Timestamp) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM machine_secrets WHERE token = ?1")?.execute([name.as_str()])?;
    let sql = "UPDATE machine_tokens SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL";
    tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(at)])?;
    Ok(())
}

/// Ends all tokens that a person made.
pub(super) fn end_of_maker(tx: &Tx<'_>, maker: &OperatorName, at: Timestamp) -> rusqlite::Result<()> {
    let sql = "DELETE FROM machine_secrets WHERE token IN (SELECT name FROM machine_tokens WHERE maker = ?1)";
    tx.prepare_cached(sql)?.execute([maker.as_str()])?;
    let sql = "UPDATE machine_tokens SET revoked_at = ?2 WHERE maker = ?1 AND revoked_at IS NULL";
    tx.prepare_cached(sql)?.execute(params![maker.as_str(), Time(at)])?;
    Ok(())
}

/// Whether a machine has this name.
pub(super) fn is_machine(tx: &Tx<'_>, name: &OperatorName) -> rusqlite::Result<bool> {
    Ok(one(tx, name)?.is_some())
}

fn make(tx: &Tx<'_>, by: &By, new: &NewMachineToken) -> Result<SecretMade, Failed<MachineTokenError>> {
    let name = &new.name;
    let sql = "SELECT count(*) FROM operators WHERE name = ?1";
    let people: u32 = tx.prepare_cached(sql)?.query_row([name.as_str()], |row| row.get(0))?;
    if people > 0 || is_machine(tx, name)? {
        return Err(Failed::Refused(MachineTokenError::Taken { name: name.clone() }));
    }
    let sql = "SELECT count(*) FROM machine_tokens WHERE maker = ?1 AND revoked_at IS NULL";
    let count: u32 = tx.prepare_cached(sql)?.query_row([by.operator.as_str()], |row| row.get(0))?;
    if count >= TOKENS_PER_MAKER_MAX {
        return Err(Failed::Refused(MachineTokenError::TooMany { maker: by.operator.clone() }));
    }
    let sql = "INSERT INTO machine_tokens (name, maker, role, scope, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let (role, scope) = (new.grant.role().as_str(), scope_column(new.grant.scope())?);
    let row = params![name.as_str(), by.operator.as_str(), role, scope, Time(by.at)];
    tx.prepare_cached(sql)?.execute(row)?;
    put_secret(tx, name, &new.secret, by.at)?;
    log(tx, by, EventKind::TokenCreated, format!("token {name} was made as {}", new.grant))?;
    let (number, expires_at) = (new.secret.number, new.secret.expires_at);
    Ok(SecretMade { number, expires_at, earlier_until: None, token: going_on(tx, name)? })
}

fn rotate(
    tx: &Tx<'_>,
    by: &By,
    name: &OperatorName,
    secret: &NewSecret,
    until: Timestamp,
) -> Result<SecretMade, Failed<MachineTokenError>> {
    going_on(tx, name)?;
    let sql = "DELETE FROM machine_secrets WHERE token = ?1 AND expires_at <= ?2";
    tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(by.at)])?;
    let sql = "UPDATE machine_secrets SET expires_at = ?2 WHERE token = ?1 AND expires_at > ?2";
    tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(until)])?;
    let sql = "SELECT max(expires_at), count(*) FROM machine_secrets WHERE token = ?1 AND expires_at > ?2";
    let (last, count): (Option<Time>, u32) = tx
        .prepare_cached(sql)?
        .query_row(params![name.as_str(), Time(by.at)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if count >= SECRETS_MAX {
        return Err(Failed::Refused(MachineTokenError::TooManySecrets { name: name.clone() }));
    }
    put_secret(tx, name, secret, by.at)?;
    let earlier_until = last.map(|last| last.0);
    let overlap = match earlier_until {
        Some(until) => format!("those before it end at {until:.0}"),
        None => "none before it goes on".to_owned(),
    };
    log(tx, by, EventKind::TokenRotated, format!("token {name} got another secret; {overlap}"))?;
    let (number, expires_at) = (secret.number, secret.expires_at);
    Ok(SecretMade { number, expires_at, earlier_until, token: going_on(tx, name)? })
}

#[async_trait]
impl MachineTokens for Sqlite {
    async fn machine_tokens(&self) -> Result<Vec<TokenView>, StoreError> {
        self.read("list tokens", |connection| {
            let sql = format!("SELECT {COLUMNS} ORDER BY name");
            connection.prepare_cached(&sql)?.query_map([], read)?.collect()
        })
        .await
    }

    async fn machine_token(&self, name: OperatorName) -> Result<Option<TokenView>, StoreError> {
        self.read("read a token", move |connection| one(connection, &name)).await
    }

    async fn make_machine_token(
        &self,
        by: By,
        new: NewMachineToken,
    ) -> Result<SecretMade, WriteError<MachineTokenError>> {
        self.mutate("make a token", by, move |tx, by| make(tx, by, &new)).await
    }

    async fn rotate_machine_token(
        &self,
        by: By,
        name: OperatorName,
        secret: NewSecret,
        earlier_until: Timestamp,
    ) -> Result<SecretMade, WriteError<MachineTokenError>> {
        self.mutate("rotate a token", by, move |tx, by| rotate(tx, by, &name, &secret, earlier_until)).await
    }

    async fn revoke_machine_token(
        &self,
        by: By,
        name: OperatorName,
    ) -> Result<TokenView, WriteError<MachineTokenError>> {
        self.mutate("revoke a token", by, move |tx, by| {
            let Some(view) = one(tx, &name)? else {
                return Err(Failed::Refused(MachineTokenError::Unknown { name }));
            };
            if view.revoked_at.is_none() {
                end(tx, &name, by.at)?;
                log(tx, by, EventKind::TokenRevoked, format!("token {name} was revoked"))?;
            }
            Ok(TokenView { revoked_at: view.revoked_at.or(Some(by.at)), expires_at: None, ..view })
        })
        .await
    }

    async fn machine_by_secret(
        &self,
        hash: TokenHash,
        now: Timestamp,
    ) -> Result<Option<MachineRecord>, StoreError> {
        self.read("look up a token", move |connection| {
            let sql = "SELECT t.name AS name, t.role AS role, t.scope AS scope, t.used_at AS used_at
                       FROM machine_secrets s JOIN machine_tokens t ON t.name = s.token
                           JOIN operators o ON o.name = t.maker
                       WHERE s.hash = ?1 AND s.expires_at > ?2 AND t.revoked_at IS NULL AND o.revoked_at IS NULL";
            let read = |row: &Row<'_>| {
                Ok(MachineRecord {
                    name: row.get::<_, Text<_>>("name")?.0,
                    grant: read_grant(row)?,
                    used_at: row.get::<_, Option<Time>>("used_at")?.map(|time| time.0),
                })
            };
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row(params![hash.as_bytes(), Time(now)], read).optional()
        })
        .await
    }

    async fn machine_token_used(&self, name: OperatorName, now: Timestamp) -> Result<(), StoreError> {
        let work = move |tx: &Tx<'_>| {
            let before = now.checked_sub(SignedDuration::from_secs(USE_WRITTEN_S)).unwrap_or(now);
            let sql = "UPDATE machine_tokens SET used_at = ?2 WHERE name = ?1 AND (used_at IS NULL OR used_at <= ?3)";
            tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(now), Time(before)])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        };
        let written = self.write_within("write down the use of a token", Shape::Single, Scope::NoHost, work);
        written.await.map_err(StoreError::from)
    }
}
