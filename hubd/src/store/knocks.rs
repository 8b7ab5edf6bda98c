//! Knocks: agents that ask to be let in without an invite.
//!
//! The list of those that wait is short, and a newcomer always gets on it: one that was not heard for longest goes, first of the
//! newcomer's own address when that has its part, then of the address that has most. An agent that waits knocks again each
//! half minute, so what goes first was sent once and left.

use holdfast_protocol::id::{CorrelationId, HostId, HostName, KnockId};
use holdfast_protocol::operator::{KnockApproval, KnockState, KnockView};
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_tls::admission::Origin;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::certificates::{
    CertificateRecord, certificate, insert_certificate, insert_host, key_is_anothers, name_is_taken,
};
use super::columns::{Id, Time, Word};
use super::events::emit;
use super::idempotency::By;
use super::readmission::{self, Readmission};
use super::writer::{Shape, Tx};
use super::{Failed, Store, StoreError, WriteError};
use crate::authority::{AgentKey, CsrError, IssueError, Issued};
use crate::domain::enrolment::{KNOCKS_PENDING_EACH, KNOCKS_PENDING_MAX};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::readmission::{NameUse, ReadmitError};

/// A knock.
pub struct Knock {
    /// Its id, should it be a new one.
    pub id: KnockId,
    /// The applicant's key.
    pub key: AgentKey,
    /// What the applicant says it is called.
    pub says: HostName,
    /// Where it comes from.
    pub origin: Origin,
    /// Now.
    pub at: Timestamp,
    /// The wish it belongs to.
    pub correlation: CorrelationId,
}

/// What a knocking agent is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnockAnswered {
    /// An operator has to decide.
    Pending(KnockId),
    /// Let in.
    Approved(CertificateRecord),
}

/// An approval.
pub struct Approval {
    /// The knock.
    pub knock: KnockId,
    /// What the operator wrote.
    pub request: KnockApproval,
    /// The id of the host, should it become one.
    pub host: HostId,
}

/// A knock, as written.
#[derive(Clone, Debug)]
pub struct KnockRecord {
    /// As operators see it.
    pub view: KnockView,
    key: Vec<u8>,
    host: Option<i64>,
    /// The certificate that its approval gave.
    generation: u32,
}

