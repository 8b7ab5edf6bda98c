//! Roles and scopes of operators, changed in place.

use async_trait::async_trait;
use holdfast_protocol::access::Grant;
use holdfast_protocol::grant_change::{GrantChanged, grant_tag};
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::operator::Role;
use jiff::Timestamp;
use rusqlite::{Row, params};

use super::access::{read_grant, scope_column};
use super::columns::{Text, Time};
use super::events::emit;
use super::operators::one;
use super::writer::Tx;
use super::{Failed, Sqlite};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{By, GrantChange, GrantChangeError, Grants, WriteError};

fn is_whole_admin(grant: &Grant) -> bool {
    grant.role() == Role::Admin && grant.scope().is_everything()
}

/// Whether somebody else could make people again.
fn has_other_admin(tx: &Tx<'_>, name: &OperatorName, at: Timestamp) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM operators JOIN tokens ON operator = name
               WHERE role = 'admin' AND scope IS NULL AND revoked_at IS NULL AND expires_at > ?2 AND name != ?1";
    tx.prepare_cached(sql)?.exists(params![name.as_str(), Time(at)])
}

/// Ends the machine tokens of a maker that are more than this.
fn end_above(
    tx: &Tx<'_>,
    maker: &OperatorName,
    new: &Grant,
    at: Timestamp,
) -> rusqlite::Result<Vec<OperatorName>> {
    let sql =
        "SELECT name, role, scope FROM machine_tokens WHERE maker = ?1 AND revoked_at IS NULL ORDER BY name";
    let read = |row: &Row<'_>| Ok((row.get::<_, Text<OperatorName>>("name")?.0, read_grant(row)?));
    let all: rusqlite::Result<Vec<(OperatorName, Grant)>> =
        tx.prepare_cached(sql)?.query_map([maker.as_str()], read)?.collect();
    let mut ended = Vec::new();
    for (name, grant) in all? {
        if new.covers(&grant) {
            continue;
        }
        tx.prepare_cached("DELETE FROM machine_secrets WHERE token = ?1")?.execute([name.as_str()])?;
        let sql = "UPDATE machine_tokens SET revoked_at = ?2 WHERE name = ?1";
        tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(at)])?;
        ended.push(name);
    }
    Ok(ended)
}

fn message(name: &OperatorName, before: &Grant, now: &Grant, ended: &[OperatorName]) -> String {
    let names: Vec<&str> = ended.iter().map(OperatorName::as_str).collect();
    let tokens =
        if names.is_empty() { String::new() } else { format!("; ended tokens: {}", names.join(", ")) };
    format!("{name} is {now}, and was {before}{tokens}")
}

#[async_trait]
impl Grants for Sqlite {
    async fn change_grant(
        &self,
        by: By,
        change: GrantChange,
    ) -> Result<GrantChanged, WriteError<GrantChangeError>> {
        self.mutate("change a role and a scope", by, move |tx, by| {
            let GrantChange { name, author, seen, new } = change;
            let there =
                one(tx, &name)?.filter(|there| there.revoked_at.is_none() && author.covers(&there.grant));
            let Some(mut there) = there else { return Err(Failed::Refused(GrantChangeError::Unknown)) };
            let before = there.grant.clone();
            if grant_tag(before.role(), before.scope()) != seen {
                return Err(Failed::Refused(GrantChangeError::Moved { name, current: Box::new(before) }));
            }
            if is_whole_admin(&before) && !is_whole_admin(&new) && !has_other_admin(tx, &name, by.at)? {
                return Err(Failed::Refused(GrantChangeError::LastAdmin { name }));
            }
            let mut ended_tokens = Vec::new();
            if new != before {
                let sql = "UPDATE operators SET role = ?2, scope = ?3 WHERE name = ?1";
                let scope = scope_column(new.scope())?;
                tx.prepare_cached(sql)?.execute(params![name.as_str(), new.role().as_str(), scope])?;
                ended_tokens = end_above(tx, &name, &new, by.at)?;
                let message = message(&name, &before, &new, &ended_tokens);
                let (at, actor, correlation) = (by.at, Some(by.operator.clone()), by.correlation);
                let kind = EventKind::OperatorChanged;
                emit(tx, &NewEvent { at, kind, host: None, actor, correlation, message })?;
            }
            there.grant = new;
            Ok(GrantChanged { operator: there.view(), ended_tokens })
        })
        .await
    }
}
