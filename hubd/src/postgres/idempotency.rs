//! Idempotency keys of operator changes.
//!
//! The answer is stored in the transaction of the effect, so neither ever exists without the other. A refusal changed
//! nothing and is not stored: the same key may be used again once its cause is removed.

use holdfast_protocol::id::OperatorName;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::columns::Time;
use super::sql::{OptionalExtension as _, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::store::{By, Claim, WriteError};

impl Postgres {
    /// Does a mutation once per key, and repeats its answer after that.
    pub(super) async fn mutate<T, E>(
        &self,
        action: &'static str,
        by: By,
        work: impl FnOnce(&Tx<'_>, &By) -> Result<T, Failed<E>> + Send + 'static,
    ) -> Result<T, WriteError<E>>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Send + 'static,
    {
        self.write(action, move |tx| {
            let Some(claim) = &by.claim else { return work(tx, &by) };
            if let Some(answer) = answered(tx, &by.operator, claim)? {
                return Ok(serde_json::from_str(&answer)?);
            }
            let value = work(tx, &by)?;
            let sql =
                "INSERT INTO idempotency (operator, key, request, answer, at) VALUES ($1, $2, $3, $4, $5)";
            let answer = serde_json::to_string(&value)?;
            let (operator, key) = (by.operator.as_str(), claim.key.as_str());
            tx.prepare_cached(sql)?.execute(params![operator, key, claim.request, answer, Time(by.at)])?;
            Ok(value)
        })
        .await
    }
}

fn answered<E>(tx: &Tx<'_>, operator: &OperatorName, claim: &Claim) -> Result<Option<String>, Failed<E>> {
    let sql = "SELECT request, answer FROM idempotency WHERE operator = $1 AND key = $2";
    let kept = tx
        .prepare_cached(sql)?
        .query_row(params![operator.as_str(), claim.key.as_str()], |row| {
            Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    match kept {
        Some((request, _)) if request != claim.request => Err(Failed::KeyReused),
        Some((_, answer)) => Ok(Some(answer)),
        None => Ok(None),
    }
}
