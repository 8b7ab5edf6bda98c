//! Enrollment requests and the decisions on them.
//!
//! The list of pending requests is short, and a new request always gets a place on it. The request that was not
//! repeated for longest is removed. It is one of the newcomer's own address when that has used its share, else one of
//! the address that has most. A waiting agent repeats its request each half minute, so a removed request was sent once
//! and abandoned.

use async_trait::async_trait;
use holdfast_protocol::enrol::{SealingIdentity, request_fingerprint};
use holdfast_protocol::id::{EnrollmentRequestId, HostId};
use holdfast_protocol::operator::{EnrollmentApproval, EnrollmentRequestState, EnrollmentRequestView};
use holdfast_protocol::pin::{Pin, PinKind};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::alerts::{Json, json};
use super::certificates::{
    KeyHolder, certificate, holder, insert_certificate, insert_host, key_is_anothers, name_is_taken,
};
use super::columns::{Id, Text, Time};
use super::events::emit;
use super::readmission::{self, Decision, Readmission};
use super::sql::{self, Connection, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::authority::AgentKey;
use crate::domain::enrollment::{PENDING_EACH, PENDING_MAX};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::readmission::{NameUse, ReadmitError};
use crate::store::{
    Approval, By, EnrollmentReply, EnrollmentRequestError, EnrollmentRequests, Issue, NewEnrollmentRequest,
    StoreError, WriteError,
};

/// A stored enrollment request.
#[derive(Clone, Debug)]
pub struct EnrollmentRequestRecord {
    /// As operators see it.
    pub view: EnrollmentRequestView,
    key: Vec<u8>,
    host: Option<i64>,
    /// The certificate that its approval gave.
    generation: u32,
}

const COLUMNS: &str = "enrollment_requests.id AS id, claimed_name, spki_der, sealing, first_at, state, host, generation, hosts.id AS host_id";
const FROM: &str = "enrollment_requests LEFT JOIN hosts ON hosts.number = enrollment_requests.host";

fn sealing_text(request: &NewEnrollmentRequest) -> sql::Result<Option<String>> {
    request.sealing.as_ref().map(json).transpose()
}

/// The table's check allows these three alone.
fn read(row: &Row<'_>) -> sql::Result<EnrollmentRequestRecord> {
    let key: Vec<u8> = row.get("spki_der")?;
    let sealing = row.get::<_, Option<Json<SealingIdentity>>>("sealing")?.map(|sealing| sealing.0);
    let own = Pin::of(PinKind::Spki, &key);
    let state: String = row.get("state")?;
    let view = EnrollmentRequestView {
        id: EnrollmentRequestId::new(row.get::<_, Id>("id")?.0),
        claimed_name: row.get::<_, Text<_>>("claimed_name")?.0,
        fingerprint: request_fingerprint(own, sealing.as_ref()),
        key: sealing.is_some().then_some(own),
        sealing,
        first_at: row.get::<_, Time>("first_at")?.0,
        state: match state.as_str() {
            "pending" => EnrollmentRequestState::Pending,
            "approved" => EnrollmentRequestState::Approved,
            _ => EnrollmentRequestState::Refused,
        },
        host: row.get::<_, Option<Id>>("host_id")?.map(|id| HostId::new(id.0)),
        revoked: Vec::new(),
        holder: None,
    };
    Ok(EnrollmentRequestRecord { view, key, host: row.get("host")?, generation: row.get("generation")? })
}

fn find(connection: &Connection, id: EnrollmentRequestId) -> sql::Result<Option<EnrollmentRequestRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE enrollment_requests.id = $1");
    connection.prepare_cached(&sql)?.query_row([Id(id.uuid())], read).optional()
}

