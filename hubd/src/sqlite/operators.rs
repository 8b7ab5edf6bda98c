//! Operators and the hashes of their tokens.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::operator::{OperatorView, Role};
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::access::{read_grant, scope_column};
use super::columns::{Text, Time};
use super::events::emit;
use super::machine_tokens::{end_of_maker, is_machine};
use super::settled::Scope;
use super::writer::{Shape, Tx};
use super::{Failed, Sqlite};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{
    By, NewOperator, OperatorError, OperatorRecord, Operators, StoreError, TokenMade, WriteError,
};

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<OperatorRecord> {
    Ok(OperatorRecord {
        name: row.get::<_, Text<_>>("name")?.0,
        grant: read_grant(row)?,
        expires_at: row.get::<_, Option<Time>>("expires_at")?.map(|time| time.0),
        revoked_at: row.get::<_, Option<Time>>("revoked_at")?.map(|time| time.0),
    })
}

/// The removal of an operator: time, correlation id, author.
struct Revocation<'a> {
    at: Timestamp,
    correlation: CorrelationId,
    actor: Option<&'a OperatorName>,
}

pub(super) fn one(connection: &Connection, name: &OperatorName) -> rusqlite::Result<Option<OperatorRecord>> {
    let sql =
        "SELECT name, role, scope, revoked_at, (SELECT max(expires_at) FROM tokens WHERE operator = name) AS expires_at
               FROM operators WHERE name = ?1";
    connection.prepare_cached(sql)?.query_row([name.as_str()], read).optional()
}

/// Whether there is, or was, an operator of this name.
pub(super) fn is_taken(tx: &Tx<'_>, name: &OperatorName) -> rusqlite::Result<bool> {
    Ok(one(tx, name)?.is_some())
}

/// The role of an operator who was not removed.
pub(super) fn role_of<E>(tx: &Tx<'_>, name: &OperatorName) -> Result<Option<Role>, Failed<E>> {
    let record = one(tx, name)?.filter(|record| record.revoked_at.is_none());
    Ok(record.map(|record| record.grant.role()))
}

fn add(tx: &Tx<'_>, new: &NewOperator, actor: Option<&OperatorName>) -> Result<(), Failed<OperatorError>> {
    match one(tx, &new.name)? {
        Some(there) if there.revoked_at.is_some() || there.grant != new.grant => {
            let (name, grant) = (new.name.clone(), Box::new(there.grant));
            return Err(Failed::Refused(OperatorError::Taken { name, grant }));
        }
        Some(_) => {}
        None if is_machine(tx, &new.name)? => {
            return Err(Failed::Refused(OperatorError::Machine { name: new.name.clone() }));
        }
        None => {
            let sql = "INSERT INTO operators (name, role, scope, created_at) VALUES (?1, ?2, ?3, ?4)";
            let (role, scope) = (new.grant.role().as_str(), scope_column(new.grant.scope())?);
            tx.prepare_cached(sql)?.execute(params![new.name.as_str(), role, scope, Time(new.at)])?;
        }
    }
    let sql = "INSERT INTO tokens (hash, operator, created_at, expires_at) VALUES (?1, ?2, ?3, ?4)";
    let (hash, name) = (new.token.as_bytes(), new.name.as_str());
    tx.prepare_cached(sql)?.execute(params![hash, name, Time(new.at), Time(new.expires_at)])?;
    let event = NewEvent {
        at: new.at,
        kind: EventKind::OperatorAdded,
        host: None,
        actor: actor.cloned(),
        correlation: new.correlation,
        message: format!("{} got a token as {}", new.name, new.grant),
    };
    emit(tx, &event)?;
    Ok(())
}

