//! Restore invites and their redemption by a replacement host.
//!
//! Redeemed once, in one transaction: the certificate, the end of the old identity, the hand-over, the read of the wrapped
//! key with its notice. A repeat with the same key is the same answer, and one more read.

use async_trait::async_trait;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::escrow::EscrowFound;
use holdfast_protocol::escrow::notice::Reader;
use holdfast_protocol::id::HostId;
use holdfast_protocol::job::{Act, Payload, SignedJob};
use holdfast_protocol::operator::EpochEnd;
use holdfast_protocol::report::Sections;
use holdfast_protocol::restore::{HandOver, Replacement};
use holdfast_protocol::secret::TokenHash;

use super::certificates::{certificate, insert_certificate, key_is_anothers};
use super::columns::{Id, Time};
use super::epochs::close_epoch;
use super::escrow::{EscrowRead, Owner, give_out};
use super::events::emit;
use super::host_row;
use super::sql::{self, OptionalExtension as _, params};
use super::writer::Tx;
use super::{Failed, Postgres, image_approvals};
use crate::authority::AgentKey;
use crate::domain::enrollment::{self, INVITE_LIFE, InviteError, InviteRecord, Redeem};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::identity::Presented;
use crate::store::{
    By, CertificateRecord, EscrowError, EscrowSelector, InviteMade, Issue, NewRestore, Redeemed,
    RestoreError, RestoreRedemption, RestoreRequestError, Restores, StoreError, WriteError,
};

struct RestoreRow {
    id: Id,
    host: i64,
    order: String,
    status: String,
    issued: u32,
    withdrawn: Option<i64>,
    record: InviteRecord,
}

impl RestoreRow {
    /// Whether the order lets this key take the place.
    fn names(&self, key: &AgentKey) -> bool {
        let payload = SignedJob::parse(self.order.as_bytes()).ok();
        let payload = payload.and_then(|signed| Payload::parse(&signed.payload).ok());
        matches!(payload.map(|payload| payload.act), Some(Act::RestoreHost(args)) if args.new_key == Some(key.fingerprint()))
    }
}

fn find(tx: &Tx<'_>, secret: TokenHash) -> sql::Result<Option<RestoreRow>> {
    let sql =
        "SELECT restores.id, host, signed_job, status, issued_generation, expires_at, used_spki, generation, withdrawn_at
               FROM restores JOIN hosts ON number = host WHERE secret_hash = $1";
    tx.prepare_cached(sql)?
        .query_row([secret.as_bytes()], |row| {
            let (issued, given): (u32, Option<u32>) = (row.get(4)?, row.get(7)?);
            Ok(RestoreRow {
                id: row.get(0)?,
                host: row.get(1)?,
                order: row.get(2)?,
                status: row.get(3)?,
                issued,
                withdrawn: row.get(8)?,
                record: InviteRecord {
                    expires_at: row.get::<_, Time>(5)?.0,
                    used_by: row.get(6)?,
                    // Counted from the certificate that this invite gave: later ones show that its machine has moved
                    // on.
                    host_generation: given.map_or(0, |given| issued - given + 1),
                },
            })
        })
        .optional()
}

#[async_trait]
impl Restores for Postgres {
    async fn create_restore(
        &self,
        by: By,
        restore: NewRestore,
    ) -> Result<Option<InviteMade>, WriteError<RestoreRequestError>> {
        self.mutate("make a restore invite", by, move |tx, by| {
            let Some(record) = host_row::find(tx, &restore.host)? else { return Ok(None) };
            let refuse = |error| Err(Failed::Refused(error));
            let here = record.view.id;
            if restore.ordered != here {
                return refuse(RestoreRequestError::Other { ordered: restore.ordered, here });
            }
            if record.view.state == holdfast_protocol::operator::HostState::Revoked {
                return refuse(RestoreRequestError::Revoked);
            }
            let Ok(expires_at) = by.at.checked_add(INVITE_LIFE) else {
                return refuse(RestoreRequestError::Time);
            };
            let sql =
                "INSERT INTO restores (id, secret_hash, host, signed_job, created_by, created_at, expires_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)";
            tx.prepare_cached(sql)?.execute(params![
                Id(restore.id.uuid()),
                restore.secret.as_bytes(),
                record.number,
                restore.order,
                by.operator.as_str(),
                Time(by.at),
                Time(expires_at)
            ])?;
            let event = NewEvent {
                at: by.at,
                kind: EventKind::RestoreInvited,
                host: Some(here),
                actor: Some(by.operator.clone()),
                correlation: by.correlation,
                message: format!("an invite to take the place of {} was made", record.view.name),
            };
            emit(tx, &event)?;
            Ok(Some(InviteMade { id: restore.id, expires_at }))
        })
        .await
    }

