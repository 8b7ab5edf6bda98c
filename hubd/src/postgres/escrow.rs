//! Wrapped backup keys in versions, with notices of reads.
//!
//! Every call is a write: it is counted, and a read is written down, with its notice, in the transaction that gives the
//! file. So no file leaves the hub without a notice.

use async_trait::async_trait;
use holdfast_protocol::escrow::notice::{EscrowNotice, NoticeSchema, Reader};
use holdfast_protocol::escrow::{
    self, EscrowBytes, EscrowFiles, EscrowFound, EscrowKept, EscrowList, EscrowNumber, EscrowOpened,
    EscrowProof, EscrowPut, EscrowView, Notice,
};
use holdfast_protocol::id::{CorrelationId, HostId, HostName, OperatorName};
use holdfast_protocol::job::{HostEpoch, Nonce, UtcSecond};
use jiff::Timestamp;

use super::authenticated_host::AuthenticatedHost;
use super::checkin::admit;
use super::columns::{Text, Time};
use super::escrow_notices;
use super::events::emit;
use super::host_row;
use super::sql::{self, Connection, Error, OptionalExtension as _, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::escrow::{Act, Hour, Put, count, judge_put};
use crate::domain::escrow_notice::Recipients;
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::store::{By, EscrowCaller, EscrowError, EscrowSelector, Escrows, StoreError, WriteError};

fn refused<T>(error: impl Into<EscrowError>) -> Result<T, Failed<EscrowError>> {
    Err(Failed::Refused(error.into()))
}

/// A row of `escrows`.
struct EscrowRow {
    view: EscrowView,
    file: EscrowBytes,
}

const COLUMNS: &str =
    "SELECT number, file, customer, epoch, code, fingerprint, made_at, kept_at, opened_at FROM escrows";

fn read(row: &Row<'_>) -> sql::Result<EscrowRow> {
    let other = |says: &'static str| Error::Unreadable(says.into());
    let file = EscrowBytes::try_from(row.get::<_, Vec<u8>>("file")?).map_err(other)?;
    let second = |time: Time| UtcSecond::new(time.0).map_err(other);
    Ok(EscrowRow {
        view: EscrowView {
            number: row.get::<_, u32>("number")?.try_into().map_err(other)?,
            sha256: file.sha256(),
            bytes: u32::try_from(file.as_bytes().len()).unwrap_or(u32::MAX),
            customer: row.get::<_, Text<_>>("customer")?.0,
            epoch: HostEpoch::new(row.get("epoch")?),
            code: row.get::<_, u32>("code")?.try_into().map_err(other)?,
            fingerprint: row.get::<_, Text<_>>("fingerprint")?.0,
            made_at: second(row.get("made_at")?)?,
            kept_at: row.get::<_, Time>("kept_at")?.0,
            opened_at: row.get::<_, Option<Time>>("opened_at")?.map(second).transpose()?,
        },
        file,
    })
}

fn all(tx: &Connection, host: i64) -> sql::Result<Vec<EscrowView>> {
    tx.prepare_cached(&format!("{COLUMNS} WHERE host = $1 ORDER BY number DESC"))?
        .query_map([host], |row| read(row).map(|kept| kept.view))?
        .collect()
}

fn one(tx: &Tx<'_>, host: i64, number: EscrowNumber) -> sql::Result<Option<EscrowRow>> {
    tx.prepare_cached(&format!("{COLUMNS} WHERE host = $1 AND number = $2"))?
        .query_row(params![host, number.number()], read)
        .optional()
}

/// The selected versions, newest first.
fn some(tx: &Tx<'_>, host: i64, which: EscrowSelector) -> sql::Result<Vec<EscrowRow>> {
    let held = all(tx, host)?;
    let wanted: Vec<EscrowNumber> = match which {
        EscrowSelector::Newest => held.first().map(|view| view.number).into_iter().collect(),
        EscrowSelector::Number(number) => vec![number],
        EscrowSelector::Code(code) => {
            held.iter().find(|view| view.code == code).map(|view| view.number).into_iter().collect()
        }
        EscrowSelector::EachKey => {
            escrow::newest_of_each_key(&held).into_iter().map(|view| view.number).collect()
        }
    };
    wanted.into_iter().filter_map(|number| one(tx, host, number).transpose()).collect()
}

/// Counts one more act; a refused one is undone with the rest.
fn counted(tx: &Tx<'_>, host: i64, act: Act, at: Timestamp) -> Result<(), Failed<EscrowError>> {
    let sql = "SELECT since, count FROM escrow_rate WHERE host = $1 AND act = $2";
    let hour = tx
        .prepare_cached(sql)?
        .query_row(params![host, act.as_str()], |row| {
            Ok(Hour { since: row.get::<_, Time>(0)?.0, count: row.get(1)? })
        })
        .optional()?;
    let hour = count(act, hour, at).or_else(refused)?;
    let sql = "INSERT INTO escrow_rate (host, act, since, count) VALUES ($1, $2, $3, $4)
               ON CONFLICT (host, act) DO UPDATE SET since = excluded.since, count = excluded.count";
    tx.prepare_cached(sql)?.execute(params![host, act.as_str(), Time(hour.since), hour.count])?;
    Ok(())
}

/// One thing that happened to a host's escrows.
fn happened(kind: EventKind, host: HostId, asking: &EscrowCaller, message: String) -> NewEvent {
    NewEvent { at: asking.at, kind, host: Some(host), actor: None, correlation: asking.correlation, message }
}

/// A read of escrow files: reader, owner, correlation id.
pub(super) struct EscrowRead<'a> {
    pub owner: Owner<'a>,
    pub reader: Reader,
    /// The operator, where it is one.
    pub actor: Option<OperatorName>,
    pub at: Timestamp,
    pub correlation: CorrelationId,
}

