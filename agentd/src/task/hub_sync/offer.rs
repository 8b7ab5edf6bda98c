//! A document that came from the hub: read, judged by the law, kept; or refused, and the refusal kept for the report.

use holdfast_protocol::desired::Desired;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::generation::{Generation, Offer};
use holdfast_protocol::report::RefusedDocument;
use holdfast_protocol::strict::chain;
use jiff::Timestamp;
use serde::Deserialize;

use super::exchange::Verdict;
use crate::port::store::desired::OfferError;
use crate::port::store::{Store, StoreError};

/// The number alone, of a document that may be of a version we do not know.
#[derive(Deserialize)]
struct NumberOnly {
    generation: Generation,
}

/// Takes the document or notes why not. Only a store that fails is an error: then the hub will offer it again.
pub(super) async fn offer(store: &Store, text: &str, now: Timestamp) -> Result<Verdict, StoreError> {
    let desired = match Desired::parse(text.as_bytes()) {
        Ok(desired) => desired,
        Err(error) => {
            let mut problem = Problem::new(error.code(), chain(&error));
            if let Some(path) = error.path() {
                problem = problem.with("path", path);
            }
            let generation = serde_json::from_str::<NumberOnly>(text).ok().map(|number| number.generation);
            return refuse(store, generation, problem).await;
        }
    };
    let generation = desired.numbered().generation;
    match store.offer_desired(desired, now).await {
        Ok(Offer::Newer) => {
            tracing::info!(%generation, "a newer desired document was taken");
            Ok(Verdict::Taken)
        }
        Ok(Offer::Held) => Ok(Verdict::NotTaken),
        Err(OfferError::Law(error)) => {
            refuse(store, Some(generation), Problem::new(error.code(), chain(&error))).await
        }
        Err(OfferError::Store(error)) => Err(error),
    }
}

async fn refuse(
    store: &Store,
    generation: Option<Generation>,
    problem: Problem,
) -> Result<Verdict, StoreError> {
    tracing::warn!(code = %problem.code, error = problem.message, "a desired document was refused");
    store.note_refused(RefusedDocument { generation, problem }).await?;
    Ok(Verdict::NotTaken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::code::ErrorCode;

    fn document(generation: u64, poll: u32) -> String {
        format!(
            r#"{{"schema":"holdfast.desired/v1","generation":{generation},"poll_interval_s":{poll},"guests":[]}}"#
        )
    }

    #[tokio::test]
    async fn every_bad_document_is_refused_by_its_code_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let store = Store::open(dir.path(), now).unwrap();
        assert_eq!(offer(&store, &document(7, 30), now).await.unwrap(), Verdict::Taken);
        assert_eq!(offer(&store, &document(7, 30), now).await.unwrap(), Verdict::NotTaken);
        assert!(store.desired_section().await.unwrap().refused.is_none(), "the same again is no refusal");
        let before = store.desired_section().await.unwrap();

        let cases = [
            (document(6, 30), Some(6), ErrorCode::StaleGeneration),
            (document(7, 31), Some(7), ErrorCode::GenerationConflict),
            (document(1008, 30), Some(1008), ErrorCode::GenerationJump),
            (
                document(8, 30).replace("\"guests\"", "\"force\":1,\"guests\""),
                Some(8),
                ErrorCode::UnknownField,
            ),
            (document(8, 30).replace("/v1", "/v2"), Some(8), ErrorCode::Version),
            ("{".to_owned(), None, ErrorCode::Syntax),
        ];
        for (text, generation, code) in cases {
            assert_eq!(offer(&store, &text, now).await.unwrap(), Verdict::NotTaken);
            let section = store.desired_section().await.unwrap();
            assert_eq!((section.held, &section.content), (before.held, &before.content), "{text}");
            let refused = section.refused.unwrap();
            assert_eq!(refused.generation.map(Generation::number), generation, "{text}");
            assert_eq!(refused.problem.code, code, "{text}");
        }
        assert_eq!(offer(&store, &document(8, 30), now).await.unwrap(), Verdict::Taken);
        assert!(
            store.desired_section().await.unwrap().refused.is_none(),
            "the next good one ends the refusal"
        );
    }
}
