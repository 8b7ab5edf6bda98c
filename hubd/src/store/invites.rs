//! Invites and their redemption.

use holdfast_protocol::id::{CorrelationId, HostId, HostName, InviteId};
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::certificates::{
    CertificateRecord, certificate, insert_certificate, insert_host, key_is_anothers, name_is_taken,
};
use super::columns::{Id, Text, Time};
use super::events::emit;
use super::idempotency::By;
use super::writer::{Shape, Tx};
use super::{Failed, Store, WriteError};
use crate::authority::{AgentKey, IssueError, Issued};
use crate::domain::enrollment::{self, INVITE_LIFE, InviteError, InviteRecord, Redeem};
use crate::domain::event::{EventKind, NewEvent};

/// An invite to be made.
#[derive(Clone, Debug)]
pub struct NewInvite {
    pub id: InviteId,
    /// What the host will be called.
    pub host_name: HostName,
    /// The hash of its secret.
    pub secret: TokenHash,
}

/// An invite that was made. Its secret is not here; it can be derived from the id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteMade {
    pub id: InviteId,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Why an invite is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteRequestError {
    /// A host of that name is there.
    #[error("a host called {name} is there already: revoke it first, or choose another name")]
    Taken { name: HostName },
    /// The clock is beyond what can be written.
    #[error("the hub's clock is beyond what can be written: set the clock")]
    Time,
}

/// An invite, presented.
pub struct Redemption {
    /// The hash of the secret.
    pub secret: TokenHash,
    /// The applicant's key.
    pub key: AgentKey,
    /// The id of the host, should it become one.
    pub host: HostId,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// Why an invite gives no certificate.
#[derive(Debug, thiserror::Error)]
pub enum RedeemError {
    /// The rules say so.
    #[error(transparent)]
    Invite(#[from] InviteError),
    /// Another host took the name in the meantime.
    #[error("a host called {name} was enrolled in the meantime: ask for an invite with another name")]
    Taken { name: HostName },
    /// The key is another host's.
    #[error(
        "another host has this key, or had it: remove `identity/enrol.key.pem` in the agent's state folder and enrol again, so that the box makes a key of its own"
    )]
    KeyTaken,
    /// The certificate could not be made.
    #[error("the hub could not make the certificate")]
    Issue(#[source] IssueError),
}

struct InviteRow {
    id: Id,
    host_name: HostName,
    host: Option<i64>,
    record: InviteRecord,
}

fn find(tx: &Tx<'_>, secret: TokenHash) -> rusqlite::Result<Option<InviteRow>> {
    let sql = "SELECT invites.id, host_name, expires_at, used_spki, used_host, issued_generation
               FROM invites LEFT JOIN hosts ON number = used_host WHERE secret_hash = ?1";
    tx.prepare_cached(sql)?
        .query_row([secret.as_bytes()], |row| {
            Ok(InviteRow {
                id: row.get(0)?,
                host_name: row.get::<_, Text<_>>(1)?.0,
                host: row.get(4)?,
                record: InviteRecord {
                    expires_at: row.get::<_, Time>(2)?.0,
                    used_by: row.get(3)?,
                    host_generation: row.get::<_, Option<u32>>(5)?.unwrap_or(0),
                },
            })
        })
        .optional()
}

impl Store {
    /// Makes an invite.
    ///
    /// # Errors
    /// [`InviteRequestError`].
    pub async fn create_invite(
        &self,
        by: By,
        invite: NewInvite,
    ) -> Result<InviteMade, WriteError<InviteRequestError>> {
        self.mutate("make an invite", by, move |tx, by| {
            let refuse = |error| Err(Failed::Refused(error));
            let name = invite.host_name.clone();
            if name_is_taken(tx, &name)? {
                return refuse(InviteRequestError::Taken { name });
            }
            let Ok(expires_at) = by.at.checked_add(INVITE_LIFE) else {
                return refuse(InviteRequestError::Time);
            };
            let sql = "INSERT INTO invites (id, secret_hash, host_name, created_by, created_at, expires_at)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            tx.prepare_cached(sql)?.execute(params![
                Id(invite.id.uuid()),
                invite.secret.as_bytes(),
                name.as_str(),
                by.operator.as_str(),
                Time(by.at),
                Time(expires_at)
            ])?;
            let event = NewEvent {
                at: by.at,
                kind: EventKind::InviteCreated,
                host: None,
                actor: Some(by.operator.clone()),
                correlation: by.correlation,
                message: format!("an invite for {name} was made"),
            };
            emit(tx, &event)?;
            Ok(InviteMade { id: invite.id, expires_at })
        })
        .await
    }

    /// Redeems an invite. `issue` makes the certificate, inside the transaction, so that there is at most one.
    ///
    /// # Errors
    /// [`RedeemError`].
    pub async fn redeem(
        &self,
        redemption: Redemption,
        issue: impl FnOnce(HostId, u32, &AgentKey, Timestamp) -> Result<Issued, IssueError> + Send + 'static,
    ) -> Result<CertificateRecord, WriteError<RedeemError>> {
        self.write("redeem an invite", Shape::Several, move |tx| {
            let found = find(tx, redemption.secret)?;
            let key = redemption.key.hash();
            let verdict = enrollment::judge(found.as_ref().map(|found| found.record), key, redemption.at);
            let refuse = |error: InviteError| Err(Failed::Refused(RedeemError::Invite(error)));
            let (verdict, found) = match (verdict, found) {
                (Ok(verdict), Some(found)) => (verdict, found),
                (Err(error), _) => return refuse(error),
                (_, None) => return refuse(InviteError::Unknown),
            };
            let number = match (verdict, found.host) {
                (Redeem::Again, Some(number)) => number,
                _ => first(tx, &redemption, &found, issue)?,
            };
            let given = certificate(tx, number, 1)?;
            given.map(|(record, _)| record).ok_or(Failed::Refused(RedeemError::Invite(InviteError::Used)))
        })
        .await
    }
}

fn first(
    tx: &Tx<'_>,
    redemption: &Redemption,
    found: &InviteRow,
    issue: impl FnOnce(HostId, u32, &AgentKey, Timestamp) -> Result<Issued, IssueError>,
) -> Result<i64, Failed<RedeemError>> {
    let name = &found.host_name;
    if name_is_taken(tx, name)? {
        return Err(Failed::Refused(RedeemError::Taken { name: name.clone() }));
    }
    if key_is_anothers(tx, redemption.key.hash(), None)? {
        return Err(Failed::Refused(RedeemError::KeyTaken));
    }
    let number = insert_host(tx, redemption.host, name, redemption.at)?;
    let issued = issue(redemption.host, 1, &redemption.key, redemption.at)
        .map_err(|error| Failed::Refused(RedeemError::Issue(error)))?;
    insert_certificate(tx, number, 1, redemption.key.hash(), &issued)?;
    let sql =
        "UPDATE invites SET used_at = ?2, used_spki = ?3, used_host = ?4 WHERE id = ?1 AND used_at IS NULL";
    let used = params![found.id, Time(redemption.at), redemption.key.hash(), number];
    if tx.prepare_cached(sql)?.execute(used)? != 1 {
        return Err(Failed::Refused(RedeemError::Invite(InviteError::Used)));
    }
    let event = NewEvent {
        at: redemption.at,
        kind: EventKind::HostEnrolled,
        host: Some(redemption.host),
        actor: None,
        correlation: redemption.correlation,
        message: format!("{name} was enrolled with an invite"),
    };
    emit(tx, &event)?;
    Ok(number)
}
