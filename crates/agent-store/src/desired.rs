//! Desired documents by generation.
//!
//! A document is stored and synced first, and used second. The rules of generations are in `protocol`. They are checked
//! inside the transaction that stores, so that two simultaneous offers cannot both be newer.

use holdfast_protocol::desired::Desired;
use holdfast_protocol::generation::{Generation, GenerationError, Numbered, Offer, judge};
use holdfast_protocol::report::{DesiredSection, RefusedDocument};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::columns::{from_json, json, micros, parsed};
use super::{Part, Store, StoreError, audit};
use agent_core::model::limits;

/// Starts in a row that ended without one good cycle, after which the last good document is used instead.
const BAD_STARTS_MAX: i64 = 3;

/// Why an offered document was not taken.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// The rules of generations refuse it.
    #[error(transparent)]
    Rules(#[from] GenerationError),
    /// It could not be stored, so it is not used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn held(connection: &Connection) -> Result<Option<(Numbered, String)>, StoreError> {
    let row: Option<(i64, String, String)> = connection
        .query_row(
            "SELECT generation, content, document FROM desired ORDER BY generation DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
        .map_err(StoreError::sqlite("read the desired document"))?;
    row.map(|(generation, content, document)| {
        let generation = u64::try_from(generation).map_err(StoreError::unreadable("a generation"))?;
        let content = parsed("a content hash", &content)?;
        Ok((Numbered { generation: Generation::new(generation), content }, document))
    })
    .transpose()
}

fn parse(document: &str) -> Result<Desired, StoreError> {
    Desired::parse(document.as_bytes()).map_err(StoreError::unreadable("a desired document"))
}

fn set_refused(transaction: &Transaction<'_>, refused: Option<&RefusedDocument>) -> Result<(), StoreError> {
    let failed = StoreError::sqlite("note a refused document");
    match refused {
        Some(refused) => transaction.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('refused', ?1)",
            [json("a refused document", refused)?],
        ),
        None => transaction.execute("DELETE FROM meta WHERE key = 'refused'", []),
    }
    .map_err(failed)?;
    Ok(())
}

impl Store {
    /// Takes a document when the rules allow, and keeps it before it is used. A refusal changes nothing.
    ///
    /// # Errors
    /// [`OfferError`].
    pub async fn offer_desired(&self, desired: Desired, now: Timestamp) -> Result<Offer, OfferError> {
        self.write(Part::Desired, "store the desired document", move |transaction| {
            let offered = desired.numbered();
            let offer = judge(held(transaction)?.map(|(numbered, _)| numbered), offered)?;
            if offer == Offer::Newer {
                keep(transaction, &desired, now)?;
            }
            set_refused(transaction, None)?;
            Ok(offer)
        })
        .await
    }

