//! Recovery codes by their numbers, and the wrapped keys.
//!
//! Input: the progress of making a code, a wrapped key once its words were typed back, the state of each copy. Output:
//! all of it. A number is used up once its code is kept; an abandoned attempt leaves the number to the next one. Each
//! step is one transaction with its line in the audit. No step removes a code that opened a key before. Deliberately
//! absent: the codes, and anything that could open a file.

mod handed;

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::EscrowNumber;
use holdfast_protocol::id::TargetName;
use holdfast_recovery::escrow::{CodeNumber, Context, EscrowFile, Record};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction};

use super::columns::{from_json, json, micros, parsed, time};
use super::{Part, Store, StoreError, audit};
use agent_core::model::escrow::{CodeOrigin, CodeRecord, CodeStatus, Codes, CopyPlace, CopyRecord, KeptFile};
use agent_core::plan::escrow::{self, NotRetired, Purpose};

pub use handed::HandedCode;

/// Why a step was not taken. Nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum EscrowError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is a code for this key.
    #[error(
        "code {0} opens this key already: run `agentd escrow drill` to see that it does, or `agentd escrow rotate` to make \
         another"
    )]
    HasCode(CodeNumber),
    /// There is none that could be replaced.
    #[error("there is no code for this key yet: run `agentd escrow create`")]
    NoCode,
    /// All numbers are used up.
    #[error("no number is left for another code")]
    NoNumber,
    /// There is no such code.
    #[error("there is no code {0} on this box: `agentd escrow status` shows all")]
    Unknown(CodeNumber),
    /// Its present step does not allow this one.
    #[error(
        "code {code} is not {wanted}: somebody else has gone on with it, or it was begun anew; start again"
    )]
    WrongStatus {
        code: CodeNumber,
        /// The state that it should have.
        wanted: &'static str,
    },
    /// It may not be retired.
    #[error(transparent)]
    NotRetired(#[from] NotRetired),
}

impl EscrowError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Store(_) => ErrorCode::Unavailable,
            Self::HasCode(_) => ErrorCode::NameTaken,
            Self::NoCode | Self::Unknown(_) => ErrorCode::NotFound,
            Self::NoNumber => ErrorCode::Size,
            Self::WrongStatus { .. } => ErrorCode::EscrowOther,
            Self::NotRetired(_) => ErrorCode::Forbidden,
        }
    }
}

/// The purpose of a new code, without its number.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The record to keep. Its number is ignored.
    pub record: Record,
    /// Whose backups the key is of.
    pub target: TargetName,
    /// The first for its key, or another.
    pub purpose: Purpose,
    /// The operator who requested it.
    pub by: String,
}

struct Raw {
    texts: [String; 2],
    begun_at: i64,
    steps: [Option<i64>; 4],
}

const COLUMNS: &str = "target, record, begun_at, shown_at, kept_at, drilled_at, retired_at";

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?],
        begun_at: row.get(2)?,
        steps: [row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?],
    })
}

impl Raw {
    fn record(self) -> Result<CodeRecord, StoreError> {
        let [target, record] = self.texts;
        let [shown, kept, drilled, retired] =
            [self.steps[0], self.steps[1], self.steps[2], self.steps[3]].map(|at| at.map(time).transpose());
        let status = match (shown?, kept?, retired?) {
            (_, _, Some(at)) => CodeStatus::Retired { at },
            (_, Some(at), None) => CodeStatus::Kept { at },
            (Some(at), None, None) => CodeStatus::Shown { at },
            (None, None, None) => CodeStatus::Begun,
        };
        Ok(CodeRecord {
            record: from_json("what a code is for", &record)?,
            target: parsed("a target", &target)?,
            status,
            begun_at: time(self.begun_at)?,
            drilled_at: drilled?,
            origin: CodeOrigin::Made,
        })
    }
}

