//! Releases that operators offer to single hosts.

use std::convert::Infallible;
use std::str::FromStr as _;

use async_trait::async_trait;
use holdfast_protocol::id::{HostId, OperatorName};
use holdfast_protocol::operator::HostState;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::{
    HostOffer, OfferedImage, OfferedRelease, ReleaseOffer, WithdrawalReason, WithdrawnOffer, WithdrawnRelease,
};
use holdfast_protocol::report::AgentSection;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::alerts::Json;
use super::columns::{Id, Text, Time, digest, text};
use super::events::emit;
use super::host_row::find;
use super::rollouts::{offered_image, offered_versions, withdrawn_by_rollout};
use super::writer::Tx;
use super::{Failed, Sqlite};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::domain::identity::IdentityError;
use crate::domain::release_offer::OfferError;
use crate::store::{AskingHost, By, ReleaseOffers, WriteError};

fn version(row: &Row<'_>) -> rusqlite::Result<VersionNumber> {
    text(row, "version", |text| VersionNumber::from_str(&text))
}

/// What is offered to the host of this number.
pub(super) fn of_host(connection: &Connection, number: i64) -> rusqlite::Result<Option<HostOffer>> {
    let sql = "SELECT version, operator, at FROM release_offers WHERE host = ?1";
    let read = |row: &Row<'_>| {
        let by = row.get::<_, Text<OperatorName>>("operator")?.0;
        Ok(HostOffer { version: version(row)?, by, at: row.get::<_, Time>("at")?.0 })
    };
    connection.prepare_cached(sql)?.query_row([number], read).optional()
}

/// As hosts hear of it: the newest of what an operator and rollouts offer, since a host takes no other; and what it has
/// on trial, where that was stopped.
fn offered(tx: &Tx<'_>, host: HostId, now: Timestamp) -> rusqlite::Result<ReleaseOffer> {
    let sql = "SELECT version FROM release_offers WHERE host = (SELECT number FROM hosts WHERE id = ?1)";
    let by_operator = tx.prepare_cached(sql)?.query_row([Id(host.uuid())], version).optional()?;
    let mut versions = offered_versions(tx, host, now)?;
    versions.extend(by_operator);
    let withdrawn = withdrawn(tx, host, &versions)?;
    let newest = versions.into_iter().max().map(|newest| kept(tx, newest)).transpose()?.flatten();
    Ok(ReleaseOffer { release: newest, withdrawn })
}

/// A release, where it is here.
fn kept(tx: &Tx<'_>, wanted: VersionNumber) -> rusqlite::Result<Option<OfferedRelease>> {
    let sql = "SELECT version, manifest_sha256 FROM releases WHERE version = ?1";
    let read = |row: &Row<'_>| {
        Ok(OfferedRelease { version: version(row)?, manifest_sha256: digest(row, "manifest_sha256")? })
    };
    tx.prepare_cached(sql)?.query_row([wanted.to_string()], read).optional()
}

/// The release that a host reports to be on trial, where it is offered no more because somebody stopped it.
fn withdrawn(
    tx: &Tx<'_>,
    host: HostId,
    offered: &[VersionNumber],
) -> rusqlite::Result<Option<WithdrawnRelease>> {
    let sql = "SELECT agent FROM reports WHERE host = (SELECT number FROM hosts WHERE id = ?1)";
    let read = |row: &Row<'_>| Ok(row.get::<_, Option<Json<AgentSection>>>("agent")?.map(|json| json.0));
    let agent = tx.prepare_cached(sql)?.query_row([Id(host.uuid())], read).optional()?.flatten();
    let trial = agent.and_then(|agent| agent.builds).and_then(|builds| builds.trial);
    let Some(trial) = trial.filter(|trial| !offered.contains(trial)) else { return Ok(None) };
    let Some(OfferedRelease { version, manifest_sha256 }) = kept(tx, trial)? else { return Ok(None) };
    let reason = match withdrawn_by_rollout(tx, host, trial)? {
        Some(reason) => Some(reason),
        None if was_withdrawn(tx, host, trial)? => Some(WithdrawalReason::Operator),
        None => None,
    };
    Ok(reason.map(|reason| WithdrawnRelease { version, manifest_sha256, reason }))
}

fn was_withdrawn(tx: &Tx<'_>, host: HostId, version: VersionNumber) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM withdrawn_offers
               WHERE host = (SELECT number FROM hosts WHERE id = ?1) AND version = ?2";
    tx.prepare_cached(sql)?.exists(params![Id(host.uuid()), version.to_string()])
}

fn event(by: &By, kind: EventKind, host: HostId, message: String) -> NewEvent {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    NewEvent { at: by.at, kind, host: Some(host), actor, correlation, message }
}