#[async_trait]
impl EnrollmentRequests for Postgres {
    async fn request_enrollment(
        &self,
        request: NewEnrollmentRequest,
    ) -> Result<EnrollmentReply, WriteError<EnrollmentRequestError>> {
        self.write("store an enrollment request", move |tx| {
            let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE spki = $1");
            let known = tx.prepare_cached(&sql)?.query_row([request.key.hash()], read).optional()?;
            let Some(known) = known else { return first(tx, &request) };
            // Until it is decided the request says what is sealed for; an operator compares it. Afterwards it stays.
            let sql = "UPDATE enrollment_requests SET last_at = $2,
                           sealing = CASE state WHEN 'pending' THEN $3 ELSE sealing END WHERE id = $1";
            tx.prepare_cached(sql)?.execute(params![
                Id(known.view.id.uuid()),
                Time(request.at),
                sealing_text(&request)?
            ])?;
            match (known.view.state, known.host) {
                (EnrollmentRequestState::Pending, _) => Ok(EnrollmentReply::Pending(known.view.id)),
                (EnrollmentRequestState::Approved, Some(host)) => {
                    match approved(tx, host, known.generation) {
                        Ok(EnrollmentReply::Approved(given)) if given.not_after > request.at => {
                            Ok(EnrollmentReply::Approved(given))
                        }
                        Ok(_) | Err(Failed::Refused(EnrollmentRequestError::Spent)) => {
                            ask_again(tx, &known, &request)
                        }
                        Err(other) => Err(other),
                    }
                }
                (EnrollmentRequestState::Refused | EnrollmentRequestState::Approved, _) => {
                    Err(Failed::Refused(EnrollmentRequestError::Refused))
                }
            }
        })
        .await
    }

    async fn enrollment_requests(
        &self,
        after: Option<(Timestamp, EnrollmentRequestId)>,
        limit: u32,
    ) -> Result<Vec<EnrollmentRequestView>, StoreError> {
        self.read("list enrollment_requests", move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE (first_at, enrollment_requests.id) > ($1, $2)
                 ORDER BY first_at, enrollment_requests.id LIMIT $3"
            );
            let (at, id) =
                after.map_or((0, Id(uuid::Uuid::nil())), |(at, id)| (at.as_millisecond(), Id(id.uuid())));
            let statement = connection.prepare_cached(&sql)?;
            let records = statement.query_map(params![at, id, limit], read)?;
            let records = records.collect::<sql::Result<Vec<_>>>()?;
            let (mut views, keys): (Vec<_>, Vec<[u8; 32]>) = records
                .into_iter()
                .map(|record| (record.view, <[u8; 32]>::from(Sha256::digest(&record.key))))
                .unzip();
            for view in views.iter_mut().filter(|view| view.state == EnrollmentRequestState::Pending) {
                view.revoked = readmission::namesakes(connection, &view.claimed_name)?;
            }
            for (view, key) in views.iter_mut().zip(keys) {
                if view.state == EnrollmentRequestState::Pending {
                    view.holder = holder(connection, key)?.map(|holder| holder.id);
                }
            }
            Ok(views)
        })
        .await
    }

    async fn approve_enrollment(
        &self,
        by: By,
        approval: Approval,
        issue: Issue,
    ) -> Result<EnrollmentRequestView, WriteError<EnrollmentRequestError>> {
        self.mutate("approve an enrollment request", by, move |tx, by| {
            let refuse = |error| Err(Failed::Refused(error));
            let Some(known) = find(tx, approval.id)? else {
                return refuse(EnrollmentRequestError::Unknown);
            };
            if known.view.fingerprint != approval.request.fingerprint {
                return refuse(EnrollmentRequestError::Fingerprint { actual: known.view.fingerprint });
            }
            match known.view.state {
                EnrollmentRequestState::Approved => return Ok(known.view),
                EnrollmentRequestState::Refused => return refuse(EnrollmentRequestError::Refused),
                EnrollmentRequestState::Pending => {}
            }
            let name = &approval.request.host_name;
            let name_use = if name_is_taken(tx, name)? { NameUse::Taken } else { NameUse::Free };
            let key = AgentKey::from_spki(known.key.clone())
                .map_err(|error| Failed::Refused(EnrollmentRequestError::Key(error)))?;
            if let Some(holder) = holder(tx, key.hash())? {
                let decision = go_on(tx, by, &approval.request, (&holder, &key), issue)?;
                return decide(tx, by, &known, decision);
            }
            // It may have been enrolled by an invite since the request.
            if key_is_anothers(tx, key.hash(), None)? {
                return refuse(EnrollmentRequestError::KeyTaken);
            }
            if let Some(host) = approval.request.returns {
                let decision =
                    readmission::readmit(tx, by, &Readmission { host, name, name_use, key: &key }, issue)?;
                return decide(tx, by, &known, decision);
            }
            if name_use == NameUse::Taken {
                return refuse(EnrollmentRequestError::Taken { name: name.clone() });
            }
            let issued = issue(approval.host, 1, &key, by.at)
                .map_err(|error| Failed::Refused(EnrollmentRequestError::Issue(error)))?;
            let number = insert_host(tx, approval.host, name, by.at)?;
            insert_certificate(tx, number, 1, key.hash(), &issued)?;
            let message = format!("{name} was approved, key {}", known.view.fingerprint);
            let decision = Decision::Approved {
                host: number,
                id: approval.host,
                generation: 1,
                kind: EventKind::EnrollmentApproved,
                message,
            };
            decide(tx, by, &known, decision)
        })
        .await
    }

    async fn refuse_enrollment(
        &self,
        by: By,
        id: EnrollmentRequestId,
    ) -> Result<EnrollmentRequestView, WriteError<EnrollmentRequestError>> {
        self.mutate("refuse an enrollment request", by, move |tx, by| {
            let Some(known) = find(tx, id)? else {
                return Err(Failed::Refused(EnrollmentRequestError::Unknown));
            };
            match known.view.state {
                EnrollmentRequestState::Refused => Ok(known.view),
                EnrollmentRequestState::Approved => Err(Failed::Refused(EnrollmentRequestError::Decided)),
                EnrollmentRequestState::Pending => decide(tx, by, &known, Decision::Refused),
            }
        })
        .await
    }
}

