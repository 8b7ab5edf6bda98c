//! Signed releases and the digests that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::str::FromStr;

use async_trait::async_trait;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::{ReleaseFile, ReleaseFileKind, ReleaseFileName, VersionNumber};

use super::checkin::admit;
use super::columns::{Text, Time, digest, text};
use super::events::emit;
use super::release_offers::withdraw_all;
use super::sql::{self, Connection, Error, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::identity::IdentityError;
use crate::domain::release::{Edition, ReleasePut, ReleasePutError, judge_bytes, judge_put};
use crate::store::{AskingHost, By, NewRelease, ReleaseRecord, Releases, StoreError, WriteError};

fn second(row: &Row<'_>, name: &str) -> sql::Result<UtcSecond> {
    let at = row.get::<_, Time>(name)?.0;
    UtcSecond::new(at).map_err(|says| Error::Unreadable(says.into()))
}

fn release(row: &Row<'_>) -> sql::Result<ReleaseRecord> {
    Ok(ReleaseRecord {
        version: text(row, "version", |text| VersionNumber::from_str(&text))?,
        manifest_sha256: digest(row, "manifest_sha256")?,
        issued_at: second(row, "issued_at")?,
        expires_at: second(row, "expires_at")?,
        signatures: row.get("signatures")?,
        by: row.get::<_, Text<OperatorName>>("operator")?.0,
        put_at: row.get::<_, Time>("put_at")?.0,
        files: Vec::new(),
    })
}

fn file(row: &Row<'_>) -> sql::Result<ReleaseFile> {
    Ok(ReleaseFile {
        kind: text(row, "kind", |text| ReleaseFileKind::from_str(&text))?,
        name: text(row, "name", ReleaseFileName::try_from)?,
        sha256: digest(row, "sha256")?,
        size_bytes: row.get::<_, i64>("size_bytes")?.unsigned_abs(),
    })
}

const COLUMNS: &str = "version, manifest_sha256, issued_at, expires_at, signatures, operator, put_at";

fn with_files(connection: &Connection, mut record: ReleaseRecord) -> sql::Result<ReleaseRecord> {
    let sql = "SELECT kind, name, sha256, size_bytes FROM release_files WHERE version = $1 ORDER BY place";
    let version = record.version.to_string();
    record.files = connection.prepare_cached(sql)?.query_map([version], file)?.collect::<Result<_, _>>()?;
    Ok(record)
}

fn one(connection: &Connection, version: VersionNumber) -> sql::Result<Option<ReleaseRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM releases WHERE version = $1");
    let found = connection.prepare_cached(&sql)?.query_row([version.to_string()], release).optional()?;
    found.map(|record| with_files(connection, record)).transpose()
}

fn size(connection: &Connection, digest: &Sha256Text) -> sql::Result<Option<u64>> {
    let sql = "SELECT size_bytes FROM release_files WHERE sha256 = $1 LIMIT 1";
    let read = |row: &Row<'_>| Ok(row.get::<_, i64>(0)?.unsigned_abs());
    connection.prepare_cached(sql)?.query_row([digest.as_str()], read).optional()
}

fn edition(tx: &Tx<'_>, version: &str) -> sql::Result<Option<Edition>> {
    let sql = "SELECT manifest_sha256, issued_at, signed FROM releases WHERE version = $1";
    let read = |row: &Row<'_>| {
        Ok(Edition {
            manifest_sha256: digest(row, "manifest_sha256")?,
            signed_sha256: Sha256Text::of(row.get::<_, String>("signed")?.as_bytes()),
            issued_at: second(row, "issued_at")?,
        })
    };
    tx.prepare_cached(sql)?.query_row([version], read).optional()
}

/// The sizes of what releases of other versions name.
fn others(tx: &Tx<'_>, version: &str) -> sql::Result<BTreeMap<Sha256Text, u64>> {
    let sql = "SELECT DISTINCT sha256, size_bytes FROM release_files WHERE version <> $1";
    let read = |row: &Row<'_>| Ok((digest(row, "sha256")?, row.get::<_, i64>("size_bytes")?.unsigned_abs()));
    tx.prepare_cached(sql)?.query_map([version], read)?.collect()
}

fn put(
    tx: &Tx<'_>,
    by: &By,
    new: &NewRelease,
    bytes_max: u64,
) -> Result<ReleasePut, Failed<ReleasePutError>> {
    let manifest = &new.manifest;
    let version = manifest.version.to_string();
    let kept = edition(tx, &version)?;
    let count = "SELECT count(*) FROM releases WHERE version <> $1";
    let count: u32 = tx.prepare_cached(count)?.query_row([&version], |row| row.get(0))?;
    let incoming = Edition {
        manifest_sha256: new.manifest_sha256.clone(),
        signed_sha256: Sha256Text::of(new.signed.as_bytes()),
        issued_at: manifest.issued_at,
    };
    let verdict = judge_put(manifest.version, kept.as_ref(), &incoming, count as usize);
    let verdict = verdict.map_err(Failed::Refused)?;
    if verdict == ReleasePut::Again {
        return Ok(verdict);
    }
    judge_bytes(others(tx, &version)?, &manifest.files, bytes_max).map_err(Failed::Refused)?;
    // Its files go with it.
    tx.prepare_cached("DELETE FROM releases WHERE version = $1")?.execute([&version])?;
    let sql = "INSERT INTO releases
                   (version, manifest_sha256, issued_at, expires_at, signatures, operator, put_at, signed)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    tx.prepare_cached(sql)?.execute(params![
        version,
        new.manifest_sha256.as_str(),
        Time(manifest.issued_at.at()),
        Time(manifest.expires_at.at()),
        new.signatures,
        by.operator.as_str(),
        Time(by.at),
        new.signed
    ])?;
    let sql = "INSERT INTO release_files (version, place, kind, name, sha256, size_bytes)
               VALUES ($1, $2, $3, $4, $5, $6)";
    let insert = tx.prepare_cached(sql)?;
    for (place, file) in (0_u32..).zip(&manifest.files) {
        let bytes = i64::try_from(file.size_bytes).unwrap_or(i64::MAX);
        let (kind, name) = (file.kind.as_str(), file.name.as_str());
        insert.execute(params![version, place, kind, name, file.sha256.as_str(), bytes])?;
    }
    Ok(verdict)
}