    /// The document in use: the newest, or the last good one when the newest has killed the agent three times.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn desired(&self) -> Result<Option<Desired>, StoreError> {
        self.read(|connection| {
            let bad: Option<i64> = connection
                .query_row("SELECT value FROM counter WHERE key = 'starts_since_good_cycle'", [], |row| row.get(0))
                .optional()
                .map_err(StoreError::sqlite("read a counter"))?;
            if bad.unwrap_or(0) > BAD_STARTS_MAX {
                let good: Option<String> = connection
                    .query_row(
                        "SELECT document FROM desired WHERE good_at IS NOT NULL ORDER BY generation DESC LIMIT 1",
                        [],
                        |row| row.get(0),
                    )
                    .optional()
                    .map_err(StoreError::sqlite("read the last good document"))?;
                if let Some(document) = good {
                    return parse(&document).map(Some);
                }
            }
            held(connection)?.map(|(_, document)| parse(&document)).transpose()
        })
        .await
    }

    /// Counts a start of the agent, before a document is used.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn begin_run(&self) -> Result<(), StoreError> {
        self.write(Part::Nothing, "count a start", move |transaction| {
            transaction
                .execute(
                    "INSERT INTO counter (key, value) VALUES ('starts_since_good_cycle', 1)
                     ON CONFLICT (key) DO UPDATE SET value = value + 1",
                    [],
                )
                .map_err(StoreError::sqlite("count a start"))?;
            Ok(())
        })
        .await
    }

    /// A whole cycle succeeded with this document.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_good(&self, generation: Generation, now: Timestamp) -> Result<(), StoreError> {
        let generation =
            i64::try_from(generation.number()).map_err(StoreError::unreadable("a generation"))?;
        self.write(Part::Nothing, "mark a document as good", move |transaction| {
            let failed = || StoreError::sqlite("mark a document as good");
            transaction
                .execute(
                    "UPDATE desired SET good_at = ?2 WHERE generation = ?1 AND good_at IS NULL",
                    (generation, micros(now)),
                )
                .map_err(failed())?;
            transaction
                .execute("DELETE FROM counter WHERE key = 'starts_since_good_cycle'", [])
                .map_err(failed())?;
            Ok(())
        })
        .await
    }

    /// Remembers why an offered document was refused, for the report, until the next one is taken; with one line of the
    /// audit. A repeated refusal is not recorded, and the lines within an hour are limited.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_refused(&self, refused: RefusedDocument, at: Timestamp) -> Result<(), StoreError> {
        if self.desired_section().await?.refused.as_ref() == Some(&refused) {
            return Ok(());
        }
        let writes = self.takes_mail(at);
        self.write(Part::Desired, "note a refused document", move |transaction| {
            set_refused(transaction, Some(&refused))?;
            if !writes {
                return Ok(());
            }
            let number = refused.generation.map_or_else(|| "without a number".to_owned(), |g| g.to_string());
            let detail = format!("generation {number}: {}", refused.problem);
            let line =
                audit::Line { at, action: "document_refused", guest: None, operation: None, detail: &detail };
            audit::append(transaction, &line)
        })
        .await?;
        if writes {
            self.mail.line(at);
        }
        Ok(())
    }

    /// The section of the report about it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn desired_section(&self) -> Result<DesiredSection, StoreError> {
        self.read(|connection| {
            let held = held(connection)?.map(|(numbered, _)| numbered);
            let refused: Option<String> = connection
                .query_row("SELECT value FROM meta WHERE key = 'refused'", [], |row| row.get(0))
                .optional()
                .map_err(StoreError::sqlite("read a refused document"))?;
            Ok(DesiredSection {
                held: held.map_or(Generation::NONE, |numbered| numbered.generation),
                content: held.map(|numbered| numbered.content.to_string()).unwrap_or_default(),
                refused: refused.map(|text| from_json("a refused document", &text)).transpose()?,
            })
        })
        .await
    }
}

fn keep(transaction: &Transaction<'_>, desired: &Desired, now: Timestamp) -> Result<(), StoreError> {
    let numbered = desired.numbered();
    let generation =
        i64::try_from(numbered.generation.number()).map_err(StoreError::unreadable("a generation"))?;
    let document = json("a desired document", desired.document())?;
    let failed = || StoreError::sqlite("store the desired document");
    transaction
        .execute(
            "INSERT INTO desired (generation, content, document, accepted_at) VALUES (?1, ?2, ?3, ?4)",
            (generation, numbered.content.to_string(), document, micros(now)),
        )
        .map_err(failed())?;
    // The last good one is kept however old it is.
    transaction
        .execute(
            "DELETE FROM desired WHERE generation NOT IN (SELECT generation FROM desired ORDER BY generation DESC LIMIT ?1)
             AND generation NOT IN (SELECT max(generation) FROM desired WHERE good_at IS NOT NULL)",
            [limits::DOCUMENTS_KEPT],
        )
        .map_err(failed())?;
    let detail = format!("generation {} content {}", numbered.generation, numbered.content);
    let line =
        audit::Line { at: now, action: "desired_accepted", guest: None, operation: None, detail: &detail };
    audit::append(transaction, &line)
}