fn first(
    tx: &Tx<'_>,
    request: &NewEnrollmentRequest,
) -> Result<EnrollmentReply, Failed<EnrollmentRequestError>> {
    let origin = request.origin.to_string();
    make_room(tx, &origin)?;
    let sql =
        "INSERT INTO enrollment_requests (id, spki, spki_der, claimed_name, first_at, last_at, state, origin, sealing)
               VALUES ($1, $2, $3, $4, $5, $5, 'pending', $6, $7)";
    if holder(tx, request.key.hash())?.is_none() && key_is_anothers(tx, request.key.hash(), None)? {
        return Err(Failed::Refused(EnrollmentRequestError::KeyTaken));
    }
    let (id, key) = (Id(request.id.uuid()), request.key.der());
    tx.prepare_cached(sql)?.execute(params![
        id,
        request.key.hash(),
        key,
        request.claimed_name.as_str(),
        Time(request.at),
        origin,
        sealing_text(request)?
    ])?;
    requested(tx, request)?;
    Ok(EnrollmentReply::Pending(request.id))
}

fn requested(tx: &Tx<'_>, request: &NewEnrollmentRequest) -> sql::Result<()> {
    let event = NewEvent {
        at: request.at,
        kind: EventKind::EnrollmentRequested,
        host: None,
        actor: None,
        correlation: request.correlation,
        message: format!(
            "a host that gives the name {} requests enrollment, key {}",
            request.claimed_name,
            request_fingerprint(request.key.fingerprint(), request.sealing.as_ref())
        ),
    };
    emit(tx, &event)
}

/// The certificate that the approval gave is over, and its key is still the host's: an operator decides once more.
fn ask_again(
    tx: &Tx<'_>,
    known: &EnrollmentRequestRecord,
    request: &NewEnrollmentRequest,
) -> Result<EnrollmentReply, Failed<EnrollmentRequestError>> {
    if holder(tx, request.key.hash())?.is_none() {
        return Err(Failed::Refused(EnrollmentRequestError::Spent));
    }
    let sql = "UPDATE enrollment_requests SET state = 'pending', host = NULL, first_at = $2 WHERE id = $1";
    tx.prepare_cached(sql)?.execute(params![Id(known.view.id.uuid()), Time(request.at)])?;
    requested(tx, request)?;
    Ok(EnrollmentReply::Pending(known.view.id))
}

