//! Tokens of tunnels from signed jobs.
//!
//! In: jobs whose delay is over. Out: the token in the file that root made for it, the end of the job, a request for a
//! restart. The token is open in memory alone, and for as long as it is written. A job that was cut off is done again:
//! the same bytes are written again.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, Payload};
use holdfast_protocol::json::chain;
use holdfast_seal::TunnelToken;
use holdfast_trust::scope::NotHere;

use super::TunnelsTask;
use crate::gate::job_validation::TurnedAway;
use crate::model::tunnel::{TokenSupply, Tunnel};
use crate::port::store::StoreError;
use crate::port::store::job::{DueJob, Settled};
use crate::task::signed_jobs;

/// Takes all that are due.
pub(super) async fn take(task: &TunnelsTask) -> Result<(), StoreError> {
    for due in task.store.due_jobs(task.clock.now()).await? {
        if let Some(order) = order(&due) {
            one(task, &due, &order).await?;
        }
    }
    Ok(())
}

/// The arguments, where a job is one of these.
fn order(due: &DueJob) -> Option<args::SetTunnelToken> {
    match Payload::parse(&due.signed.payload).ok()?.act {
        Act::SetTunnelToken(args) => Some(args),
        _ => None,
    }
}

async fn one(task: &TunnelsTask, due: &DueJob, order: &args::SetTunnelToken) -> Result<(), StoreError> {
    match signed_jobs::check(&task.store, due, task.clock.now()).await? {
        Ok(_) => {}
        // The job continues once the clock is corrected.
        Err(TurnedAway::NotHere(NotHere::ClockBehind { .. } | NotHere::NotYet(_))) => return Ok(()),
        Err(why) => return end(task, due.id, Err(ErrorBody::new(why.code(), chain(&why)))).await,
    }
    let tunnel = match written(task, order).await {
        Ok(tunnel) => tunnel,
        Err(problem) => return end(task, due.id, Err(problem)).await,
    };
    // Before the end of the job: one that is cut off here is asked for once more.
    let requests = task.store.tunnel_restarts().await?;
    let why = format!("tunnel {} ({}): it has a new token", tunnel.name, tunnel.unit);
    task.ask(&requests, tunnel, why).await?;
    end(task, due.id, Ok(())).await
}

/// Writes the token. Nothing of it is in an error.
async fn written<'t>(task: &'t TunnelsTask, order: &args::SetTunnelToken) -> Result<&'t Tunnel, ErrorBody> {
    let named = |tunnel: &&Tunnel| tunnel.name == order.tunnel && tunnel.token == TokenSupply::SignedJob;
    let tunnel = task.tunnels.iter().find(named).ok_or_else(|| {
        let text = format!(
            "agent.toml names no tunnel {} with token = \"signed_job\": nothing was written; add it, run `agentd setup`, and \
             sign again",
            order.tunnel
        );
        ErrorBody::new(ErrorCode::NotFound, text)
    })?;
    let token = TunnelToken::open(&order.sealed, &task.key, &order.tunnel).map_err(|error| {
        let text = format!("the token of tunnel {} was not opened: {}", order.tunnel, chain(&error));
        ErrorBody::new(error.code(), text)
    })?;
    let (files, name) = (task.files.clone(), tunnel.name.clone());
    let write = move || files.write_token(&name, token.token().expose().as_bytes());
    match tokio::task::spawn_blocking(write).await {
        Ok(Ok(())) => Ok(tunnel),
        Ok(Err(error)) => Err(ErrorBody::new(ErrorCode::Unavailable, chain(&error).to_string())),
        Err(error) => Err(ErrorBody::new(ErrorCode::Internal, error.to_string())),
    }
}

async fn end(task: &TunnelsTask, id: JobId, outcome: Result<(), ErrorBody>) -> Result<(), StoreError> {
    let settled = match outcome {
        Ok(()) => {
            tracing::info!(action = "job", result = "done", job = %id, "a tunnel has a new token");
            Settled::Done
        }
        Err(problem) => {
            tracing::warn!(action = "job", result = "failed", job = %id, %problem, "a tunnel has no new token");
            Settled::Failed(problem)
        }
    };
    task.store.settle_job(id, settled, task.clock.now()).await
}
