//! Operators and their tokens. Of a token only the hash is kept.

use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};

use super::columns::{Time, Word};
use super::events::emit;
use super::writer::Shape;
use super::{Failed, Store, StoreError, WriteError};
use crate::domain::event::{EventKind, NewEvent};

/// An operator to be made, or one who gets another token.
#[derive(Clone, Debug)]
pub struct NewOperator {
    /// The name.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// The hash of their token.
    pub token: TokenHash,
    /// When the token ends.
    pub expires_at: Timestamp,
    /// Now.
    pub at: Timestamp,
    /// The wish it belongs to.
    pub correlation: CorrelationId,
}

/// An operator, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRecord {
    /// The name.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// When the last of their tokens ends.
    pub expires_at: Option<Timestamp>,
    /// When they were let go, if they were.
    pub revoked_at: Option<Timestamp>,
}

/// Why an operator is not made or let go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// There is one of that name with another role, or one who was let go.
    #[error("{name} is there already, as {role:?} or let go: choose another name")]
    Taken {
        /// The name.
        name: OperatorName,
        /// Their role.
        role: Role,
    },
    /// There is none.
    #[error("there is no operator {name}: `hubd operator list` shows who there is")]
    Unknown {
        /// The name.
        name: OperatorName,
    },
}

const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Admin => "admin",
    }
}

/// The table's check allows these three alone.
fn read_role(row: &Row<'_>) -> rusqlite::Result<Role> {
    let word: String = row.get("role")?;
    Ok(match word.as_str() {
        "admin" => Role::Admin,
        "operator" => Role::Operator,
        _ => Role::Viewer,
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<OperatorRecord> {
    Ok(OperatorRecord {
        name: row.get::<_, Word<_>>("name")?.0,
        role: read_role(row)?,
        expires_at: row.get::<_, Option<Time>>("expires_at")?.map(|time| time.0),
        revoked_at: row.get::<_, Option<Time>>("revoked_at")?.map(|time| time.0),
    })
}

impl Store {
    /// Makes an operator, or gives one who is there in the same role another token.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub async fn add_operator(&self, new: NewOperator) -> Result<(), WriteError<OperatorError>> {
        self.write("add an operator", Shape::Several, move |tx| {
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
            let message = format!("{} got a token as {}", new.name, role_word(new.role));
            emit(
                tx,
                &NewEvent {
                    at: new.at,
                    kind: EventKind::OperatorAdded,
                    host: None,
                    actor: None,
                    correlation: new.correlation,
                    message,
                },
            )?;
            Ok(())
        })
        .await
    }

    /// Lets an operator go: every token of theirs ends at once.
    ///
    /// # Errors
    /// [`OperatorError::Unknown`].
    pub async fn revoke_operator(
        &self,
        name: OperatorName,
        at: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), WriteError<OperatorError>> {
        self.write("revoke an operator", Shape::Several, move |tx| {
            let sql = "UPDATE operators SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL";
            if tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(at)])? == 0 {
                return Err(Failed::Refused(OperatorError::Unknown { name: name.clone() }));
            }
            tx.prepare_cached("DELETE FROM tokens WHERE operator = ?1")?.execute([name.as_str()])?;
            let message = format!("{name} was let go");
            let kind = EventKind::OperatorRevoked;
            emit(tx, &NewEvent { at, kind, host: None, actor: None, correlation, message })?;
            Ok(())
        })
        .await
    }

    /// Who there is, and was.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn operators(&self) -> Result<Vec<OperatorRecord>, StoreError> {
        self.read("list operators", |connection| {
            let sql =
                "SELECT name, role, revoked_at, (SELECT max(expires_at) FROM tokens WHERE operator = name)
                       AS expires_at FROM operators ORDER BY name";
            connection.prepare_cached(sql)?.query_map([], read)?.collect()
        })
        .await
    }

    /// Whose token this is, if it is good now.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn operator_by_token(
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