/// Why a knock, or a decision on one, is refused.
#[derive(Debug, thiserror::Error)]
pub enum KnockError {
    /// There is no such knock.
    #[error("there is no such enrollment request: see `holdfast host requests`")]
    Unknown,
    /// It was refused for good.
    #[error("this knock was refused for good: ask an operator for an invite if that was a mistake")]
    Refused,
    /// It was let in.
    #[error("this knock was let in already: revoke the host instead")]
    Decided,
    /// The operator read another key off the box.
    #[error("the knock's key is {actual}, not the one given: compare again; somebody else may be knocking")]
    Fingerprint {
        /// The knock's key.
        actual: Pin,
    },
    /// A host of that name is there.
    #[error("a host called {name} is there already: choose another name")]
    Taken {
        /// The name.
        name: HostName,
    },
    /// The key is another host's.
    #[error(
        "another host has this key, or had it: remove `identity/enrol.key.pem` in the agent's state folder and enrol again, so that the box makes a key of its own"
    )]
    KeyTaken,
    /// What is written of the key cannot be used.
    #[error("the knock's key cannot be used: let the agent knock again")]
    Key(#[source] CsrError),
    /// The certificate could not be made.
    #[error("the hub could not make the certificate")]
    Issue(#[source] IssueError),
    /// The revoked host as which it should come back.
    #[error(transparent)]
    Readmit(#[from] ReadmitError),
    /// The host that came of it was let go, or has moved on.
    #[error("this knock was let in once, and its host has moved on: ask an operator for an invite")]
    Spent,
}

const COLUMNS: &str =
    "knocks.id AS id, says, spki_der, first_at, state, host, generation, hosts.id AS host_id";
const FROM: &str = "knocks LEFT JOIN hosts ON hosts.number = knocks.host";

/// The table's check allows these three alone.
fn read(row: &Row<'_>) -> rusqlite::Result<KnockRecord> {
    let key: Vec<u8> = row.get("spki_der")?;
    let state: String = row.get("state")?;
    let view = KnockView {
        id: KnockId::new(row.get::<_, Id>("id")?.0),
        says: row.get::<_, Word<_>>("says")?.0,
        fingerprint: Pin::of(PinKind::Spki, &key),
        first_at: row.get::<_, Time>("first_at")?.0,
        state: match state.as_str() {
            "pending" => KnockState::Pending,
            "approved" => KnockState::Approved,
            _ => KnockState::Refused,
        },
        host: row.get::<_, Option<Id>>("host_id")?.map(|id| HostId::new(id.0)),
        revoked: Vec::new(),
    };
    Ok(KnockRecord { view, key, host: row.get("host")?, generation: row.get("generation")? })
}

fn find(connection: &Connection, knock: KnockId) -> rusqlite::Result<Option<KnockRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE knocks.id = ?1");
    connection.prepare_cached(&sql)?.query_row([Id(knock.uuid())], read).optional()
}

impl Store {
    /// Takes a knock. Knocking again with the same key is the same knock.
    ///
    /// # Errors
    /// [`KnockError`].
    pub async fn knock(&self, knock: Knock) -> Result<KnockAnswered, WriteError<KnockError>> {
        self.write("take a knock", Shape::Several, move |tx| {
            let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE spki = ?1");
            let known = tx.prepare_cached(&sql)?.query_row([knock.key.hash()], read).optional()?;
            let Some(known) = known else { return first(tx, &knock) };
            tx.prepare_cached("UPDATE knocks SET last_at = ?2 WHERE id = ?1")?
                .execute(params![Id(known.view.id.uuid()), Time(knock.at)])?;
            match (known.view.state, known.host) {
                (KnockState::Pending, _) => Ok(KnockAnswered::Pending(known.view.id)),
                (KnockState::Approved, Some(host)) => approved(tx, host, known.generation),
                (KnockState::Refused | KnockState::Approved, _) => Err(Failed::Refused(KnockError::Refused)),
            }
        })
        .await
    }

    /// Knocks, oldest first, those after `after`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn knocks(
        &self,
        after: Option<(Timestamp, KnockId)>,
        limit: u32,
    ) -> Result<Vec<KnockView>, StoreError> {
        self.read("list knocks", move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM {FROM} WHERE (first_at, knocks.id) > (?1, ?2)
                 ORDER BY first_at, knocks.id LIMIT ?3"
            );
            let (at, id) =
                after.map_or((0, Id(uuid::Uuid::nil())), |(at, id)| (at.as_millisecond(), Id(id.uuid())));
            let mut statement = connection.prepare_cached(&sql)?;
            let views = statement.query_map(params![at, id, limit], |row| Ok(read(row)?.view))?;
            let mut views = views.collect::<rusqlite::Result<Vec<_>>>()?;
            for view in views.iter_mut().filter(|view| view.state == KnockState::Pending) {
                view.revoked = readmission::namesakes(connection, &view.says)?;
            }
            Ok(views)
        })
        .await
    }

    /// Lets a knocking host in. Doing it twice gives the same answer.
    ///
    /// # Errors
    /// [`KnockError`].
    pub async fn approve_knock(
        &self,
        by: By,
        approval: Approval,
        issue: impl FnOnce(HostId, u32, &AgentKey, Timestamp) -> Result<Issued, IssueError> + Send + 'static,
    ) -> Result<KnockView, WriteError<KnockError>> {
        self.mutate("approve a knock", by, move |tx, by| {
            let refuse = |error| Err(Failed::Refused(error));
            let Some(known) = find(tx, approval.knock)? else { return refuse(KnockError::Unknown) };
            if known.view.fingerprint != approval.request.fingerprint {
                return refuse(KnockError::Fingerprint { actual: known.view.fingerprint });
            }
            match known.view.state {
                KnockState::Approved => return Ok(known.view),
                KnockState::Refused => return refuse(KnockError::Refused),
                KnockState::Pending => {}
            }
            let name = &approval.request.host_name;
            let name_use = if name_is_taken(tx, name)? { NameUse::Taken } else { NameUse::Free };
            let key = AgentKey::from_spki(known.key.clone())
                .map_err(|error| Failed::Refused(KnockError::Key(error)))?;
            // It may have been enrolled by an invite since it knocked.
            if key_is_anothers(tx, key.hash(), None)? {
                return refuse(KnockError::KeyTaken);
            }
            if let Some(host) = approval.request.returns {
                let decision =
                    readmission::readmit(tx, by, &Readmission { host, name, name_use, key: &key }, issue)?;
                return decide(tx, by, &known, decision);
            }
            if name_use == NameUse::Taken {
                return refuse(KnockError::Taken { name: name.clone() });
            }
            let issued = issue(approval.host, 1, &key, by.at)
                .map_err(|error| Failed::Refused(KnockError::Issue(error)))?;
            let number = insert_host(tx, approval.host, name, by.at)?;
            insert_certificate(tx, number, 1, key.hash(), &issued)?;
            let message = format!("{name} was let in, key {}", known.view.fingerprint);
            let decision = Decision::Approved {
                host: number,
                id: approval.host,
                generation: 1,
                kind: EventKind::KnockApproved,
                message,
            };
            decide(tx, by, &known, decision)
        })
        .await
    }

    /// Refuses a knocking host for good. Doing it twice gives the same answer.
    ///
    /// # Errors
    /// [`KnockError`].
    pub async fn refuse_knock(&self, by: By, knock: KnockId) -> Result<KnockView, WriteError<KnockError>> {
        self.mutate("refuse a knock", by, move |tx, by| {
            let Some(known) = find(tx, knock)? else { return Err(Failed::Refused(KnockError::Unknown)) };
            match known.view.state {
                KnockState::Refused => Ok(known.view),
                KnockState::Approved => Err(Failed::Refused(KnockError::Decided)),
                KnockState::Pending => decide(tx, by, &known, Decision::Refused),
            }
        })
        .await
    }
}

