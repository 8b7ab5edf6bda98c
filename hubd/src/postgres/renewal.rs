//! Renewal of a host certificate.

use async_trait::async_trait;

use super::authenticated_host::AuthenticatedHost;
use super::certificates::{certificate, insert_certificate, key_is_anothers};
use super::checkin::admit;
use super::events::emit;
use super::sql::params;
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{CertificateRecord, Issue, RenewError, Renewal, Renewals, WriteError};

#[async_trait]
impl Renewals for Postgres {
    async fn renew(
        &self,
        renewal: Renewal,
        issue: Issue,
    ) -> Result<CertificateRecord, WriteError<RenewError>> {
        // A refusal may freeze the host, and that must stay: the answer of the transaction is itself a result.
        let answer = self.write("renew a certificate", move |tx| {
            let admitted = match admit(tx, renewal.presented, renewal.at, renewal.correlation)? {
                Ok(admitted) => admitted,
                Err(error) => return Ok(Err(RenewError::Identity(error))),
            };
            next(tx, &renewal, &admitted, issue).map(Ok)
        });
        answer.await?.map_err(WriteError::Refused)
    }
}

fn next(
    tx: &Tx<'_>,
    renewal: &Renewal,
    admitted: &AuthenticatedHost,
    issue: Issue,
) -> Result<CertificateRecord, Failed<RenewError>> {
    let presented = renewal.presented.generation;
    let sql = "UPDATE hosts SET used_generation = greatest(used_generation, $2) WHERE number = $1";
    tx.prepare_cached(sql)?.execute(params![admitted.number, presented])?;
    let key = renewal.key.hash();
    // The next one was made already, for the same key: the reply was lost.
    if admitted.issued > presented
        && let Some((record, made_for)) = certificate(tx, admitted.number, admitted.issued)?
        && made_for == key
    {
        return Ok(record);
    }
    let refuse = Failed::Refused;
    if key_is_anothers(tx, key, Some(admitted.number))? {
        return Err(refuse(RenewError::KeyTaken));
    }
    let generation = admitted.issued.checked_add(1).ok_or(refuse(RenewError::Exhausted))?;
    let issued = issue(renewal.presented.host, generation, &renewal.key, renewal.at)
        .map_err(|error| refuse(RenewError::Issue(error)))?;
    insert_certificate(tx, admitted.number, generation, key, &issued)?;
    let event = NewEvent {
        at: renewal.at,
        kind: EventKind::HostRenewed,
        host: Some(renewal.presented.host),
        actor: None,
        correlation: renewal.correlation,
        message: format!("{} got certificate {generation}", admitted.name),
    };
    emit(tx, &event)?;
    let made = certificate(tx, admitted.number, generation)?;
    made.map(|(record, _)| record).ok_or(refuse(RenewError::Exhausted))
}
