//! Restore certificates of guests, countersigned when they are kept.

use async_trait::async_trait;
use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::restore_certificate::{CertificateKept, SignedCertificate};
use restore_certificate::countersign::KeyOwner;

use super::alerts::Json;
use super::authenticated_host::AuthenticatedHost;
use super::checkin::admit;
use super::columns::{Id, Time};
use super::host_row::find;
use super::sql::{self, Error, OptionalExtension as _, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::host::HostRef;
use crate::domain::restore_certificate::{
    GuestOf, HeldCertificate, Incoming, KEPT_PER_GUEST, KEPT_PER_HOST, Put, Signer, judge_put,
};
use crate::store::{
    CertificateDelivery, Countersign, RestoreCertificateError, RestoreCertificates, StoreError, WriteError,
};

fn refused<T>(error: impl Into<RestoreCertificateError>) -> Result<T, Failed<RestoreCertificateError>> {
    Err(Failed::Refused(error.into()))
}

fn held(tx: &Tx<'_>, host: i64, guest: GuestUid) -> sql::Result<Vec<HeldCertificate>> {
    let sql = "SELECT test, tested_at, document_sha256, received_at FROM restore_certificates
               WHERE host = $1 AND guest = $2";
    tx.prepare_cached(sql)?
        .query_map(params![host, Id(guest.uuid())], |row| {
            let sha256 = Sha256Text::try_from(row.get::<_, String>(2)?);
            Ok(HeldCertificate {
                test: OperationId::new(row.get::<_, Id>(0)?.0),
                tested_at: row.get::<_, Time>(1)?.0,
                document_sha256: sha256.map_err(|says| Error::Unreadable(says.into()))?,
                received_at: row.get::<_, Time>(3)?.0,
            })
        })?
        .collect()
}

/// The owner of a key. Keys from before the host was replaced or readmitted do not count.
fn signer(tx: &Tx<'_>, host: i64, key: [u8; 32]) -> sql::Result<Signer> {
    let sql = "SELECT max(generation) FROM certificates JOIN hosts ON number = host
               WHERE host = $1 AND spki = $2 AND generation >= greatest(restored_from, readmitted_from)";
    let generation: Option<u32> = tx.prepare_cached(sql)?.query_row(params![host, key], |row| row.get(0))?;
    Ok(generation.map_or(Signer::Other, Signer::Sender))
}

fn guest_of(tx: &Tx<'_>, host: i64, guest: GuestUid) -> sql::Result<GuestOf> {
    let sql = "SELECT 1 FROM reports, jsonb_path_query(stored_json(reports.guests), '$[*]') AS reported
               WHERE host = $1 AND reported ->> 'uid' = $2";
    let is_reported = tx.prepare_cached(sql)?.exists(params![host, guest.to_string()])?;
    Ok(if is_reported { GuestOf::Sender } else { GuestOf::Other })
}

fn put(
    tx: &Tx<'_>,
    host: &AuthenticatedHost,
    delivery: &CertificateDelivery,
    countersign: Countersign,
) -> Result<CertificateKept, Failed<RestoreCertificateError>> {
    let (received, sender) = (&delivery.received, delivery.presented.host);
    let document = &received.document;
    let guest = document.guest.uid;
    let kept = |at| UtcSecond::new(at).map(|received_at| CertificateKept { guest, received_at });
    let incoming = Incoming {
        sender,
        host: document.host.id,
        signer: signer(tx, host.number, received.key.spki_sha256())?,
        guest,
        guest_is: guest_of(tx, host.number, guest)?,
        test: document.test.operation,
        tested_at: document.test.ended_at.at(),
        document_sha256: Sha256Text::of(received.signed.document.as_str().as_bytes()),
        at: delivery.at,
    };
    let unsayable = |says: &'static str| Failed::Engine(Error::Unreadable(says.into()));
    let generation = match judge_put(&held(tx, host.number, guest)?, &incoming).or_else(refused)? {
        Put::Again(since) => return kept(since).map_err(unsayable),
        Put::Keep(generation) => generation,
    };
    let answer = kept(delivery.at).map_err(unsayable)?;
    let owner =
        KeyOwner { host: sender, name: host.name.clone(), generation, received_at: answer.received_at };
    let hub = countersign(received, &owner)
        .or_else(|error| refused(RestoreCertificateError::Countersign(error)))?;
    let signed = SignedCertificate { hub: Some(hub), ..received.signed.clone() };
    let text = serde_json::to_string(&signed)
        .or_else(|error| refused(RestoreCertificateError::Unwritable(error)))?;
    let sql = "INSERT INTO restore_certificates
                   (host, guest, test, tested_at, document_sha256, received_at, signed)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    tx.prepare_cached(sql)?.execute(params![
        host.number,
        Id(guest.uuid()),
        Id(incoming.test.uuid()),
        Time(incoming.tested_at),
        incoming.document_sha256.as_str(),
        Time(delivery.at),
        text
    ])?;
    thin(tx, host.number, guest)?;
    Ok(answer)
}

/// Removes what is more than is kept of the guest, and of the host.
fn thin(tx: &Tx<'_>, host: i64, guest: GuestUid) -> sql::Result<()> {
    let of_guest = "DELETE FROM restore_certificates WHERE host = $1 AND guest = $2 AND test NOT IN (
                        SELECT test FROM restore_certificates WHERE host = $1 AND guest = $2
                        ORDER BY tested_at DESC, test LIMIT $3)";
    tx.prepare_cached(of_guest)?.execute(params![host, Id(guest.uuid()), KEPT_PER_GUEST])?;
    let of_host = "DELETE FROM restore_certificates WHERE host = $1 AND test IN (
                       SELECT test FROM restore_certificates WHERE host = $1
                       ORDER BY received_at DESC, test OFFSET $2)";
    tx.prepare_cached(of_host)?.execute(params![host, KEPT_PER_HOST])?;
    Ok(())
}

#[async_trait]
impl RestoreCertificates for Postgres {
    async fn put_restore_certificate(
        &self,
        delivery: CertificateDelivery,
        countersign: Countersign,
    ) -> Result<CertificateKept, WriteError<RestoreCertificateError>> {
        // A refusal may freeze the host, and that must stay: the answer of the transaction is itself a result.
        let answer = self.write("keep a restore certificate", move |tx| {
            let admitted = match admit(tx, delivery.presented, delivery.at, delivery.correlation)? {
                Ok(admitted) => admitted,
                Err(error) => return Ok(Err(RestoreCertificateError::Identity(error))),
            };
            let sql = "UPDATE hosts SET used_generation = greatest(used_generation, $2) WHERE number = $1";
            tx.prepare_cached(sql)?.execute(params![admitted.number, delivery.presented.generation])?;
            put(tx, &admitted, &delivery, countersign).map(Ok)
        });
        answer.await?.map_err(WriteError::Refused)
    }

    async fn restore_certificate(
        &self,
        host: HostRef,
        guest: GuestUid,
    ) -> Result<Option<SignedCertificate>, StoreError> {
        self.read("read a restore certificate", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let sql = "SELECT signed FROM restore_certificates WHERE host = $1 AND guest = $2
                       ORDER BY tested_at DESC, test LIMIT 1";
            let found = connection
                .prepare_cached(sql)?
                .query_row(params![record.number, Id(guest.uuid())], |row| row.get::<_, Json<_>>(0))
                .optional()?;
            Ok(found.map(|Json(signed)| signed))
        })
        .await
    }
}
