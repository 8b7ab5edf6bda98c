//! A document from the hub: stored or refused.

use holdfast_protocol::desired::Desired;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::{Generation, Offer};
use holdfast_protocol::json::chain;
use holdfast_protocol::report::RefusedDocument;
use jiff::Timestamp;
use serde::Deserialize;

use super::exchange::Verdict;
use crate::port::store::desired::OfferError;
use crate::port::store::{Store, StoreError};

/// Only the number of a document, which may be of a version we do not know.
#[derive(Deserialize)]
struct NumberOnly {
    generation: Generation,
}

/// Accepts the document or notes why not. Only a store that fails is an error: then the hub will offer it again.
pub(super) async fn offer(store: &Store, text: &str, now: Timestamp) -> Result<Verdict, StoreError> {
    let desired = match Desired::parse(text.as_bytes()) {
        Ok(desired) => desired,
        Err(error) => {
            let mut problem = ErrorBody::new(error.code(), chain(&error));
            if let Some(path) = error.path() {
                problem = problem.with("path", path);
            }
            let generation = serde_json::from_str::<NumberOnly>(text).ok().map(|number| number.generation);
            return refuse(store, generation, problem, now).await;
        }
    };
    let generation = desired.numbered().generation;
    match store.offer_desired(desired, now).await {
        Ok(Offer::Newer) => {
            tracing::info!(%generation, "a newer desired document was taken");
            Ok(Verdict::Taken)
        }
        Ok(Offer::Held) => Ok(Verdict::NotTaken),
        Err(OfferError::Rules(error)) => {
            refuse(store, Some(generation), ErrorBody::new(error.code(), chain(&error)), now).await
        }
        Err(OfferError::Store(error)) => Err(error),
    }
}

async fn refuse(
    store: &Store,
    generation: Option<Generation>,
    problem: ErrorBody,
    now: Timestamp,
) -> Result<Verdict, StoreError> {
    tracing::warn!(code = %problem.code, error = problem.message, "a desired document was refused");
    store.note_refused(RefusedDocument { generation, problem }, now).await?;
    Ok(Verdict::NotTaken)
}

#[cfg(test)]
mod tests;
