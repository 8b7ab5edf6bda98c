//! `/v1/agent/escrow`: the wrapped keys of the calling host.
//! `/v1/hosts/{id or name}/escrow`: the same for operators, who list them and read them, and never without a notice.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::{
    EscrowFiles, EscrowFound, EscrowKept, EscrowList, EscrowNumber, EscrowOpened, EscrowProof, EscrowPut,
    EscrowRead, PUT_BYTES_MAX, form,
};
use holdfast_protocol::job::Nonce;
use holdfast_protocol::json;
use net::server::{Answer, Ids};
use serde::Deserialize;

use super::auth::{Agent, Operator};
use super::hosts::{EMPTY_BODY_MAX, host_ref};
use super::mutation::Head;
use super::page::CheckedQuery;
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::{EscrowCaller, EscrowSelector};

/// The query parameters of a proof request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProofQuery {
    nonce: Nonce,
}

fn asking(hub: &Hub, Agent(presented): Agent, ids: Ids) -> EscrowCaller {
    EscrowCaller { presented, at: hub.clock.now(), correlation: ids.correlation }
}

/// A text that is no number names no version.
fn number(text: &str) -> Result<EscrowNumber, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("escrow"))
}

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
    body: Body,
) -> Result<Answer<EscrowKept>, ApiError> {
    let put: EscrowPut = body::parse("the escrow", body, PUT_BYTES_MAX).await?;
    if put.file.sha256() != put.sha256 {
        let says =
            "the escrow file does not hash to what was said of it: it was changed on its way; put it again";
        return Err(ApiError::new(ErrorCode::EscrowBroken, says));
    }
    form::judge(put.file.as_bytes())?;
    let kept = hub.store.put_escrow(asking(&hub, agent, ids), put, hub.reached.clone()).await?;
    Ok(Answer(StatusCode::OK, kept))
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
) -> Result<Answer<EscrowList>, ApiError> {
    Ok(Answer(StatusCode::OK, hub.store.escrows(asking(&hub, agent, ids), hub.reached.clone()).await?))
}

pub(super) async fn newest(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
) -> Result<Answer<EscrowFound>, ApiError> {
    read(&hub, agent, ids, EscrowSelector::Newest).await
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
    Path(version): Path<String>,
) -> Result<Answer<EscrowFound>, ApiError> {
    read(&hub, agent, ids, EscrowSelector::Number(number(&version)?)).await
}

async fn read(
    hub: &Hub,
    agent: Agent,
    ids: Ids,
    which: EscrowSelector,
) -> Result<Answer<EscrowFound>, ApiError> {
    let found = hub.store.read_escrow(asking(hub, agent, ids), which, hub.reached.clone()).await?;
    Ok(Answer(StatusCode::OK, found))
}

pub(super) async fn prove(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
    Path(version): Path<String>,
    CheckedQuery(query): CheckedQuery<ProofQuery>,
) -> Result<Answer<EscrowProof>, ApiError> {
    let proof = hub.store.prove_escrow(asking(&hub, agent, ids), number(&version)?, query.nonce).await?;
    Ok(Answer(StatusCode::OK, proof))
}

pub(super) async fn opened(
    State(hub): State<Arc<Hub>>,
    agent: Agent,
    ids: Ids,
    Path(version): Path<String>,
    body: Body,
) -> Result<Answer<EscrowKept>, ApiError> {
    let opened: EscrowOpened = body::parse("the drill", body, EMPTY_BODY_MAX).await?;
    let asking = asking(&hub, agent, ids);
    let kept = hub.store.escrow_opened(asking, number(&version)?, opened, hub.reached.clone()).await?;
    Ok(Answer(StatusCode::OK, kept))
}

pub(super) async fn of_host(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
) -> Result<Answer<EscrowList>, ApiError> {
    let list = hub.store.host_escrows(host_ref(&host)?, hub.reached.clone()).await?;
    Ok(Answer(StatusCode::OK, list.ok_or_else(|| ApiError::not_found("host"))?))
}

pub(super) async fn fetch(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<EscrowFiles>, ApiError> {
    let bytes = body::read("what is to be read", body, EMPTY_BODY_MAX).await?;
    let asked: EscrowRead = json::parse("what is to be read", &bytes, EMPTY_BODY_MAX)?;
    let which = asked.code.map_or(EscrowSelector::EachKey, EscrowSelector::Code);
    let by = head.by(&hub, &bytes)?;
    let found = hub.store.fetch_escrow(by, host_ref(&host)?, which, hub.reached.clone()).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(|| ApiError::not_found("host"))?))
}