/// Every token of theirs ends at once, and those of the machines that they made.
fn revoke(tx: &Tx<'_>, name: &OperatorName, how: Revocation<'_>) -> Result<(), Failed<OperatorError>> {
    let sql = "UPDATE operators SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL";
    if tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(how.at)])? == 0 {
        return Err(Failed::Refused(OperatorError::Unknown { name: name.clone() }));
    }
    tx.prepare_cached("DELETE FROM tokens WHERE operator = ?1")?.execute([name.as_str()])?;
    end_of_maker(tx, name, how.at)?;
    let event = NewEvent {
        at: how.at,
        kind: EventKind::OperatorRevoked,
        host: None,
        actor: how.actor.cloned(),
        correlation: how.correlation,
        message: format!("{name} was removed"),
    };
    emit(tx, &event)?;
    Ok(())
}

#[async_trait]
impl Operators for Sqlite {
    async fn add_operator(&self, new: NewOperator) -> Result<(), WriteError<OperatorError>> {
        self.write_within("add an operator", Shape::Several, Scope::NoHost, move |tx| add(tx, &new, None))
            .await
    }

    async fn make_operator(
        &self,
        by: By,
        new: NewOperator,
        number: Uuid,
    ) -> Result<TokenMade, WriteError<OperatorError>> {
        self.mutate("add an operator", by, move |tx, by| {
            add(tx, &new, Some(&by.operator))?;
            Ok(TokenMade { number, expires_at: new.expires_at })
        })
        .await
    }

    async fn revoke_operator(
        &self,
        name: OperatorName,
        at: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), WriteError<OperatorError>> {
        self.write_within("revoke an operator", Shape::Several, Scope::NoHost, move |tx| {
            revoke(tx, &name, Revocation { at, correlation, actor: None })
        })
        .await
    }

    async fn let_operator_go(
        &self,
        by: By,
        name: OperatorName,
    ) -> Result<OperatorView, WriteError<OperatorError>> {
        self.mutate("revoke an operator", by, move |tx, by| {
            let sql = "SELECT count(DISTINCT name) FROM operators JOIN tokens ON operator = name
                       WHERE role = 'admin' AND scope IS NULL AND revoked_at IS NULL AND expires_at > ?2 AND name != ?1";
            let others: i64 =
                tx.prepare_cached(sql)?.query_row(params![name.as_str(), Time(by.at)], |row| row.get(0))?;
            let there = one(tx, &name)?;
            let is_whole = |there: &OperatorRecord| {
                let grant = &there.grant;
                there.revoked_at.is_none() && grant.role() == Role::Admin && grant.scope().is_everything()
            };
            if others == 0 && there.as_ref().is_some_and(is_whole) {
                return Err(Failed::Refused(OperatorError::LastAdmin { name: name.clone() }));
            }
            let (at, correlation, actor) = (by.at, by.correlation, Some(&by.operator));
            revoke(tx, &name, Revocation { at, correlation, actor })?;
            match one(tx, &name)? {
                Some(record) => Ok(record.view()),
                None => Err(Failed::Refused(OperatorError::Unknown { name })),
            }
        })
        .await
    }

    async fn operator(&self, name: OperatorName) -> Result<Option<OperatorRecord>, StoreError> {
        self.read("read an operator", move |connection| one(connection, &name)).await
    }

    async fn operators(&self) -> Result<Vec<OperatorRecord>, StoreError> {
        self.read("list operators", |connection| {
            let sql =
                "SELECT name, role, scope, revoked_at, (SELECT max(expires_at) FROM tokens WHERE operator = name)
                       AS expires_at FROM operators ORDER BY name";
            connection.prepare_cached(sql)?.query_map([], read)?.collect()
        })
        .await
    }

    async fn operator_by_token(
        &self,
        token: TokenHash,
        now: Timestamp,
    ) -> Result<Option<OperatorRecord>, StoreError> {
        self.read("look up a token", move |connection| {
            let sql =
                "SELECT name, role, scope, expires_at, revoked_at FROM tokens JOIN operators ON name = operator
                       WHERE hash = ?1 AND expires_at > ?2 AND revoked_at IS NULL";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row(params![token.as_bytes(), Time(now)], read).optional()
        })
        .await
    }
}
