//! Wrapped backup keys: put in versions, listed, proved, and read with a notice to the customer.
//!
//! Every call is a write: it is counted, and a read is written down, with its notice, in the transaction that gives the
//! file. So no file leaves the hub of which nobody would hear.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::notice::{EscrowNotice, NoticeSchema, Reader};
use holdfast_protocol::escrow::{
    self, EscrowBytes, EscrowFound, EscrowKept, EscrowList, EscrowNumber, EscrowOpened, EscrowProof,
    EscrowPut, EscrowView, Notice,
};
use holdfast_protocol::id::{CorrelationId, CustomerId, HostId, HostName};
use holdfast_protocol::job::{HostEpoch, Nonce, UtcSecond};
use jiff::Timestamp;
use rusqlite::types::FromSqlError;
use rusqlite::{OptionalExtension as _, Row, params};

use super::checkin::{Admitted, admit};
use super::columns::{Time, Word};
use super::events::emit;
use super::notices;
use super::writer::{Shape, Tx};
use super::{Failed, Store, WriteError};
use crate::domain::escrow::{Act, Hour, Put, PutError, TooOften, count, judge_put};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::identity::{IdentityError, Presented};
use crate::domain::notice::Reached;

/// Which host asks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// The certificate it asks with.
    pub presented: Presented,
    /// Now.
    pub at: Timestamp,
    /// The wish it belongs to.
    pub correlation: CorrelationId,
}

/// Which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The newest.
    Newest,
    /// This one.
    Number(EscrowNumber),
}

/// Why a host does not get what it asks for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EscrowError {
    /// Its certificate is not served.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The version is not kept.
    #[error(transparent)]
    Put(#[from] PutError),
    /// Too often.
    #[error(transparent)]
    TooOften(#[from] TooOften),
    /// There is none.
    #[error("there is no such escrow of this host here: `agentd escrow create` makes one")]
    None,
    /// Nobody would be told.
    #[error(
        "the escrow is not read, because nobody would be told of it: write an address for customer {customer} under \
         [[escrow_notice]] in hub.toml, start the hub again, and ask again"
    )]
    Unset {
        /// Whose it is.
        customer: CustomerId,
    },
}

impl EscrowError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Identity(error) => error.code(),
            Self::Put(put) => put.code(),
            Self::TooOften(_) => ErrorCode::RateLimited,
            Self::None => ErrorCode::NotFound,
            Self::Unset { .. } => ErrorCode::NoticeUnset,
        }
    }
}

fn refused<T>(error: impl Into<EscrowError>) -> Result<T, Failed<EscrowError>> {
    Err(Failed::Refused(error.into()))
}

/// A row of `escrows`.
struct Kept {
    view: EscrowView,
    file: EscrowBytes,
}

const COLUMNS: &str =
    "SELECT number, file, customer, epoch, code, fingerprint, made_at, kept_at, opened_at FROM escrows";

fn read(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let other = |says: &'static str| rusqlite::Error::from(FromSqlError::Other(says.into()));
    let file = EscrowBytes::try_from(row.get::<_, Vec<u8>>("file")?).map_err(other)?;
    let second = |time: Time| UtcSecond::new(time.0).map_err(other);
    Ok(Kept {
        view: EscrowView {
            number: row.get::<_, u32>("number")?.try_into().map_err(other)?,
            sha256: file.sha256(),
            bytes: u32::try_from(file.as_bytes().len()).unwrap_or(u32::MAX),
            customer: row.get::<_, Word<_>>("customer")?.0,
            epoch: HostEpoch::new(row.get("epoch")?),
            code: row.get::<_, u32>("code")?.try_into().map_err(other)?,
            fingerprint: row.get::<_, Word<_>>("fingerprint")?.0,
            made_at: second(row.get("made_at")?)?,
            kept_at: row.get::<_, Time>("kept_at")?.0,
            opened_at: row.get::<_, Option<Time>>("opened_at")?.map(second).transpose()?,
        },
        file,
    })
}

