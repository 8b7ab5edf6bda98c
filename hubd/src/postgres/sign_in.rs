//! Passwords, authenticators and sign-in links of operators.

use async_trait::async_trait;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::secret::TokenHash;
use holdfast_protocol::sign_in::{SessionKind, SignInState};
use uuid::Uuid;

use super::access::read_grant;
use super::columns::{Text, Time};
use super::events::emit;
use super::sessions::{kind_word, open, read_kind, record};
use super::sql::{self, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres, operators};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::sign_in::totp::Step;
use crate::store::{
    Authenticator, By, ConfirmedAuthenticator, Credentials, NewLinkSession, NewPassword, NewSession,
    NewSignIn, NewSignInLink, SessionRecord, SignInChange, SignInError, SignInLinkMade, SignIns, StoreError,
    UsedFactor, WriteError,
};

fn credentials(row: &Row<'_>) -> sql::Result<Credentials> {
    let sealed: Option<Vec<u8>> = row.get("sealed")?;
    let last = row.get::<_, Option<i64>>("last_step")?.map(Step);
    Ok(Credentials {
        role: read_grant(row)?.role(),
        password: row.get("hash")?,
        authenticator: sealed.map(|sealed| Authenticator { sealed, last }),
        pending: row.get("pending")?,
        state: SignInState {
            password_set_at: row.get::<_, Option<Time>>("set_at")?.map(|time| time.0),
            totp_since: row.get::<_, Option<Time>>("since")?.map(|time| time.0),
            recovery_codes: row.get("codes")?,
        },
    })
}

/// The operator must be there.
fn known(tx: &Tx<'_>, name: &OperatorName) -> Result<(), Failed<SignInError>> {
    match operators::role_of(tx, name)? {
        Some(_) => Ok(()),
        None => Err(Failed::Refused(SignInError::Unknown { name: name.clone() })),
    }
}

/// The stored hash is still the one that was checked.
fn unchanged(tx: &Tx<'_>, name: &OperatorName, checked: &str) -> Result<(), Failed<SignInError>> {
    let sql = "SELECT 1 FROM passwords JOIN operators ON name = operator
               WHERE operator = $1 AND hash = $2 AND revoked_at IS NULL";
    match tx.prepare_cached(sql)?.exists(params![name.as_str(), checked])? {
        true => Ok(()),
        false => Err(Failed::Refused(SignInError::Refused)),
    }
}

/// Each step and each recovery code is used once.
fn use_up(tx: &Tx<'_>, name: &OperatorName, factor: UsedFactor) -> Result<(), Failed<SignInError>> {
    let used = match factor {
        UsedFactor::None => {
            let sql = "SELECT count(*) = 0 FROM authenticators WHERE operator = $1 AND sealed IS NOT NULL";
            tx.prepare_cached(sql)?.query_row([name.as_str()], |row| row.get::<_, bool>(0))?
        }
        UsedFactor::Step(step) => {
            let sql = "UPDATE authenticators SET last_step = $2
                       WHERE operator = $1 AND sealed IS NOT NULL AND (last_step IS NULL OR last_step < $2)";
            tx.prepare_cached(sql)?.execute(params![name.as_str(), step.0])? == 1
        }
        UsedFactor::RecoveryCode(hash) => {
            let sql = "DELETE FROM recovery_codes WHERE operator = $1 AND hash = $2";
            tx.prepare_cached(sql)?.execute(params![name.as_str(), hash.as_bytes()])? == 1
        }
    };
    if used { Ok(()) } else { Err(Failed::Refused(SignInError::Refused)) }
}

fn signed_in(
    tx: &Tx<'_>,
    new: &NewSession,
    (name, kind): (&OperatorName, SessionKind),
    how: &str,
    correlation: holdfast_protocol::id::CorrelationId,
) -> Result<SessionRecord, Failed<SignInError>> {
    open(tx, new, name, kind)?;
    let limited = match kind {
        SessionKind::Full => "",
        SessionKind::Setup => ", to set up how they sign in",
    };
    let event = NewEvent {
        at: new.at,
        kind: EventKind::SignedIn,
        host: None,
        actor: Some(name.clone()),
        correlation,
        message: format!("{name} signed in from {} {how}{limited}", new.address),
    };
    emit(tx, &event)?;
    record(tx, new.token, new.at)?.ok_or(Failed::Refused(SignInError::Refused))
}