impl EscrowRead<'_> {
    fn by(&self) -> String {
        match (self.reader, &self.actor) {
            (Reader::Agent, _) => "the box itself".to_owned(),
            (Reader::Restore, _) => "a new box that takes its place".to_owned(),
            (Reader::Operator, Some(name)) => format!("operator {name}"),
            (Reader::Operator, None) => "an operator".to_owned(),
        }
    }

    const fn act(&self) -> Act {
        match self.reader {
            Reader::Agent | Reader::Restore => Act::Read,
            Reader::Operator => Act::Fetch,
        }
    }
}

/// Gives files out: counted, written down, and their customer's notices queued, in this transaction or not at all.
pub(super) fn give_out(
    tx: &Tx<'_>,
    reading: &EscrowRead<'_>,
    which: EscrowSelector,
    reached: &Recipients,
) -> Result<Vec<EscrowFound>, Failed<EscrowError>> {
    let owner = &reading.owner;
    counted(tx, owner.number, reading.act(), reading.at)?;
    let kept = some(tx, owner.number, which)?;
    if kept.is_empty() {
        return refused(EscrowError::None);
    }
    kept.into_iter().map(|kept| notified_of(tx, reading, kept, reached)).collect()
}

/// One file, once its customer's notice is queued.
fn notified_of(
    tx: &Tx<'_>,
    reading: &EscrowRead<'_>,
    kept: EscrowRow,
    reached: &Recipients,
) -> Result<EscrowFound, Failed<EscrowError>> {
    let (view, owner) = (kept.view, &reading.owner);
    if reached.notice(&view.customer) == Notice::Unset {
        return refused(EscrowError::Unset { customer: view.customer });
    }
    let message =
        format!("the wrapped key of {}, version {}, was read by {}", owner.name, view.number, reading.by());
    let notice = EscrowNotice {
        schema: NoticeSchema::V1,
        at: reading.at,
        customer: view.customer.clone(),
        host: owner.id,
        host_name: owner.name.clone(),
        number: view.number,
        code: view.code,
        fingerprint: view.fingerprint.clone(),
        reader: reading.reader,
        message: message.clone(),
    };
    escrow_notices::queue(tx, &notice, reading.correlation)?;
    let event = NewEvent {
        at: reading.at,
        kind: EventKind::EscrowRead,
        host: Some(owner.id),
        actor: reading.actor.clone(),
        correlation: reading.correlation,
        message,
    };
    emit(tx, &event)?;
    Ok(EscrowFound { version: view, file: kept.file })
}

