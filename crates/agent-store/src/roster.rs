//! The roster, epoch and latest time that jobs are judged by.

use holdfast_protocol::audit::hex;
use holdfast_protocol::job::HostEpoch;
use holdfast_protocol::report::{AuditHead, TrustSection};
use holdfast_trust::growth::GrowthLimits;
use holdfast_trust::limits::BackupLimits;
use holdfast_trust::{Operators, Policy, Roster};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};
use sha2::{Digest, Sha256};

use super::columns::{micros, note_time, time};
use super::{Part, Store, StoreError, audit, withdrawn};
use agent_core::model::limits;

/// An operators file and a policy, as texts. An empty policy is the built-in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterTexts {
    pub operators: String,
    pub policy: String,
}

/// What a job is checked against, besides the host's own id.
#[derive(Clone, Debug)]
pub struct TrustState {
    /// Who may sign; none, where no operators file is installed.
    pub roster: Option<Roster>,
    /// Which life of this file it is.
    pub epoch: HostEpoch,
    /// The latest time that was seen.
    pub latest: Timestamp,
    /// When the hub last served this host, by the same kind of time as `latest`.
    pub served: Option<Timestamp>,
}

/// What became of the files that root installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaidDown {
    /// They are in use from now on.
    Taken,
    /// They were in use already.
    Same,
    /// A signed update of this version came after them; they are not in use.
    Older(u32),
}

