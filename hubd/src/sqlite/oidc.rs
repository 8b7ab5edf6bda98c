//! Links of operators with persons of a provider, and sign-ins by them.

use async_trait::async_trait;
use holdfast_protocol::access::Grant;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::oidc::{LinkOrigin, ProviderLink, ProviderPerson};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::access::{read_grant, scope_column};
use super::columns::{Text, Time};
use super::events::emit;
use super::machine_tokens::{end_of_maker, is_machine};
use super::sessions::{open, record};
use super::settled::Scope;
use super::writer::{Shape, Tx};
use super::{Failed, Sqlite, operators};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::oidc::provider::GroupOutcome;
use crate::store::{
    By, NewOidcSignIn, NewProviderLink, OidcSignInError, ProviderLinkError, ProviderLinks, SessionRecord,
    SignInChange, StoreError, WriteError,
};

fn read(row: &Row<'_>) -> rusqlite::Result<ProviderLink> {
    let (subject, claim): (Option<String>, Option<String>) = (row.get("subject")?, row.get("claim")?);
    let person = match subject {
        Some(subject) => ProviderPerson::Subject { subject },
        // The table's check keeps one of the two.
        None => ProviderPerson::Claim { value: claim.unwrap_or_default() },
    };
    let origin: String = row.get("origin")?;
    Ok(ProviderLink {
        operator: row.get::<_, Text<_>>("operator")?.0,
        issuer: row.get("issuer")?,
        person,
        origin: if origin == "group" { LinkOrigin::Group } else { LinkOrigin::Admin },
        linked_at: row.get::<_, Time>("linked_at")?.0,
    })
}

fn one(connection: &Connection, name: &OperatorName) -> rusqlite::Result<Option<ProviderLink>> {
    let sql = "SELECT l.* FROM provider_links AS l JOIN operators ON name = operator
               WHERE operator = ?1 AND revoked_at IS NULL";
    connection.prepare_cached(sql)?.query_row([name.as_str()], read).optional()
}

/// The link that a person is of, with what its operator may do, if they were not removed.
fn of_person(tx: &Tx<'_>, new: &NewOidcSignIn) -> rusqlite::Result<Option<(ProviderLink, Option<Grant>)>> {
    let sql = "SELECT l.*, o.role, o.scope, o.revoked_at FROM provider_links AS l JOIN operators AS o ON o.name = l.operator
               WHERE issuer = ?1 AND (subject = ?2 OR claim = ?3) ORDER BY subject IS NULL LIMIT 1";
    let read = |row: &Row<'_>| {
        let is_removed = row.get::<_, Option<Time>>("revoked_at")?.is_some();
        let grant = if is_removed { None } else { Some(read_grant(row)?) };
        Ok((read(row)?, grant))
    };
    let identity = &new.identity;
    let key = params![identity.issuer, identity.subject, identity.person];
    tx.prepare_cached(sql)?.query_row(key, read).optional()
}

fn event(new: &NewOidcSignIn, name: &OperatorName, kind: EventKind, message: String) -> NewEvent {
    let (at, correlation, actor) = (new.session.at, new.correlation, Some(name.clone()));
    NewEvent { at, kind, host: None, actor, correlation, message }
}

/// Who was linked, made and changed as the provider says.
fn operator_of(tx: &Tx<'_>, new: &NewOidcSignIn) -> Result<OperatorName, Failed<OidcSignInError>> {
    let subject = new.identity.subject.clone();
    let refused = |error| Err(Failed::Refused(error));
    match (of_person(tx, new)?, &new.groups) {
        (Some((link, None)), _) => refused(OidcSignInError::Removed { name: link.operator }),
        (Some((link, Some(_))), GroupOutcome::Nothing) if link.origin == LinkOrigin::Group => {
            refused(OidcSignInError::NoGroup { name: link.operator })
        }
        (Some((link, Some(before))), GroupOutcome::May { grant, .. })
            if link.origin == LinkOrigin::Group && before != *grant =>
        {
            change_grant(tx, new, &link.operator, (&before, grant))?;
            Ok(link.operator)
        }
        (Some((link, Some(_))), _) => {
            if let ProviderPerson::Claim { value } = &link.person {
                keep_subject(tx, new, &link.operator, value)?;
            }
            Ok(link.operator)
        }
        (None, GroupOutcome::May { name: None, .. }) => refused(OidcSignInError::Unnamed),
        (None, GroupOutcome::May { grant, name: Some(name) }) => {
            if operators::is_taken(tx, name)? || is_machine(tx, name)? {
                return refused(OidcSignInError::Taken { name: name.clone(), subject });
            }
            make(tx, new, name, grant)?;
            Ok(name.clone())
        }
        (None, GroupOutcome::Nothing) => refused(OidcSignInError::Unlinked { subject }),
    }
}