fn event(by: &By, kind: EventKind, message: String) -> NewEvent {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    NewEvent { at: by.at, kind, host: None, actor, correlation, message }
}

impl Postgres {
    /// Answers a host whose certificate is good.
    pub(super) async fn for_admitted<T: Send + 'static>(
        &self,
        action: &'static str,
        host: AskingHost,
        read: impl FnOnce(&Tx<'_>) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, WriteError<IdentityError>> {
        // A refusal may freeze the host, and that must stay: the answer of the transaction is itself a result.
        let answer =
            self.write(action, move |tx| match admit(tx, host.presented, host.at, host.correlation)? {
                Ok(_) => Ok(Ok(read(tx)?)),
                Err(error) => Ok::<_, Failed<IdentityError>>(Err(error)),
            });
        answer.await?.map_err(WriteError::Refused)
    }
}

#[async_trait]
impl Releases for Postgres {
    async fn put_release(
        &self,
        by: By,
        new: NewRelease,
        bytes_max: u64,
    ) -> Result<ReleaseRecord, WriteError<ReleasePutError>> {
        self.mutate("keep a release", by, move |tx, by| {
            let version = new.manifest.version;
            let message = match put(tx, by, &new, bytes_max)? {
                ReleasePut::Add => Some(format!("release {version} was put here")),
                ReleasePut::Again => None,
                ReleasePut::Replace => {
                    Some(format!("release {version} was put here in place of another edition"))
                }
            };
            if let Some(message) = message {
                emit(tx, &event(by, EventKind::ReleasePut, message))?;
            }
            Ok(one(tx, version)?.ok_or(Error::NoRow)?)
        })
        .await
    }

    async fn releases(&self) -> Result<Vec<ReleaseRecord>, StoreError> {
        self.read("list releases", |connection| {
            let sql = format!("SELECT {COLUMNS} FROM releases");
            let statement = connection.prepare_cached(&sql)?;
            let records = statement.query_map([], release)?.map(|record| with_files(connection, record?));
            let mut all = records.collect::<sql::Result<Vec<_>>>()?;
            all.sort_by_key(|record| std::cmp::Reverse(record.version));
            Ok(all)
        })
        .await
    }

    async fn delete_release(
        &self,
        by: By,
        version: VersionNumber,
    ) -> Result<Option<ReleaseRecord>, WriteError<Infallible>> {
        self.mutate("delete a release", by, move |tx, by| {
            let Some(record) = one(tx, version)? else { return Ok(None) };
            tx.prepare_cached("DELETE FROM releases WHERE version = $1")?.execute([version.to_string()])?;
            emit(tx, &event(by, EventKind::ReleaseDeleted, format!("release {version} was deleted here")))?;
            withdraw_all(tx, by, version)?;
            Ok(Some(record))
        })
        .await
    }

    async fn named_artifacts(&self) -> Result<BTreeSet<Sha256Text>, StoreError> {
        self.read("list the files of releases", |connection| {
            let sql = "SELECT DISTINCT sha256 FROM release_files";
            connection.prepare_cached(sql)?.query_map([], |row| digest(row, "sha256"))?.collect()
        })
        .await
    }

    async fn artifact_size(&self, digest: Sha256Text) -> Result<Option<u64>, StoreError> {
        self.read("look up a file of a release", move |connection| size(connection, &digest)).await
    }

    async fn artifact_size_for_host(
        &self,
        host: AskingHost,
        digest: Sha256Text,
    ) -> Result<Option<u64>, WriteError<IdentityError>> {
        self.for_admitted("look up a file of a release", host, move |tx| size(tx, &digest)).await
    }

    async fn naming_release_for_host(
        &self,
        host: AskingHost,
        digest: Sha256Text,
    ) -> Result<Option<String>, WriteError<IdentityError>> {
        self.for_admitted("find the release of a file", host, move |tx| {
            let sql = "SELECT signed FROM releases WHERE version IN (SELECT version FROM release_files WHERE sha256 = $1)
                       ORDER BY expires_at DESC LIMIT 1";
            tx.prepare_cached(sql)?.query_row([digest.as_str()], |row| row.get(0)).optional()
        })
        .await
    }

    async fn release_for_host(
        &self,
        host: AskingHost,
        version: VersionNumber,
    ) -> Result<Option<String>, WriteError<IdentityError>> {
        self.for_admitted("read a release", host, move |tx| {
            let sql = "SELECT signed FROM releases WHERE version = $1";
            tx.prepare_cached(sql)?.query_row([version.to_string()], |row| row.get(0)).optional()
        })
        .await
    }
}