/// Why files of root's are not taken.
#[derive(Debug, thiserror::Error)]
pub enum LayDownError {
    /// The operators file.
    #[error(transparent)]
    Operators(#[from] holdfast_trust::operators::OperatorsError),
    #[error(transparent)]
    Policy(#[from] holdfast_trust::policy::PolicyError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads two texts as the roster they make.
fn read(texts: &RosterTexts) -> Result<Roster, LayDownError> {
    let operators = Operators::parse(&texts.operators)?;
    let policy = match texts.policy.as_str() {
        "" => Policy::first(),
        text => Policy::parse(text, &operators)?,
    };
    Ok(Roster { operators, policy })
}

struct Row {
    version: u32,
    texts: RosterTexts,
    by: String,
}

fn newest(connection: &Connection) -> Result<Option<Row>, StoreError> {
    connection
        .prepare_cached("SELECT version, operators, policy, by FROM roster ORDER BY version DESC LIMIT 1")
        .and_then(|mut select| {
            let read = |row: &rusqlite::Row<'_>| {
                let texts = RosterTexts { operators: row.get(1)?, policy: row.get(2)? };
                Ok(Row { version: row.get(0)?, texts, by: row.get(3)? })
            };
            select.query_row([], read).optional()
        })
        .map_err(StoreError::sqlite("read who may sign"))
}

/// Puts operators and policy into use, with the line of the audit that says by whom.
pub(super) fn put(
    transaction: &Transaction<'_>,
    version: u32,
    texts: &RosterTexts,
    by: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT OR REPLACE INTO roster (version, operators, policy, at, by) VALUES (?1, ?2, ?3, ?4, ?5)",
            (version, &texts.operators, &texts.policy, micros(at), by),
        )
        .map_err(StoreError::sqlite("write who may sign"))?;
    let sha = |text: &str| hex(&Sha256::digest(text.as_bytes()));
    let detail = format!(
        "version {version} by {by}: operators {}, policy {}",
        sha(&texts.operators),
        sha(&texts.policy)
    );
    audit::append(
        transaction,
        &audit::Line { at, action: "operators_changed", guest: None, operation: None, detail: &detail },
    )
}

/// The first line of a life, where there is none yet.
pub(super) fn begin_life(connection: &Connection, now: Timestamp) -> Result<(), rusqlite::Error> {
    connection
        .execute("INSERT OR IGNORE INTO life (one, epoch, heard) VALUES (1, ?1, 0)", [epoch_at(now)])?;
    Ok(())
}

/// The number of a life is the second it began in: no two have the same, whatever was set back in between.
fn epoch_at(now: Timestamp) -> u32 {
    u32::try_from(now.as_second()).unwrap_or(0)
}

fn life(connection: &Connection) -> Result<(u32, i64), StoreError> {
    let found: Option<(u32, i64)> = connection
        .prepare_cached("SELECT epoch, heard FROM life")
        .and_then(|mut select| select.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(StoreError::sqlite("read which life this is"))?;
    // A file begun after damage has none.
    Ok(found.unwrap_or((0, 0)))
}

pub(super) fn trust_state(connection: &Connection) -> Result<TrustState, StoreError> {
    let roster = newest(connection)?.map(|row| read(&row.texts)).transpose();
    let roster = roster.map_err(StoreError::unreadable("who may sign"))?;
    let latest: Option<i64> = connection
        .prepare_cached("SELECT value FROM counter WHERE key = 'latest_time'")
        .and_then(|mut select| select.query_row([], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read the latest time"))?;
    let latest = latest.map_or(Ok(Timestamp::UNIX_EPOCH), time)?;
    let served = withdrawn::served(connection)?;
    Ok(TrustState { roster, epoch: HostEpoch::new(life(connection)?.0), latest, served })
}

/// The backup limits for documents without a signature.
pub(super) fn backup_limits(connection: &Connection) -> Result<BackupLimits, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT policy FROM roster ORDER BY version DESC LIMIT 1")
        .and_then(|mut select| select.query_row([], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read the limits of backups"))?;
    Policy::backups_of(text.as_deref().unwrap_or_default())
        .map_err(StoreError::unreadable("the limits of backups"))
}

/// The growth limits for documents without a signature.
pub(super) fn growth_limits(connection: &Connection) -> Result<GrowthLimits, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT policy FROM roster ORDER BY version DESC LIMIT 1")
        .and_then(|mut select| select.query_row([], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read the limits of growth"))?;
    Policy::growth_of(text.as_deref().unwrap_or_default())
        .map_err(StoreError::unreadable("the limits of growth"))
}

fn section(connection: &Connection) -> Result<TrustSection, StoreError> {
    let newest = newest(connection)?;
    let sha = |text: &str| hex(&Sha256::digest(text.as_bytes()));
    let (number, chain) = audit::head(connection)?;
    Ok(TrustSection {
        epoch: HostEpoch::new(life(connection)?.0),
        operators: newest.as_ref().map(|row| sha(&row.texts.operators)),
        policy: newest.as_ref().filter(|row| !row.texts.policy.is_empty()).map(|row| sha(&row.texts.policy)),
        policy_version: newest.as_ref().map_or(0, |row| row.version),
        audit: AuditHead { number, chain: hex(&chain) },
    })
}

fn lay_down(
    transaction: &Transaction<'_>,
    texts: &RosterTexts,
    at: Timestamp,
) -> Result<LaidDown, LayDownError> {
    let version = read(texts)?.policy.version;
    match newest(transaction)? {
        Some(row) if row.texts == *texts => return Ok(LaidDown::Same),
        Some(row) if row.version > version || row.version == version && row.by != "root" => {
            return Ok(LaidDown::Older(row.version));
        }
        _ => {}
    }
    put(transaction, version, texts, "root", at)?;
    Ok(LaidDown::Taken)
}

/// Begins a new life, because the hub knows more of our audit than we do: this file is an older copy. Everything signed
/// for the previous life is void, since it is no longer known what was done then.
fn set_back(transaction: &Transaction<'_>, heard: i64, at: Timestamp) -> Result<bool, StoreError> {
    let (epoch, before) = life(transaction)?;
    let (number, _) = audit::head(transaction)?;
    if heard <= before || u64::try_from(heard).is_ok_and(|heard| heard <= number) {
        return Ok(false);
    }
    let epoch = epoch_at(at).max(epoch.saturating_add(1));
    transaction
        .execute("UPDATE life SET epoch = ?1, heard = ?2", (epoch, heard))
        .map_err(StoreError::sqlite("begin a new life"))?;
    let detail = format!(
        "the hub heard of audit line {heard}, and {number} is the last one here: these records are an older copy; \
         epoch {epoch} begins, and what was signed before is void"
    );
    audit::append(
        transaction,
        &audit::Line { at, action: "set_back", guest: None, operation: None, detail: &detail },
    )?;
    Ok(true)
}

impl Store {
    /// The state that a signed job is checked against.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn trust_state(&self) -> Result<TrustState, StoreError> {
        self.read(trust_state).await
    }

    /// Records a trusted time: a clock behind it is not trusted from now on. The value never falls.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_time(&self, at: Timestamp) -> Result<(), StoreError> {
        self.write(Part::Nothing, "note the time", move |transaction| {
            note_time(transaction, at).map_err(StoreError::sqlite("note the time"))
        })
        .await
    }

    /// The section of the report about it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn trust_section(&self) -> Result<TrustSection, StoreError> {
        self.read(section).await
    }

    /// Takes the files that root installed, unless a signed update came after them.
    ///
    /// # Errors
    /// [`LayDownError`]; the files in use stay.
    pub async fn lay_down(&self, texts: RosterTexts, at: Timestamp) -> Result<LaidDown, LayDownError> {
        let laid = self
            .write(Part::Jobs, "write who may sign", move |transaction| lay_down(transaction, &texts, at))
            .await?;
        self.mail.judge_anew();
        Ok(laid)
    }

    /// Takes the highest number of an audit line that the hub knows. Returns whether a new life began because of it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn heard_audit(&self, number: u64, at: Timestamp) -> Result<bool, StoreError> {
        // A number that our counter can never reach does not come from our audit.
        let Ok(heard) = i64::try_from(number) else { return Ok(false) };
        let (own, before) =
            self.read(|connection| Ok((audit::head(connection)?.0, life(connection)?.1))).await?;
        if number > own.saturating_add(limits::AUDIT_AHEAD) {
            tracing::warn!(claimed = number, own, "the hub claims more lines of our audit than there can be");
            return Ok(false);
        }
        // A dishonest hub can claim this at every check-in. So these audit lines count together with those for refused
        // texts. While the limit is reached, no text that the hub passes on is judged either.
        if number <= own || heard <= before || !self.takes_mail(at) {
            return Ok(false);
        }
        let begun = self
            .write(Part::Jobs, "begin a new life", move |transaction| set_back(transaction, heard, at))
            .await?;
        if begun {
            self.mail.line(at);
        }
        Ok(begun)
    }
}