fn keep_subject(
    tx: &Tx<'_>,
    new: &NewOidcSignIn,
    name: &OperatorName,
    claim: &str,
) -> Result<(), Failed<OidcSignInError>> {
    let sql = "UPDATE provider_links SET subject = ?2, claim = NULL WHERE operator = ?1";
    tx.prepare_cached(sql)?.execute(params![name.as_str(), new.identity.subject])?;
    let message = format!(
        "{name} is the subject {} of {} from now on: the first sign-in as {claim}",
        new.identity.subject, new.provider
    );
    emit(tx, &event(new, name, EventKind::ProviderLinked, message))?;
    Ok(())
}

fn make(
    tx: &Tx<'_>,
    new: &NewOidcSignIn,
    name: &OperatorName,
    grant: &Grant,
) -> Result<(), Failed<OidcSignInError>> {
    let sql = "INSERT INTO operators (name, role, scope, created_at) VALUES (?1, ?2, ?3, ?4)";
    let (role, scope) = (grant.role().as_str(), scope_column(grant.scope())?);
    tx.prepare_cached(sql)?.execute(params![name.as_str(), role, scope, Time(new.session.at)])?;
    let sql = "INSERT INTO provider_links (operator, issuer, subject, origin, linked_at) VALUES (?1, ?2, ?3, 'group', ?4)";
    let (issuer, subject) = (&new.identity.issuer, &new.identity.subject);
    tx.prepare_cached(sql)?.execute(params![name.as_str(), issuer, subject, Time(new.session.at)])?;
    let message =
        format!("{name} was made as {grant} by a group of {}, as its subject {subject}", new.provider);
    emit(tx, &event(new, name, EventKind::OperatorAdded, message))?;
    Ok(())
}

fn change_grant(
    tx: &Tx<'_>,
    new: &NewOidcSignIn,
    name: &OperatorName,
    (before, after): (&Grant, &Grant),
) -> Result<(), Failed<OidcSignInError>> {
    let sql = "UPDATE operators SET role = ?2, scope = ?3 WHERE name = ?1";
    let (role, scope) = (after.role().as_str(), scope_column(after.scope())?);
    tx.prepare_cached(sql)?.execute(params![name.as_str(), role, scope])?;
    if !after.covers(before) {
        end_of_maker(tx, name, new.session.at)?;
    }
    let message = format!("{name} is {after} now and no more {before}, by a group of {}", new.provider);
    emit(tx, &event(new, name, EventKind::ProviderGrantChanged, message))?;
    Ok(())
}

fn link(
    tx: &Tx<'_>,
    by: &SignInChange,
    new: &NewProviderLink,
) -> Result<ProviderLink, Failed<ProviderLinkError>> {
    let name = &new.operator;
    if operators::role_of(tx, name)?.is_none() {
        return Err(Failed::Refused(ProviderLinkError::Unknown { name: name.clone() }));
    }
    if one(tx, name)?.is_some_and(|link| link.origin == LinkOrigin::Group) {
        return Err(Failed::Refused(ProviderLinkError::OfGroup { name: name.clone() }));
    }
    let (subject, claim) = match &new.person {
        ProviderPerson::Subject { subject } => (Some(subject), None),
        ProviderPerson::Claim { value } => (None, Some(value)),
    };
    let sql = "SELECT operator, revoked_at FROM provider_links JOIN operators ON name = operator
               WHERE issuer = ?1 AND operator != ?2 AND (subject = ?3 OR claim = ?4)";
    let read = |row: &Row<'_>| {
        let is_removed = row.get::<_, Option<Time>>("revoked_at")?.is_some();
        Ok((row.get::<_, Text<OperatorName>>("operator")?.0, is_removed))
    };
    let key = params![new.issuer, name.as_str(), subject, claim];
    match tx.prepare_cached(sql)?.query_row(key, read).optional()? {
        Some((other, false)) => return Err(Failed::Refused(ProviderLinkError::Taken { name: other })),
        Some((removed, true)) => {
            let sql = "DELETE FROM provider_links WHERE operator = ?1";
            tx.prepare_cached(sql)?.execute([removed.as_str()])?;
        }
        None => {}
    }
    let sql = "INSERT INTO provider_links (operator, issuer, subject, claim, origin, linked_at) VALUES (?1, ?2, ?3, ?4, 'admin', ?5)
               ON CONFLICT (operator) DO UPDATE SET issuer = excluded.issuer, subject = excluded.subject,
                   claim = excluded.claim, linked_at = excluded.linked_at";
    tx.prepare_cached(sql)?.execute(params![name.as_str(), new.issuer, subject, claim, Time(by.at)])?;
    let who = match &new.person {
        ProviderPerson::Subject { subject } => format!("the subject {subject}"),
        ProviderPerson::Claim { value } => format!("the first person who signs in as {value}"),
    };
    let message = format!("{name} may sign in by {}, as {who}", new.issuer);
    emit(tx, &change_event(by, EventKind::ProviderLinked, message))?;
    one(tx, name)?.ok_or_else(|| Failed::Refused(ProviderLinkError::NoLink { name: name.clone() }))
}