pub(super) fn codes(connection: &Connection) -> Result<Vec<CodeRecord>, StoreError> {
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM escrow ORDER BY code"))
        .and_then(|mut select| select.query_map([], raw)?.collect())
        .map_err(StoreError::sqlite("read the codes"))?;
    let handed = handed::numbers(connection)?;
    rows.into_iter()
        .map(|row| {
            let code = row.record()?;
            let origin =
                if handed.contains(&code.number()) { CodeOrigin::HandedOver } else { CodeOrigin::Made };
            Ok(CodeRecord { origin, ..code })
        })
        .collect()
}

fn copies(connection: &Connection) -> Result<Vec<CopyRecord>, StoreError> {
    let rows: Vec<(u32, String, Option<String>, i64)> = connection
        .prepare_cached("SELECT code, place, problem, seen_at FROM escrow_copy ORDER BY code, place")
        .and_then(|mut select| {
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read how copies stand"))?;
    rows.into_iter()
        .map(|(code, place, problem, seen_at)| {
            let code = number(code)?;
            Ok(CopyRecord { code, place: parsed("a place", &place)?, problem, seen_at: time(seen_at)? })
        })
        .collect()
}

fn number(code: u32) -> Result<CodeNumber, StoreError> {
    CodeNumber::try_from(code).map_err(StoreError::unreadable("a code's number"))
}

fn note(transaction: &Transaction<'_>, at: Timestamp, action: &str, detail: &str) -> Result<(), StoreError> {
    audit::append(transaction, &audit::Line { at, action, guest: None, operation: None, detail })
}

fn begin(transaction: &Transaction<'_>, goal: Goal, at: Timestamp) -> Result<Record, EscrowError> {
    transaction
        .execute("DELETE FROM escrow WHERE kept_at IS NULL", [])
        .map_err(StoreError::sqlite("let a code go that came to nothing"))?;
    let known = codes(transaction)?;
    match (goal.purpose, escrow::current(&known, &goal.record.fingerprint)) {
        (Purpose::First, Some(current)) => return Err(EscrowError::HasCode(current.number())),
        (Purpose::Another, None) => return Err(EscrowError::NoCode),
        (Purpose::First, None) | (Purpose::Another, Some(_)) => {}
    }
    let last = known.last().map_or(0, |code| code.number().number());
    let code = CodeNumber::try_from(last + 1).map_err(|_| EscrowError::NoNumber)?;
    let record = Record { context: Context { code, ..goal.record.context }, ..goal.record };
    transaction
        .execute(
            "INSERT INTO escrow (code, target, record, begun_at) VALUES (?1, ?2, ?3, ?4)",
            rusqlite::params![
                code.number(),
                goal.target.as_str(),
                json("what a code is for", &record)?,
                micros(at)
            ],
        )
        .map_err(StoreError::sqlite("begin a code"))?;
    let detail = format!("code {code}, for key {} of {}, by {}", record.fingerprint, goal.target, goal.by);
    note(transaction, at, "escrow_begun", &detail)?;
    Ok(record)
}

/// Takes one step of a code. It is allowed from exactly one state.
fn step(
    transaction: &Transaction<'_>,
    code: CodeNumber,
    (sql, wanted): (&str, &'static str),
    values: &[&dyn ToSql],
) -> Result<(), EscrowError> {
    let number: &dyn ToSql = &code.number();
    let all: Vec<&dyn ToSql> = [number].into_iter().chain(values.iter().copied()).collect();
    let changed = transaction.execute(sql, all.as_slice());
    match changed.map_err(StoreError::sqlite("go on with a code"))? {
        0 if codes(transaction)?.iter().any(|known| known.number() == code) => {
            Err(EscrowError::WrongStatus { code, wanted })
        }
        0 => Err(EscrowError::Unknown(code)),
        _ => Ok(()),
    }
}

impl Store {
    /// All codes and copies.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn escrow(&self) -> Result<Codes, StoreError> {
        self.read(|connection| Ok(Codes { codes: codes(connection)?, copies: copies(connection)? })).await
    }

    /// The wrapped keys that are kept, by the numbers of their codes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn escrow_files(&self) -> Result<BTreeMap<CodeNumber, KeptFile>, StoreError> {
        self.read(|connection| {
            let rows: Vec<(u32, u32, String)> = connection
                .prepare_cached("SELECT code, version, file FROM escrow WHERE file IS NOT NULL")
                .and_then(|mut select| {
                    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
                })
                .map_err(StoreError::sqlite("read the wrapped keys"))?;
            let mut known: BTreeMap<CodeNumber, CodeRecord> =
                codes(connection)?.into_iter().map(|code| (code.number(), code)).collect();
            rows.into_iter()
                .filter_map(|(code, version, text)| {
                    let kept = number(code).and_then(|code| {
                        let Some(record) = known.remove(&code) else { return Ok(None) };
                        let file = EscrowFile::parse(text.as_bytes());
                        let file = file.map_err(StoreError::unreadable("a wrapped key"))?;
                        let version = EscrowNumber::try_from(version);
                        let version = version.map_err(StoreError::unreadable("a version"))?;
                        Ok(Some((code, KeptFile { code: record, version, file })))
                    });
                    kept.transpose()
                })
                .collect()
        })
        .await
    }

    /// The last version that a wrapped key of this host was given, even if it was given up since.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn last_version(&self) -> Result<Option<EscrowNumber>, StoreError> {
        self.read(|connection| {
            let last: Option<u32> = connection
                .query_row("SELECT max(version) FROM escrow", [], |row| row.get(0))
                .map_err(StoreError::sqlite("read the last version"))?;
            last.map(EscrowNumber::try_from).transpose().map_err(StoreError::unreadable("a version"))
        })
        .await
    }

    /// Gives a wrapped key another version, behind all others and at least this: the hub lost the one that it was, or holds
    /// something else in its place.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn renew_version(
        &self,
        code: CodeNumber,
        behind: EscrowNumber,
        at: Timestamp,
    ) -> Result<EscrowNumber, EscrowError> {
        self.write(Part::Nothing, "give a wrapped key another version", move |transaction| {
            let failed = || StoreError::sqlite("give a wrapped key another version");
            let last: u32 = transaction
                .query_row("SELECT coalesce(max(version), 0) FROM escrow", [], |row| row.get(0))
                .map_err(failed())?;
            let next = last.max(behind.number()) + 1;
            let version = EscrowNumber::try_from(next).map_err(|_| EscrowError::NoNumber)?;
            transaction
                .execute(
                    "UPDATE escrow SET version = ?2 WHERE code = ?1 AND file IS NOT NULL",
                    (code.number(), version.number()),
                )
                .map_err(failed())?;
            let detail = format!("code {code}: version {version} from now on");
            note(transaction, at, "escrow_version", &detail)?;
            Ok(version)
        })
        .await
    }

    /// Gives a code its number, before anything is made.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn begin_escrow(&self, goal: Goal, at: Timestamp) -> Result<Record, EscrowError> {
        self.write(Part::Escrow, "begin a code", move |transaction| begin(transaction, goal, at)).await
    }

    /// Notes that the words of a code are about to be shown; once.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn note_shown(
        &self,
        (code, attempt): (CodeNumber, Timestamp),
        by: String,
        at: Timestamp,
    ) -> Result<(), EscrowError> {
        let sql = "UPDATE escrow SET shown_at = ?2 WHERE code = ?1 AND begun_at = ?3 AND shown_at IS NULL";
        self.write(Part::Escrow, "note that a code is shown", move |transaction| {
            step(transaction, code, (sql, "one that was not shown yet"), &[&micros(at), &micros(attempt)])?;
            Ok(note(transaction, at, "escrow_shown", &format!("code {code}, to {by}"))?)
        })
        .await
    }

    /// Keeps a wrapped key whose words were typed back. From now on this code opens the key; earlier codes still do.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn keep_escrow(
        &self,
        (code, attempt): (CodeNumber, Timestamp),
        file: EscrowFile,
        by: String,
        at: Timestamp,
    ) -> Result<(), EscrowError> {
        let sql = "UPDATE escrow SET kept_at = ?2, file = ?3, version = (SELECT coalesce(max(version), 0) + 1 FROM escrow)
                   WHERE code = ?1 AND begun_at = ?4 AND shown_at IS NOT NULL AND kept_at IS NULL";
        self.write(Part::Escrow, "keep a wrapped key", move |transaction| {
            step(
                transaction,
                code,
                (sql, "one whose words were just shown"),
                &[&micros(at), &file.to_text(), &micros(attempt)],
            )?;
            Ok(note(transaction, at, "escrow_kept", &format!("code {code}, its words typed back by {by}"))?)
        })
        .await
    }

    /// Notes that the words of a code were typed and opened its file.
    ///
    /// # Errors
    /// [`EscrowError`].
    pub async fn note_drill(&self, code: CodeNumber, by: String, at: Timestamp) -> Result<(), EscrowError> {
        let sql = "UPDATE escrow SET drilled_at = max(coalesce(drilled_at, 0), ?2) WHERE code = ?1 AND file IS NOT NULL";
        self.write(Part::Escrow, "note a drill", move |transaction| {
            step(transaction, code, (sql, "one that opens a key"), &[&micros(at)])?;
            Ok(note(transaction, at, "escrow_drilled", &format!("code {code}, by {by}"))?)
        })
        .await
    }

    /// Gives up a code that a newer one replaced: its file is deleted here, and its copies later.
    ///
    /// # Errors
    /// [`EscrowError`]; it stays then.
    pub async fn retire_escrow(
        &self,
        code: CodeNumber,
        by: String,
        at: Timestamp,
    ) -> Result<(), EscrowError> {
        let sql = "UPDATE escrow SET retired_at = ?2, file = NULL WHERE code = ?1 AND file IS NOT NULL";
        self.write(Part::Escrow, "retire a code", move |transaction| {
            escrow::may_retire(&codes(transaction)?, code, at)?;
            step(transaction, code, (sql, "one that opens a key"), &[&micros(at)])?;
            Ok(note(transaction, at, "escrow_retired", &format!("code {code}, by {by}"))?)
        })
        .await
    }

    /// Notes the state of a copy, with a line in the audit when it changed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_copy(&self, seen: CopyRecord) -> Result<(), StoreError> {
        let CopyRecord { code, place, problem, seen_at } = seen;
        self.write(Part::Escrow, "note how a copy stands", move |transaction| {
            let before: Option<Option<String>> = transaction
                .query_row(
                    "SELECT problem FROM escrow_copy WHERE code = ?1 AND place = ?2",
                    (code.number(), place.to_string()),
                    |row| row.get(0),
                )
                .optional()
                .map_err(StoreError::sqlite("read how a copy stood"))?;
            transaction
                .execute(
                    "INSERT OR REPLACE INTO escrow_copy (code, place, problem, seen_at) VALUES (?1, ?2, ?3, ?4)",
                    rusqlite::params![code.number(), place.to_string(), &problem, micros(seen_at)],
                )
                .map_err(StoreError::sqlite("note how a copy stands"))?;
            if before.as_ref() == Some(&problem) {
                return Ok(());
            }
            let (action, what) = match &problem {
                None => ("escrow_copy_right", "is as it should be"),
                Some(problem) => ("escrow_copy_wrong", problem.as_str()),
            };
            note(transaction, seen_at, action, &format!("code {code} at {place}: {what}"))
        })
        .await
    }

    /// Forgets a copy that is no longer wanted, after it was removed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_copy(
        &self,
        code: CodeNumber,
        place: CopyPlace,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Escrow, "forget a copy", move |transaction| {
            let gone = transaction
                .execute(
                    "DELETE FROM escrow_copy WHERE code = ?1 AND place = ?2",
                    (code.number(), place.to_string()),
                )
                .map_err(StoreError::sqlite("forget a copy"))?;
            if gone == 0 {
                return Ok(());
            }
            note(transaction, at, "escrow_copy_gone", &format!("code {code} at {place}: taken away"))
        })
        .await
    }
}