/// A host goes on with its latest key: its next certificate, and nothing else changes.
fn go_on(
    tx: &Tx<'_>,
    by: &By,
    approval: &EnrollmentApproval,
    (holder, key): (&KeyHolder, &AgentKey),
    issue: Issue,
) -> Result<Decision, Failed<EnrollmentRequestError>> {
    let refuse = Failed::Refused;
    if approval.returns != Some(holder.id) || approval.host_name != holder.name {
        let (host, name) = (holder.id, holder.name.clone());
        return Err(refuse(EnrollmentRequestError::Holder { host, name }));
    }
    let exhausted = || refuse(EnrollmentRequestError::Readmit(ReadmitError::Exhausted));
    let generation = holder.issued.checked_add(1).ok_or_else(exhausted)?;
    let issued = issue(holder.id, generation, key, by.at)
        .map_err(|error| refuse(EnrollmentRequestError::Issue(error)))?;
    insert_certificate(tx, holder.number, generation, key.hash(), &issued)?;
    Ok(Decision::Approved {
        host: holder.number,
        id: holder.id,
        generation,
        kind: EventKind::HostRenewed,
        message: format!(
            "{}, whose certificate was not renewed in time, goes on: key {}, certificate {generation}",
            holder.name,
            key.fingerprint()
        ),
    })
}

/// Drops a request where as many are pending as may be, of one address or in all.
fn make_room(tx: &Tx<'_>, origin: &str) -> Result<(), Failed<EnrollmentRequestError>> {
    let own = "SELECT count(*) FROM enrollment_requests WHERE state = 'pending' AND origin = $1";
    let own: u32 = tx.prepare_cached(own)?.query_row([origin], |row| row.get(0))?;
    if own >= PENDING_EACH {
        let sql =
            "DELETE FROM enrollment_requests WHERE id = (SELECT id FROM enrollment_requests WHERE state = 'pending' AND origin = $1
                   ORDER BY last_at, first_at, id LIMIT 1)";
        tx.prepare_cached(sql)?.execute([origin])?;
        return Ok(());
    }
    let all = "SELECT count(*) FROM enrollment_requests WHERE state = 'pending'";
    let all: u32 = tx.prepare_cached(all)?.query_row([], |row| row.get(0))?;
    if all >= PENDING_MAX {
        let sql = "DELETE FROM enrollment_requests WHERE id = (
                       SELECT id FROM (SELECT id, last_at, first_at, count(*) OVER (PARTITION BY origin) AS crowd
                           FROM enrollment_requests WHERE state = 'pending')
                       ORDER BY crowd DESC, last_at, first_at, id LIMIT 1)";
        tx.prepare_cached(sql)?.execute([])?;
    }
    Ok(())
}

/// The certificate that the approval gave, as long as the host has no later one.
fn approved(
    tx: &Tx<'_>,
    host: i64,
    generation: u32,
) -> Result<EnrollmentReply, Failed<EnrollmentRequestError>> {
    let sql = "SELECT 1 FROM hosts WHERE number = $1 AND issued_generation = $2 AND status = 'active'";
    let spent = || Failed::Refused(EnrollmentRequestError::Spent);
    if !tx.prepare_cached(sql)?.exists(params![host, generation])? {
        return Err(spent());
    }
    let given = certificate(tx, host, generation)?;
    given.map(|(record, _)| EnrollmentReply::Approved(record)).ok_or_else(spent)
}

fn decide(
    tx: &Tx<'_>,
    by: &By,
    known: &EnrollmentRequestRecord,
    decision: Decision,
) -> Result<EnrollmentRequestView, Failed<EnrollmentRequestError>> {
    let (state, word, host, generation, kind, id, message) = match decision {
        Decision::Approved { host, id, generation, kind, message } => {
            (EnrollmentRequestState::Approved, "approved", Some(host), generation, kind, Some(id), message)
        }
        Decision::Refused => {
            let message =
                format!("the enrollment request of {} was refused for good", known.view.claimed_name);
            (
                EnrollmentRequestState::Refused,
                "refused",
                None,
                known.generation,
                EventKind::EnrollmentRefused,
                None,
                message,
            )
        }
    };
    tx.prepare_cached("UPDATE enrollment_requests SET state = $2, host = $3, generation = $4 WHERE id = $1")?
        .execute(params![Id(known.view.id.uuid()), word, host, generation])?;
    let event = NewEvent {
        at: by.at,
        kind,
        host: id,
        actor: Some(by.operator.clone()),
        correlation: by.correlation,
        message,
    };
    emit(tx, &event)?;
    Ok(EnrollmentRequestView { state, host: id, ..known.view.clone() })
}