/// Takes back all offers of a release that is deleted.
pub(super) fn withdraw_all(tx: &Tx<'_>, by: &By, version: VersionNumber) -> rusqlite::Result<()> {
    let sql =
        "SELECT hosts.id, hosts.name FROM release_offers JOIN hosts ON hosts.number = release_offers.host
               WHERE version = ?1 ORDER BY hosts.name";
    let read = |row: &Row<'_>| Ok((HostId::new(row.get::<_, Id>(0)?.0), row.get::<_, String>(1)?));
    let mut select = tx.prepare_cached(sql)?;
    let hosts = select.query_map([version.to_string()], read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    tx.prepare_cached("DELETE FROM release_offers WHERE version = ?1")?.execute([version.to_string()])?;
    for (host, name) in hosts {
        let says = format!("release {version} was deleted here and is no longer offered to {name}");
        emit(tx, &event(by, EventKind::ReleaseOfferWithdrawn, host, says))?;
    }
    Ok(())
}

/// Trials last half an hour, so a few of the last ones are enough.
const WITHDRAWN_MAX: u32 = 8;

fn note_withdrawal(tx: &Tx<'_>, host: i64, version: VersionNumber, at: Timestamp) -> rusqlite::Result<()> {
    let sql = "INSERT INTO withdrawn_offers (host, version, at) VALUES (?1, ?2, ?3)
               ON CONFLICT (host, version) DO UPDATE SET at = excluded.at";
    tx.prepare_cached(sql)?.execute(params![host, version.to_string(), Time(at)])?;
    let sql = "DELETE FROM withdrawn_offers WHERE host = ?1 AND version NOT IN
               (SELECT version FROM withdrawn_offers WHERE host = ?1 ORDER BY at DESC, version LIMIT ?2)";
    tx.prepare_cached(sql)?.execute(params![host, WITHDRAWN_MAX])?;
    Ok(())
}

fn exists(tx: &Tx<'_>, version: VersionNumber) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM releases WHERE version = ?1")?.exists([version.to_string()])
}

#[async_trait]
impl ReleaseOffers for Sqlite {
    async fn offer_release(
        &self,
        by: By,
        host: HostRef,
        version: VersionNumber,
    ) -> Result<Option<HostOffer>, WriteError<OfferError>> {
        self.mutate("offer a release", by, move |tx, by| {
            if !exists(tx, version)? {
                return Err(Failed::Refused(OfferError::Unknown { version }));
            }
            let Some(record) = find(tx, &host)? else { return Ok(None) };
            if record.view.state == HostState::Revoked {
                return Err(Failed::Refused(OfferError::Revoked));
            }
            if let Some(already) = of_host(tx, record.number)?.filter(|offer| offer.version == version) {
                return Ok(Some(already));
            }
            let sql = "INSERT INTO release_offers (host, version, operator, at) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (host) DO UPDATE SET version = ?2, operator = ?3, at = ?4";
            let operator = by.operator.as_str();
            let values = params![record.number, version.to_string(), operator, Time(by.at)];
            tx.prepare_cached(sql)?.execute(values)?;
            let sql = "DELETE FROM withdrawn_offers WHERE host = ?1 AND version = ?2";
            tx.prepare_cached(sql)?.execute(params![record.number, version.to_string()])?;
            let says = format!("release {version} is offered to {}", record.view.name);
            emit(tx, &event(by, EventKind::ReleaseOffered, record.view.id, says))?;
            Ok(of_host(tx, record.number)?)
        })
        .await
    }

    async fn withdraw_release_offer(
        &self,
        by: By,
        host: HostRef,
    ) -> Result<Option<WithdrawnOffer>, WriteError<Infallible>> {
        self.mutate("withdraw the offer of a release", by, move |tx, by| {
            let Some(record) = find(tx, &host)? else { return Ok(None) };
            let offer = of_host(tx, record.number)?;
            if let Some(HostOffer { version, .. }) = &offer {
                tx.prepare_cached("DELETE FROM release_offers WHERE host = ?1")?.execute([record.number])?;
                note_withdrawal(tx, record.number, *version, by.at)?;
                let says = format!("release {version} is no longer offered to {}", record.view.name);
                emit(tx, &event(by, EventKind::ReleaseOfferWithdrawn, record.view.id, says))?;
            }
            Ok(Some(WithdrawnOffer { offer }))
        })
        .await
    }

    async fn release_offered_to(&self, host: AskingHost) -> Result<ReleaseOffer, WriteError<IdentityError>> {
        let (id, now) = (host.presented.host, host.at);
        self.for_admitted("read the offer of a release", host, move |tx| offered(tx, id, now)).await
    }

    async fn image_offered_to(
        &self,
        host: AskingHost,
    ) -> Result<Option<OfferedImage>, WriteError<IdentityError>> {
        let (id, now) = (host.presented.host, host.at);
        self.for_admitted("read the offer of an image", host, move |tx| offered_image(tx, id, now)).await
    }
}