/// All versions, as listed for an operator or the host.
fn listed(tx: &Connection, host: i64, reached: &Recipients) -> sql::Result<EscrowList> {
    let versions = all(tx, host)?;
    let notice = match versions.first() {
        Some(first) => reached.notice(&first.customer),
        None if reached.all_others => Notice::Webhook,
        None => Notice::Unset,
    };
    Ok(EscrowList { versions, notice })
}

pub(super) struct Owner<'a> {
    pub number: i64,
    pub id: HostId,
    pub name: &'a HostName,
}

impl<'a> Owner<'a> {
    fn of(admitted: &'a AuthenticatedHost, asking: &EscrowCaller) -> Self {
        Self { number: admitted.number, id: asking.presented.host, name: &admitted.name }
    }
}

impl Postgres {
    /// Does something for the calling host, once its certificate was judged and the act counted.
    async fn for_host<T: Send + 'static>(
        &self,
        action: &'static str,
        asking: EscrowCaller,
        work: impl FnOnce(&Tx<'_>, &AuthenticatedHost) -> Result<T, Failed<EscrowError>> + Send + 'static,
    ) -> Result<T, WriteError<EscrowError>> {
        // A refusal may freeze the host, and that must stay: the answer of the transaction is itself a result.
        let answer = self.write(action, move |tx| {
            let admitted = match admit(tx, asking.presented, asking.at, asking.correlation)? {
                Ok(admitted) => admitted,
                Err(error) => return Ok(Err(EscrowError::Identity(error))),
            };
            let sql = "UPDATE hosts SET used_generation = greatest(used_generation, $2) WHERE number = $1";
            tx.prepare_cached(sql)?.execute(params![admitted.number, asking.presented.generation])?;
            work(tx, &admitted).map(Ok)
        });
        answer.await?.map_err(WriteError::Refused)
    }
}

#[async_trait]
impl Escrows for Postgres {
    async fn put_escrow(
        &self,
        asking: EscrowCaller,
        put: EscrowPut,
        reached: Recipients,
    ) -> Result<EscrowKept, WriteError<EscrowError>> {
        self.for_host("keep an escrow", asking, move |tx, host| {
            counted(tx, host.number, Act::Write, asking.at)?;
            let view = EscrowView {
                number: put.number,
                sha256: put.file.sha256(),
                bytes: u32::try_from(put.file.as_bytes().len()).unwrap_or(u32::MAX),
                customer: put.customer,
                epoch: put.epoch,
                code: put.code,
                fingerprint: put.fingerprint,
                made_at: put.made_at,
                kept_at: asking.at,
                opened_at: None,
            };
            let notice = reached.notice(&view.customer);
            let goes = match judge_put(&all(tx, host.number)?, &view).or_else(refused)? {
                Put::Keep(goes) => goes,
                Put::Again => {
                    let held = one(tx, host.number, view.number)?;
                    return Ok(EscrowKept { version: held.map_or(view, |held| held.view), notice });
                }
            };
            if let Some(goes) = goes {
                let sql = "DELETE FROM escrows WHERE host = $1 AND number = $2";
                tx.prepare_cached(sql)?.execute(params![host.number, goes.number()])?;
                let message = format!("escrow {goes} of {} went for a newer one", host.name);
                emit(tx, &happened(EventKind::EscrowDropped, asking.presented.host, &asking, message))?;
            }
            insert(tx, host.number, &view, &put.file)?;
            let (number, code) = (view.number, view.code);
            let message = format!("{} left escrow {number}, which code {code} opens", host.name);
            emit(tx, &happened(EventKind::EscrowKept, asking.presented.host, &asking, message))?;
            Ok(EscrowKept { version: view, notice })
        })
        .await
    }

    async fn escrows(
        &self,
        asking: EscrowCaller,
        reached: Recipients,
    ) -> Result<EscrowList, WriteError<EscrowError>> {
        self.for_host("list escrows", asking, move |tx, host| {
            counted(tx, host.number, Act::Look, asking.at)?;
            Ok(listed(tx, host.number, &reached)?)
        })
        .await
    }