fn all(tx: &Tx<'_>, host: i64) -> rusqlite::Result<Vec<EscrowView>> {
    tx.prepare_cached(&format!("{COLUMNS} WHERE host = ?1 ORDER BY number DESC"))?
        .query_map([host], |row| read(row).map(|kept| kept.view))?
        .collect()
}

fn one(tx: &Tx<'_>, host: i64, which: Which) -> rusqlite::Result<Option<Kept>> {
    let number = match which {
        Which::Newest => None,
        Which::Number(number) => Some(number.number()),
    };
    tx.prepare_cached(&format!(
        "{COLUMNS} WHERE host = ?1 AND (?2 IS NULL OR number = ?2) ORDER BY number DESC LIMIT 1"
    ))?
    .query_row(params![host, number], read)
    .optional()
}

/// Counts one more act; a refused one is undone with the rest.
fn counted(tx: &Tx<'_>, host: i64, act: Act, at: Timestamp) -> Result<(), Failed<EscrowError>> {
    let sql = "SELECT since, count FROM escrow_rate WHERE host = ?1 AND act = ?2";
    let hour = tx
        .prepare_cached(sql)?
        .query_row(params![host, act.as_str()], |row| {
            Ok(Hour { since: row.get::<_, Time>(0)?.0, count: row.get(1)? })
        })
        .optional()?;
    let hour = count(act, hour, at).or_else(refused)?;
    let sql = "INSERT INTO escrow_rate (host, act, since, count) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (host, act) DO UPDATE SET since = excluded.since, count = excluded.count";
    tx.prepare_cached(sql)?.execute(params![host, act.as_str(), Time(hour.since), hour.count])?;
    Ok(())
}

/// One thing that happened to a host's escrows.
fn happened(kind: EventKind, host: HostId, asking: &Asking, message: String) -> NewEvent {
    NewEvent { at: asking.at, kind, host: Some(host), actor: None, correlation: asking.correlation, message }
}

/// Gives a file out: counted, written down, and its customer's notice queued, in this transaction or not at all.
pub(super) fn give_out(
    tx: &Tx<'_>,
    host: &Owner<'_>,
    which: Which,
    reader: Reader,
    asking: &Asking,
    reached: &Reached,
) -> Result<EscrowFound, Failed<EscrowError>> {
    counted(tx, host.number, Act::Read, asking.at)?;
    let Some(kept) = one(tx, host.number, which)? else { return refused(EscrowError::None) };
    let view = kept.view;
    if reached.notice(&view.customer) == Notice::Unset {
        return refused(EscrowError::Unset { customer: view.customer });
    }
    let by = match reader {
        Reader::Agent => "the box itself",
        Reader::Restore => "a new box that takes its place",
    };
    let message = format!("the wrapped key of {}, version {}, was read by {by}", host.name, view.number);
    let notice = EscrowNotice {
        schema: NoticeSchema::V1,
        at: asking.at,
        customer: view.customer.clone(),
        host: host.id,
        host_name: host.name.clone(),
        number: view.number,
        code: view.code,
        fingerprint: view.fingerprint.clone(),
        reader,
        message: message.clone(),
    };
    notices::queue(tx, &notice, asking.correlation)?;
    emit(tx, &happened(EventKind::EscrowRead, host.id, asking, message))?;
    Ok(EscrowFound { version: view, file: kept.file })
}

/// Whose escrows.
pub(super) struct Owner<'a> {
    pub number: i64,
    pub id: HostId,
    pub name: &'a HostName,
}

impl<'a> Owner<'a> {
    fn of(admitted: &'a Admitted, asking: &Asking) -> Self {
        Self { number: admitted.number, id: asking.presented.host, name: &admitted.name }
    }
}

