//! Operators and the hashes of their tokens.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::operator::{OperatorView, Role};
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::columns::{Text, Time};
use super::events::emit;
use super::settled::Scope;
use super::writer::{Shape, Tx};
use super::{Failed, Sqlite};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{
    By, NewOperator, OperatorError, OperatorRecord, Operators, StoreError, TokenMade, WriteError,
};

const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Admin => "admin",
    }
}

/// The table's check allows these three alone.
pub(super) fn read_role(row: &Row<'_>) -> rusqlite::Result<Role> {
    let word: String = row.get("role")?;
    Ok(match word.as_str() {
        "admin" => Role::Admin,
        "operator" => Role::Operator,
        _ => Role::Viewer,
    })
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<OperatorRecord> {
    Ok(OperatorRecord {
        name: row.get::<_, Text<_>>("name")?.0,
        role: read_role(row)?,
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

pub(super) fn role_of<E>(tx: &Tx<'_>, name: &OperatorName) -> Result<Option<Role>, Failed<E>> {
    let sql = "SELECT role FROM operators WHERE name = ?1 AND revoked_at IS NULL";
    Ok(tx.prepare_cached(sql)?.query_row([name.as_str()], read_role).optional()?)
}

fn add(tx: &Tx<'_>, new: &NewOperator, actor: Option<&OperatorName>) -> Result<(), Failed<OperatorError>> {
    let sql = "SELECT role, revoked_at FROM operators WHERE name = ?1";
    let there = tx
        .prepare_cached(sql)?
        .query_row([new.name.as_str()], |row| {
            Ok((read_role(row)?, row.get::<_, Option<Time>>("revoked_at")?.is_some()))
        })
        .optional()?;
    match there {
        Some((role, revoked)) if revoked || role != new.role => {
            return Err(Failed::Refused(OperatorError::Taken { name: new.name.clone(), role }));
        }
        Some(_) => {}
        None => {
            let sql = "INSERT INTO operators (name, role, created_at) VALUES (?1, ?2, ?3)";
            let role = role_word(new.role);
            tx.prepare_cached(sql)?.execute(params![new.name.as_str(), role, Time(new.at)])?;
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
        message: format!("{} got a token as {}", new.name, role_word(new.role)),
    };
    emit(tx, &event)?;
    Ok(())
}

/// Every token of theirs ends at once.
fn revoke(tx: &Tx<'_>, name: &OperatorName, how: Revocation<'_>) -> Result<(), Failed<OperatorError>> {
    let sql = "UPDATE operators SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL";
    if tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(how.at)])? == 0 {
        return Err(Failed::Refused(OperatorError::Unknown { name: name.clone() }));
    }
    tx.prepare_cached("DELETE FROM tokens WHERE operator = ?1")?.execute([name.as_str()])?;
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
                       WHERE role = 'admin' AND revoked_at IS NULL AND expires_at > ?2 AND name != ?1";
            let others: i64 =
                tx.prepare_cached(sql)?.query_row(params![name.as_str(), Time(by.at)], |row| row.get(0))?;
            if others == 0 && role_of(tx, &name)? == Some(Role::Admin) {
                return Err(Failed::Refused(OperatorError::LastAdmin { name: name.clone() }));
            }
            let (at, correlation, actor) = (by.at, by.correlation, Some(&by.operator));
            revoke(tx, &name, Revocation { at, correlation, actor })?;
            let sql = "SELECT name, role, revoked_at, NULL AS expires_at FROM operators WHERE name = ?1";
            Ok(tx.prepare_cached(sql)?.query_row([name.as_str()], read)?.view())
        })
        .await
    }

    async fn operators(&self) -> Result<Vec<OperatorRecord>, StoreError> {
        self.read("list operators", |connection| {
            let sql =
                "SELECT name, role, revoked_at, (SELECT max(expires_at) FROM tokens WHERE operator = name)
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
                "SELECT name, role, expires_at, revoked_at FROM tokens JOIN operators ON name = operator
                       WHERE hash = ?1 AND expires_at > ?2 AND revoked_at IS NULL";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row(params![token.as_bytes(), Time(now)], read).optional()
        })
        .await
    }
}