fn first(tx: &Tx<'_>, knock: &Knock) -> Result<KnockAnswered, Failed<KnockError>> {
    let origin = knock.origin.to_string();
    make_room(tx, &origin)?;
    let sql = "INSERT INTO knocks (id, spki, spki_der, says, first_at, last_at, state, origin)
               VALUES (?1, ?2, ?3, ?4, ?5, ?5, 'pending', ?6)";
    if key_is_anothers(tx, knock.key.hash(), None)? {
        return Err(Failed::Refused(KnockError::KeyTaken));
    }
    let (id, key) = (Id(knock.id.uuid()), knock.key.der());
    tx.prepare_cached(sql)?.execute(params![
        id,
        knock.key.hash(),
        key,
        knock.says.as_str(),
        Time(knock.at),
        origin
    ])?;
    let event = NewEvent {
        at: knock.at,
        kind: EventKind::KnockReceived,
        host: None,
        actor: None,
        correlation: knock.correlation,
        message: format!(
            "a box that says it is {} asks to be let in, key {}",
            knock.says,
            knock.key.fingerprint()
        ),
    };
    emit(tx, &event)?;
    Ok(KnockAnswered::Pending(knock.id))
}

/// Lets a knock go where there are as many as may wait, of one address or together.
fn make_room(tx: &Tx<'_>, origin: &str) -> Result<(), Failed<KnockError>> {
    let own = "SELECT count(*) FROM knocks WHERE state = 'pending' AND origin = ?1";
    let own: u32 = tx.prepare_cached(own)?.query_row([origin], |row| row.get(0))?;
    if own >= KNOCKS_PENDING_EACH {
        let sql =
            "DELETE FROM knocks WHERE id = (SELECT id FROM knocks WHERE state = 'pending' AND origin = ?1
                   ORDER BY last_at, first_at, id LIMIT 1)";
        tx.prepare_cached(sql)?.execute([origin])?;
        return Ok(());
    }
    let all = "SELECT count(*) FROM knocks WHERE state = 'pending'";
    let all: u32 = tx.prepare_cached(all)?.query_row([], |row| row.get(0))?;
    if all >= KNOCKS_PENDING_MAX {
        let sql = "DELETE FROM knocks WHERE id = (
                       SELECT id FROM (SELECT id, last_at, first_at, count(*) OVER (PARTITION BY origin) AS crowd
                           FROM knocks WHERE state = 'pending')
                       ORDER BY crowd DESC, last_at, first_at, id LIMIT 1)";
        tx.prepare_cached(sql)?.execute([])?;
    }
    Ok(())
}

/// The certificate that the approval gave, as long as the host has no later one.
fn approved(tx: &Tx<'_>, host: i64, generation: u32) -> Result<KnockAnswered, Failed<KnockError>> {
    let sql = "SELECT 1 FROM hosts WHERE number = ?1 AND issued_generation = ?2 AND standing = 'active'";
    let spent = || Failed::Refused(KnockError::Spent);
    if !tx.prepare_cached(sql)?.exists(params![host, generation])? {
        return Err(spent());
    }
    let given = certificate(tx, host, generation)?;
    given.map(|(record, _)| KnockAnswered::Approved(record)).ok_or_else(spent)
}

/// What an operator decided.
pub(super) enum Decision {
    /// Let in, as a new host or as one that comes back.
    Approved {
        /// The host's number.
        host: i64,
        /// Its id.
        id: HostId,
        /// The certificate that it is given.
        generation: u32,
        /// What is written down.
        kind: EventKind,
        /// In words.
        message: String,
    },
    /// Turned away for good.
    Refused,
}

fn decide(
    tx: &Tx<'_>,
    by: &By,
    known: &KnockRecord,
    decision: Decision,
) -> Result<KnockView, Failed<KnockError>> {
    let (state, word, host, generation, kind, id, message) = match decision {
        Decision::Approved { host, id, generation, kind, message } => {
            (KnockState::Approved, "approved", Some(host), generation, kind, Some(id), message)
        }
        Decision::Refused => {
            let message = format!("the box that says it is {} was refused for good", known.view.says);
            (KnockState::Refused, "refused", None, known.generation, EventKind::KnockRefused, None, message)
        }
    };
    tx.prepare_cached("UPDATE knocks SET state = ?2, host = ?3, generation = ?4 WHERE id = ?1")?
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
    Ok(KnockView { state, host: id, ..known.view.clone() })
}