impl Store {
    /// Does something for the host that asks, once its certificate was judged and the act counted.
    async fn for_host<T: Send + 'static>(
        &self,
        action: &'static str,
        asking: Asking,
        work: impl FnOnce(&Tx<'_>, &Admitted) -> Result<T, Failed<EscrowError>> + Send + 'static,
    ) -> Result<T, WriteError<EscrowError>> {
        // A refusal may freeze the host, and that must stay: the answer of the transaction is itself a result.
        let answer = self.write(action, Shape::Several, move |tx| {
            let admitted = match admit(tx, asking.presented, asking.at, asking.correlation)? {
                Ok(admitted) => admitted,
                Err(error) => return Ok(Err(EscrowError::Identity(error))),
            };
            let sql = "UPDATE hosts SET used_generation = max(used_generation, ?2) WHERE number = ?1";
            tx.prepare_cached(sql)?.execute(params![admitted.number, asking.presented.generation])?;
            work(tx, &admitted).map(Ok)
        });
        answer.await?.map_err(WriteError::Refused)
    }

    /// Keeps a version; the same again is the same answer. Its form was judged before.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn put_escrow(
        &self,
        asking: Asking,
        put: EscrowPut,
        reached: Reached,
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
                    let held = one(tx, host.number, Which::Number(view.number))?;
                    return Ok(EscrowKept { version: held.map_or(view, |held| held.view), notice });
                }
            };
            if let Some(goes) = goes {
                let sql = "DELETE FROM escrows WHERE host = ?1 AND number = ?2";
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

    /// Lists the versions.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn escrows(
        &self,
        asking: Asking,
        reached: Reached,
    ) -> Result<EscrowList, WriteError<EscrowError>> {
        self.for_host("list escrows", asking, move |tx, host| {
            counted(tx, host.number, Act::Look, asking.at)?;
            let versions = all(tx, host.number)?;
            let notice = match versions.first() {
                Some(first) => reached.notice(&first.customer),
                None if reached.all_others => Notice::Webhook,
                None => Notice::Unset,
            };
            Ok(EscrowList { versions, notice })
        })
        .await
    }

    /// Proves that a version is held, without giving it out.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn prove_escrow(
        &self,
        asking: Asking,
        number: EscrowNumber,
        nonce: Nonce,
    ) -> Result<EscrowProof, WriteError<EscrowError>> {
        self.for_host("prove an escrow", asking, move |tx, host| {
            counted(tx, host.number, Act::Look, asking.at)?;
            let kept = one(tx, host.number, Which::Number(number))?;
            let Some(kept) = kept else { return refused(EscrowError::None) };
            Ok(EscrowProof { number, proof: escrow::proof(&nonce, &kept.file) })
        })
        .await
    }

    /// Writes down that a holder opened a version. The latest time counts.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn escrow_opened(
        &self,
        asking: Asking,
        number: EscrowNumber,
        opened: EscrowOpened,
        reached: Reached,
    ) -> Result<EscrowKept, WriteError<EscrowError>> {
        self.for_host("write down that an escrow was opened", asking, move |tx, host| {
            counted(tx, host.number, Act::Write, asking.at)?;
            let sql = "UPDATE escrows SET opened_at = max(coalesce(opened_at, ?3), ?3) WHERE host = ?1 AND number = ?2";
            tx.prepare_cached(sql)?.execute(params![host.number, number.number(), Time(opened.at.at())])?;
            let kept = one(tx, host.number, Which::Number(number))?;
            let Some(kept) = kept else { return refused(EscrowError::None) };
            let message = format!("{} says that escrow {number} was opened with its code", host.name);
            emit(tx, &happened(EventKind::EscrowOpened, asking.presented.host, &asking, message))?;
            Ok(EscrowKept { notice: reached.notice(&kept.view.customer), version: kept.view })
        })
        .await
    }

    /// Gives a version out, and queues the notice of it.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn read_escrow(
        &self,
        asking: Asking,
        which: Which,
        reached: Reached,
    ) -> Result<EscrowFound, WriteError<EscrowError>> {
        self.for_host("read an escrow", asking, move |tx, host| {
            give_out(tx, &Owner::of(host, &asking), which, Reader::Agent, &asking, &reached)
        })
        .await
    }
}

fn insert(tx: &Tx<'_>, host: i64, view: &EscrowView, file: &EscrowBytes) -> rusqlite::Result<()> {
    let sql = "INSERT INTO escrows (host, number, file, customer, epoch, code, fingerprint, made_at, kept_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
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