    async fn prove_escrow(
        &self,
        asking: EscrowCaller,
        number: EscrowNumber,
        nonce: Nonce,
    ) -> Result<EscrowProof, WriteError<EscrowError>> {
        self.for_host("prove an escrow", asking, move |tx, host| {
            counted(tx, host.number, Act::Look, asking.at)?;
            let kept = one(tx, host.number, number)?;
            let Some(kept) = kept else { return refused(EscrowError::None) };
            Ok(EscrowProof { number, proof: escrow::proof(&nonce, &kept.file) })
        })
        .await
    }

    async fn escrow_opened(
        &self,
        asking: EscrowCaller,
        number: EscrowNumber,
        opened: EscrowOpened,
        reached: Recipients,
    ) -> Result<EscrowKept, WriteError<EscrowError>> {
        self.for_host("write down that an escrow was opened", asking, move |tx, host| {
            counted(tx, host.number, Act::Write, asking.at)?;
            let sql =
                "UPDATE escrows SET opened_at = greatest(opened_at, $3) WHERE host = $1 AND number = $2";
            tx.prepare_cached(sql)?.execute(params![host.number, number.number(), Time(opened.at.at())])?;
            let kept = one(tx, host.number, number)?;
            let Some(kept) = kept else { return refused(EscrowError::None) };
            let message = format!("{} says that escrow {number} was opened with its code", host.name);
            emit(tx, &happened(EventKind::EscrowOpened, asking.presented.host, &asking, message))?;
            Ok(EscrowKept { notice: reached.notice(&kept.view.customer), version: kept.view })
        })
        .await
    }

    async fn read_escrow(
        &self,
        asking: EscrowCaller,
        which: EscrowSelector,
        reached: Recipients,
    ) -> Result<EscrowFound, WriteError<EscrowError>> {
        self.for_host("read an escrow", asking, move |tx, host| {
            let reading = EscrowRead {
                owner: Owner::of(host, &asking),
                reader: Reader::Agent,
                actor: None,
                at: asking.at,
                correlation: asking.correlation,
            };
            let found = give_out(tx, &reading, which, &reached)?;
            found.into_iter().next().map_or_else(|| refused(EscrowError::None), Ok)
        })
        .await
    }

    async fn host_escrows(
        &self,
        host: HostRef,
        reached: Recipients,
    ) -> Result<Option<EscrowList>, StoreError> {
        self.read("list a host's escrows", move |connection| {
            let Some(record) = host_row::find(connection, &host)? else { return Ok(None) };
            listed(connection, record.number, &reached).map(Some)
        })
        .await
    }

    async fn fetch_escrow(
        &self,
        by: By,
        host: HostRef,
        which: EscrowSelector,
        reached: Recipients,
    ) -> Result<Option<EscrowFiles>, WriteError<EscrowError>> {
        self.mutate("read a host's escrow", by, move |tx, by| {
            let Some(record) = host_row::find(tx, &host)? else { return Ok(None) };
            let view = record.view;
            let reading = EscrowRead {
                owner: Owner { number: record.number, id: view.id, name: &view.name },
                reader: Reader::Operator,
                actor: Some(by.operator.clone()),
                at: by.at,
                correlation: by.correlation,
            };
            Ok(Some(EscrowFiles { files: give_out(tx, &reading, which, &reached)? }))
        })
        .await
    }
}

fn insert(tx: &Tx<'_>, host: i64, view: &EscrowView, file: &EscrowBytes) -> sql::Result<()> {
    let sql = "INSERT INTO escrows (host, number, file, customer, epoch, code, fingerprint, made_at, kept_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    tx.prepare_cached(sql)?.execute(params![
        host,
        view.number.number(),
        file.as_bytes(),
        view.customer.as_str(),
        view.epoch.number(),
        view.code.number(),
        view.fingerprint.as_str(),
        Time(view.made_at.at()),
        Time(view.kept_at),
    ])?;
    Ok(())
}