    async fn redeem_restore(
        &self,
        redemption: RestoreRedemption,
        issue: Issue,
    ) -> Result<Redeemed, WriteError<RestoreError>> {
        self.write("redeem a restore invite", move |tx| {
            let refuse = |error: RestoreError| Err(Failed::Refused(error));
            let Some(found) = find(tx, redemption.secret)? else {
                return refuse(InviteError::Unknown.into());
            };
            let key = redemption.key.hash();
            let generation = match enrollment::judge(Some(found.record), key, redemption.at) {
                Err(error) => return refuse(error.into()),
                Ok(_) if found.status == "revoked" => return refuse(RestoreError::Revoked),
                Ok(_) if found.withdrawn.is_some() => return refuse(RestoreError::Withdrawn),
                Ok(_) if !found.names(&redemption.key) => return refuse(RestoreError::OtherKey),
                Ok(Redeem::Again) => found.issued,
                Ok(Redeem::First) => first(tx, &redemption, &found, issue)?,
            };
            let given = certificate(tx, found.host, generation)?;
            let Some((certificate, _)) = given else { return refuse(InviteError::Used.into()) };
            let handover = handover(tx, &redemption, found.host, &certificate)?;
            Ok(Redeemed { certificate, order: found.order, handover })
        })
        .await
    }

    async fn replacement(&self, presented: Presented) -> Result<Option<Replacement>, StoreError> {
        self.read("look who took a box's place", move |connection| {
            let sql = "SELECT signed_job, withdrawal FROM restores JOIN hosts ON number = host
                       WHERE hosts.id = $1 AND generation > $2 ORDER BY generation LIMIT 1";
            connection
                .prepare_cached(sql)?
                .query_row(params![Id(presented.host.uuid()), presented.generation], |row| {
                    Ok(Replacement { order: row.get(0)?, withdrawal: row.get(1)? })
                })
                .optional()
        })
        .await
    }
}

/// Gives the place to the new machine. From its certificate on, older certificates belong to the lost machine. The lost
/// machine's reports do not count for the new one.
fn first(
    tx: &Tx<'_>,
    redemption: &RestoreRedemption,
    found: &RestoreRow,
    issue: Issue,
) -> Result<u32, Failed<RestoreError>> {
    let refuse = Failed::Refused;
    let key = redemption.key.hash();
    if key_is_anothers(tx, key, None)? {
        return Err(refuse(RestoreError::KeyTaken));
    }
    let generation = found.issued.checked_add(1).ok_or(refuse(RestoreError::Exhausted))?;
    let (host, name): (Id, String) = tx
        .prepare_cached("SELECT id, name FROM hosts WHERE number = $1")?
        .query_row([found.host], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let host = HostId::new(host.0);
    let issued = issue(host, generation, &redemption.key, redemption.at)
        .map_err(|error| refuse(RestoreError::Issue(error)))?;
    insert_certificate(tx, found.host, generation, key, &issued)?;
    close_epoch(tx, found.host, generation, EpochEnd::Restored, redemption.at)?;
    let sql =
        "UPDATE hosts SET status = 'active', liveness = 'new', restored_from = $2, used_generation = $2,
                   run_started_at = NULL, sequence = NULL, farewell_at = NULL, held = 0, refused = NULL
               WHERE number = $1";
    tx.prepare_cached(sql)?.execute(params![found.host, generation])?;
    image_approvals::queue_for_host(tx, found.host, redemption.at)?;
    let sql =
        "UPDATE restores SET used_at = $2, used_spki = $3, generation = $4 WHERE id = $1 AND used_at IS NULL";
    let used = params![found.id, Time(redemption.at), key, generation];
    if tx.prepare_cached(sql)?.execute(used)? != 1 {
        return Err(refuse(InviteError::Used.into()));
    }
    let event = NewEvent {
        at: redemption.at,
        kind: EventKind::HostRestored,
        host: Some(host),
        actor: None,
        correlation: redemption.correlation,
        message: format!("another machine replaced {name}; the old one is ordered to stop"),
    };
    emit(tx, &event)?;
    Ok(generation)
}

fn handover(
    tx: &Tx<'_>,
    redemption: &RestoreRedemption,
    number: i64,
    certificate: &CertificateRecord,
) -> Result<HandOver, Failed<RestoreError>> {
    let sql =
        "SELECT document FROM desired JOIN hosts ON number = host AND generation = wanted WHERE host = $1";
    let desired = tx.prepare_cached(sql)?.query_row([number], |row| row.get(0)).optional()?;
    let all = host_row::sections(host_row::report(tx, number)?)?;
    let sections =
        Sections { host: all.host, guests: all.guests, storage: all.storage, ..Sections::default() };
    let (escrows, withheld) = match wrapped(tx, redemption, number, certificate)? {
        Ok(found) => (found, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    Ok(HandOver { desired, sections, escrows, withheld })
}

/// The wrapped keys, of each key the one in force, or why they are not given. That alone holds up nothing else.
fn wrapped(
    tx: &Tx<'_>,
    redemption: &RestoreRedemption,
    number: i64,
    certificate: &CertificateRecord,
) -> Result<Result<Vec<EscrowFound>, ErrorBody>, Failed<RestoreError>> {
    let reading = EscrowRead {
        owner: Owner { number, id: certificate.host, name: &certificate.name },
        reader: Reader::Restore,
        actor: None,
        at: redemption.at,
        correlation: redemption.correlation,
    };
    match give_out(tx, &reading, EscrowSelector::EachKey, &redemption.reached) {
        Ok(found) => Ok(Ok(found)),
        Err(Failed::Refused(why)) => Ok(Err(ErrorBody::new(EscrowError::code(&why), why.to_string()))),
        Err(Failed::KeyReused) => Err(Failed::KeyReused),
        Err(Failed::Engine(error)) => Err(Failed::Engine(error)),
        Err(Failed::Json(error)) => Err(Failed::Json(error)),
    }
}