fn change_event(by: &SignInChange, kind: EventKind, message: String) -> NewEvent {
    let (at, correlation, actor) = (by.at, by.correlation, by.actor.clone());
    NewEvent { at, kind, host: None, actor, correlation, message }
}

fn add_link(tx: &Tx<'_>, by: &SignInChange, new: &NewSignInLink) -> Result<(), Failed<SignInError>> {
    known(tx, &new.operator)?;
    let name = new.operator.as_str();
    // One at a time: an earlier one that was lost on its way ends.
    tx.prepare_cached("DELETE FROM sign_in_links WHERE operator = $1")?.execute([name])?;
    let sql = "INSERT INTO sign_in_links (hash, operator, kind, expires_at) VALUES ($1, $2, $3, $4)";
    let row = params![new.token.as_bytes(), name, kind_word(new.kind), Time(new.expires_at)];
    tx.prepare_cached(sql)?.execute(row)?;
    let message = format!("a sign-in link for {name} was made, valid until {}", new.expires_at);
    emit(tx, &change_event(by, EventKind::SignInLinkMade, message))?;
    Ok(())
}

fn set_password(tx: &Tx<'_>, new: &NewPassword) -> Result<(), Failed<SignInError>> {
    let name = &new.by.operator;
    known(tx, name)?;
    if let Some(checked) = &new.checked {
        unchanged(tx, name, checked)?;
    }
    let sql = "INSERT INTO passwords (operator, hash, set_at) VALUES ($1, $2, $3)
               ON CONFLICT (operator) DO UPDATE SET hash = excluded.hash, set_at = excluded.set_at";
    tx.prepare_cached(sql)?.execute(params![name.as_str(), new.hash, Time(new.by.at)])?;
    let sql = "UPDATE sessions SET idle_ends_at = $2, ends_at = $2
               WHERE operator = $1 AND ends_at > $2 AND ($3::bytea IS NULL OR hash != $3)";
    let keep = new.keep.as_ref().map(|token| token.as_bytes().as_slice());
    tx.prepare_cached(sql)?.execute(params![name.as_str(), Time(new.by.at), keep])?;
    tx.prepare_cached("DELETE FROM sign_in_links WHERE operator = $1")?.execute([name.as_str()])?;
    let message = format!("the password of {name} was set; all their other sessions ended");
    emit(tx, &change_event(&new.by, EventKind::PasswordSet, message))?;
    Ok(())
}

fn confirm(tx: &Tx<'_>, new: &ConfirmedAuthenticator) -> Result<(), Failed<SignInError>> {
    let name = &new.by.operator;
    let sql = "UPDATE authenticators SET sealed = pending, pending = NULL, since = $3, last_step = $4
               WHERE operator = $1 AND pending = $2";
    let row = params![name.as_str(), new.sealed, Time(new.by.at), new.step.0];
    if tx.prepare_cached(sql)?.execute(row)? == 0 {
        return Err(Failed::Refused(SignInError::NothingPending));
    }
    tx.prepare_cached("DELETE FROM recovery_codes WHERE operator = $1")?.execute([name.as_str()])?;
    for code in &new.codes {
        let sql = "INSERT INTO recovery_codes (operator, hash) VALUES ($1, $2)";
        tx.prepare_cached(sql)?.execute(params![name.as_str(), code.as_bytes()])?;
    }
    let message = format!("{name} put an authenticator into use, with new recovery codes");
    emit(tx, &change_event(&new.by, EventKind::AuthenticatorSet, message))?;
    Ok(())
}

#[async_trait]
impl SignIns for Postgres {
    async fn credentials(&self, name: OperatorName) -> Result<Option<Credentials>, StoreError> {
        self.read("look up how an operator signs in", move |connection| {
            let sql = "SELECT o.role, o.scope, p.hash, p.set_at, a.sealed, a.since, a.last_step, a.pending,
                           (SELECT count(*) FROM recovery_codes AS r WHERE r.operator = o.name) AS codes
                       FROM operators AS o LEFT JOIN passwords AS p ON p.operator = o.name
                       LEFT JOIN authenticators AS a ON a.operator = o.name
                       WHERE o.name = $1 AND o.revoked_at IS NULL";
            connection.prepare_cached(sql)?.query_row([name.as_str()], credentials).optional()
        })
        .await
    }

