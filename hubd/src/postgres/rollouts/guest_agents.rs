//! Guest agents of rollouts, asked for in documents.

use holdfast_protocol::desired::{Desired, DesiredController};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::release::ReleaseFileKind;
use jiff::Timestamp;

use super::super::sql::{self, params};
use super::rows::KeptRollout;
use crate::domain::desired::{IfMatch, PutError};
use crate::domain::host::HostRef;
use crate::domain::rollout::guest_agent::asking_for;
use crate::postgres::Failed;
use crate::postgres::columns::{Id, Number, digest};
use crate::postgres::desired::{newest, put_document};
use crate::postgres::host_row::find;
use crate::postgres::writer::Tx;
use crate::store::{By, Put};

/// Why a document is not changed, for the operator.
type Refusal = String;

/// Asks for it in the document of a host, and keeps what became of that.
pub(super) fn ask(
    tx: &Tx<'_>,
    kept: &KeptRollout,
    host: HostId,
    (now, correlation): (Timestamp, CorrelationId),
) -> sql::Result<()> {
    let (generation, refused) = match put(tx, kept, host, (now, correlation)) {
        Ok(generation) => (generation, None),
        Err(Failed::Refused(why)) => (None, Some(why)),
        Err(Failed::KeyReused) => (None, Some("its key was used for another request".to_owned())),
        Err(Failed::Json(error)) => (None, Some(error.to_string())),
        Err(Failed::Engine(error)) => return Err(error),
    };
    let sql = "UPDATE rollout_hosts SET asked_generation = $3, asked_refused = $4
               WHERE rollout = $1 AND host = (SELECT number FROM hosts WHERE id = $2)";
    let values = params![kept.number, Id(host.uuid()), generation.map(Number), refused];
    tx.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn put(
    tx: &Tx<'_>,
    kept: &KeptRollout,
    host: HostId,
    (now, correlation): (Timestamp, CorrelationId),
) -> Result<Option<Generation>, Failed<Refusal>> {
    let refused = |why: String| Failed::Refused(why);
    let Some(controller) = controller(tx, kept)? else {
        return Err(refused(format!("release {} is here no more, or names no guest agent", kept.version)));
    };
    let Some(record) = find(tx, &HostRef::Id(host))? else { return Ok(None) };
    let Some(current) = newest(tx, record.number)? else { return Ok(None) };
    let desired = Desired::parse(current.document.as_bytes()).map_err(|error| refused(error.to_string()))?;
    let Some(next) = asking_for(desired.document(), &controller) else { return Ok(None) };
    let generation = next.generation;
    let text = serde_json::to_string_pretty(&next)? + "\n";
    let name = format!("rollout-{}", kept.number);
    let reason = format!("rollout {} brings the guest agent of release {}", kept.number, kept.version);
    let put = Put {
        host: HostRef::Id(host),
        seen: IfMatch(current.generation),
        reason: reason.try_into().map_err(|error: &str| refused(error.to_owned()))?,
        desired: Desired::parse(text.as_bytes()).map_err(|error| refused(error.to_string()))?,
        text,
    };
    let operator = name.parse().map_err(|_| refused(format!("{name} is no name")))?;
    let by = By { operator, correlation, at: now, claim: None };
    put_document(tx, &by, &put).map_err(|error| match error {
        Failed::Refused(error) => refused(PutError::to_string(&error)),
        Failed::KeyReused => Failed::KeyReused,
        Failed::Json(error) => Failed::Json(error),
        Failed::Engine(error) => Failed::Engine(error),
    })?;
    Ok(Some(generation))
}

/// The one guest agent of the release.
fn controller(tx: &Tx<'_>, kept: &KeptRollout) -> sql::Result<Option<DesiredController>> {
    let sql = "SELECT sha256 FROM release_files WHERE version = $1 AND kind = $2";
    let select = tx.prepare_cached(sql)?;
    let values = params![kept.version.to_string(), ReleaseFileKind::GuestAgent.as_str()];
    let found = select.query_map(values, |row| digest(row, "sha256"))?.collect::<sql::Result<Vec<_>>>()?;
    let ([sha256], Ok(version)) = (found.as_slice(), kept.version.to_string().try_into()) else {
        return Ok(None);
    };
    Ok(Some(DesiredController { version, sha256: sha256.clone() }))
}