fn change_event(by: &SignInChange, kind: EventKind, message: String) -> NewEvent {
    let (at, correlation, actor) = (by.at, by.correlation, by.actor.clone());
    NewEvent { at, kind, host: None, actor, correlation, message }
}

fn unlink(tx: &Tx<'_>, by: &SignInChange) -> Result<ProviderLink, Failed<ProviderLinkError>> {
    let name = &by.operator;
    let missing = || Failed::Refused(ProviderLinkError::NoLink { name: name.clone() });
    let link = one(tx, name)?.ok_or_else(missing)?;
    tx.prepare_cached("DELETE FROM provider_links WHERE operator = ?1")?.execute([name.as_str()])?;
    let sql = "UPDATE sessions SET idle_ends_at = ?2, ends_at = ?2 WHERE operator = ?1 AND ends_at > ?2";
    tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(by.at)])?;
    let message = format!("{name} may not sign in by {} any more; their sessions ended", link.issuer);
    emit(tx, &change_event(by, EventKind::ProviderUnlinked, message))?;
    Ok(link)
}

#[async_trait]
impl ProviderLinks for Sqlite {
    async fn sign_in_by_provider(
        &self,
        new: NewOidcSignIn,
    ) -> Result<SessionRecord, WriteError<OidcSignInError>> {
        self.write_within("sign an operator in by the provider", Shape::Several, Scope::NoHost, move |tx| {
            let name = operator_of(tx, &new)?;
            open(tx, &new.session, &name, new.session.kind)?;
            let message = format!("{name} signed in from {} by {}", new.session.address, new.provider);
            emit(tx, &event(&new, &name, EventKind::SignedIn, message))?;
            let opened = record(tx, new.session.token, new.session.at)?;
            opened.ok_or(Failed::Refused(OidcSignInError::Removed { name }))
        })
        .await
    }

    async fn link_provider(
        &self,
        by: By,
        new: NewProviderLink,
    ) -> Result<ProviderLink, WriteError<ProviderLinkError>> {
        self.mutate("link an operator with the provider", by, move |tx, by| {
            link(tx, &SignInChange::by(by, new.operator.clone()), &new)
        })
        .await
    }

    async fn add_provider_link(
        &self,
        by: SignInChange,
        new: NewProviderLink,
    ) -> Result<ProviderLink, WriteError<ProviderLinkError>> {
        self.write_within("link an operator with the provider", Shape::Several, Scope::NoHost, move |tx| {
            link(tx, &by, &new)
        })
        .await
    }

    async fn unlink_provider(
        &self,
        by: By,
        name: OperatorName,
    ) -> Result<ProviderLink, WriteError<ProviderLinkError>> {
        self.mutate("end an operator's link with the provider", by, move |tx, by| {
            unlink(tx, &SignInChange::by(by, name))
        })
        .await
    }

    async fn provider_link(&self, name: OperatorName) -> Result<Option<ProviderLink>, StoreError> {
        self.read("read an operator's link with the provider", move |connection| one(connection, &name)).await
    }
}
