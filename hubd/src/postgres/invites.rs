//! Invites and their redemption.

use async_trait::async_trait;
use holdfast_protocol::id::HostName;
use holdfast_protocol::secret::TokenHash;

use super::certificates::{certificate, insert_certificate, insert_host, key_is_anothers, name_is_taken};
use super::columns::{Id, Text, Time};
use super::events::emit;
use super::sql::{self, OptionalExtension as _, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::enrollment::{self, INVITE_LIFE, InviteError, InviteRecord, Redeem};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{
    By, CertificateRecord, InviteMade, InviteRequestError, Invites, Issue, NewInvite, RedeemError,
    Redemption, WriteError,
};

struct InviteRow {
    id: Id,
    host_name: HostName,
    host: Option<i64>,
    record: InviteRecord,
}

fn find(tx: &Tx<'_>, secret: TokenHash) -> sql::Result<Option<InviteRow>> {
    let sql = "SELECT invites.id, host_name, expires_at, used_spki, used_host, issued_generation
               FROM invites LEFT JOIN hosts ON number = used_host WHERE secret_hash = $1";
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

#[async_trait]
impl Invites for Postgres {
    async fn create_invite(
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
                       VALUES ($1, $2, $3, $4, $5, $6)";
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

    async fn redeem(
        &self,
        redemption: Redemption,
        issue: Issue,
    ) -> Result<CertificateRecord, WriteError<RedeemError>> {
        self.write("redeem an invite", move |tx| {
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
    issue: Issue,
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
        "UPDATE invites SET used_at = $2, used_spki = $3, used_host = $4 WHERE id = $1 AND used_at IS NULL";
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