    async fn sign_in(&self, new: NewSignIn) -> Result<SessionRecord, WriteError<SignInError>> {
        self.write("sign an operator in", move |tx| {
            let Some(name) = &new.session.operator else {
                return Err(Failed::Refused(SignInError::Refused));
            };
            unchanged(tx, name, &new.password)?;
            use_up(tx, name, new.factor)?;
            let how = match new.factor {
                UsedFactor::None => "by password",
                UsedFactor::Step(_) => "by password and authenticator",
                UsedFactor::RecoveryCode(_) => "by password and a recovery code",
            };
            signed_in(tx, &new.session, (name, new.session.kind), how, new.correlation)
        })
        .await
    }

    async fn sign_in_by_link(
        &self,
        link: TokenHash,
        new: NewLinkSession,
    ) -> Result<SessionRecord, WriteError<SignInError>> {
        self.write("sign an operator in by a link", move |tx| {
            let sql =
                "DELETE FROM sign_in_links WHERE hash = $1 AND expires_at > $2 RETURNING operator, kind";
            let read = |row: &Row<'_>| Ok((row.get::<_, Text<OperatorName>>("operator")?.0, read_kind(row)?));
            let used = tx
                .prepare_cached(sql)?
                .query_row(params![link.as_bytes(), Time(new.full.at)], read)
                .optional()?;
            let Some((name, kind)) = used else { return Err(Failed::Refused(SignInError::Link)) };
            if operators::role_of::<SignInError>(tx, &name)?.is_none() {
                return Err(Failed::Refused(SignInError::Link));
            }
            let session = match kind {
                SessionKind::Full => &new.full,
                SessionKind::Setup => &new.setup,
            };
            signed_in(tx, session, (&name, kind), "by a link", new.correlation)
        })
        .await
    }

    async fn add_sign_in_link(
        &self,
        by: SignInChange,
        new: NewSignInLink,
    ) -> Result<(), WriteError<SignInError>> {
        self.write("make a sign-in link", move |tx| add_link(tx, &by, &new)).await
    }

    async fn make_sign_in_link(
        &self,
        by: By,
        new: NewSignInLink,
        number: Uuid,
    ) -> Result<SignInLinkMade, WriteError<SignInError>> {
        self.mutate("make a sign-in link", by, move |tx, by| {
            let (operator, actor) = (new.operator.clone(), Some(by.operator.clone()));
            let change = SignInChange { operator, actor, at: by.at, correlation: by.correlation };
            add_link(tx, &change, &new)?;
            Ok(SignInLinkMade { number, expires_at: new.expires_at })
        })
        .await
    }

    async fn set_password(&self, new: NewPassword) -> Result<(), WriteError<SignInError>> {
        self.write("set a password", move |tx| set_password(tx, &new)).await
    }

    async fn rehash_password(
        &self,
        name: OperatorName,
        before: String,
        hash: String,
    ) -> Result<(), StoreError> {
        let written = self.write("hash a password anew", move |tx| {
            let sql = "UPDATE passwords SET hash = $3 WHERE operator = $1 AND hash = $2";
            tx.prepare_cached(sql)?.execute(params![name.as_str(), before, hash])?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }

    async fn begin_authenticator(
        &self,
        name: OperatorName,
        sealed: Vec<u8>,
    ) -> Result<(), WriteError<SignInError>> {
        self.write("begin an authenticator", move |tx| {
            known(tx, &name)?;
            let sql = "INSERT INTO authenticators (operator, pending) VALUES ($1, $2)
                       ON CONFLICT (operator) DO UPDATE SET pending = excluded.pending";
            tx.prepare_cached(sql)?.execute(params![name.as_str(), sealed])?;
            Ok(())
        })
        .await
    }

    async fn confirm_authenticator(
        &self,
        confirmed: ConfirmedAuthenticator,
    ) -> Result<(), WriteError<SignInError>> {
        self.write("confirm an authenticator", move |tx| confirm(tx, &confirmed)).await
    }

    async fn record_refusals(&self, events: Vec<NewEvent>) -> Result<(), StoreError> {
        let written = self.write("note refused sign-ins", move |tx| {
            for event in &events {
                emit(tx, event)?;
            }
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }
}
