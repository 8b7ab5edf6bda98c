//! Claims, tokens, hellos and reports of scratch guests.
//!
//! A claim serves once; the same redeemer may repeat the call when the answer was lost. Another redeemer is refused. A
//! scratch guest is alone on its bridge, so there is no other guest to protect from it. The first report counts. All of
//! it is deleted with the operation.

use holdfast_protocol::id::{CustomerId, GuestUid, OperationId};
use holdfast_protocol::local::restore_test::TestReport;
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::access::Redemption;
use super::columns::{from_json, json, micros, parsed};
use super::{Part, Store, StoreError, audit};

/// A scratch guest that shows its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestHolder {
    /// The test it is made for.
    pub operation: OperationId,
    /// Whose backup is tried.
    pub guest: GuestUid,
}

/// A token that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestGrant {
    /// For which test.
    pub operation: OperationId,
    /// Whose customer's data it is.
    pub customer: CustomerId,
    /// Counts the tokens of this test.
    pub token_generation: u32,
}

/// The messages of a scratch guest's controller so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestSpeech {
    /// Its version, once it said hello.
    pub hello: Option<String>,
    pub report: Option<TestReport>,
}

struct Claim {
    operation: String,
    guest: String,
    customer: String,
    redeemer: Option<Vec<u8>>,
    token_generation: u32,
}

fn find_claim(
    transaction: &Transaction<'_>,
    hash: &TokenHash,
    now: Timestamp,
) -> Result<Option<Claim>, StoreError> {
    transaction
        .query_row(
            "SELECT operation, guest, customer, claim_redeemer, token_generation FROM test_access
             WHERE claim_hash = ?1 AND claim_expires_at >= ?2",
            (hash.as_bytes(), micros(now)),
            |row| {
                Ok(Claim {
                    operation: row.get(0)?,
                    guest: row.get(1)?,
                    customer: row.get(2)?,
                    redeemer: row.get(3)?,
                    token_generation: row.get(4)?,
                })
            },
        )
        .optional()
        .map_err(StoreError::sqlite("read a test's claim"))
}

impl Claim {
    /// Unused, or used by this redeemer.
    fn is_open_to(&self, attempt: &Redemption) -> bool {
        self.token_generation == 0 || attempt.repeats(self.redeemer.as_deref())
    }
}

fn redeem(
    transaction: &Transaction<'_>,
    attempt: &Redemption,
    now: Timestamp,
) -> Result<Option<TestGrant>, StoreError> {
    let Some(claim) = find_claim(transaction, &attempt.claim, now)?.filter(|claim| claim.is_open_to(attempt))
    else {
        return Ok(None);
    };
    let token_generation = claim.token_generation.saturating_add(1);
    transaction
        .execute(
            "UPDATE test_access SET claim_redeemer = coalesce(claim_redeemer, ?2), token_hash = ?3, token_generation = ?4
             WHERE operation = ?1",
            (
                &claim.operation,
                attempt.redeemer.as_ref().map(|hash| hash.as_bytes().to_vec()),
                attempt.token.as_bytes(),
                token_generation,
            ),
        )
        .map_err(StoreError::sqlite("redeem a test's claim"))?;
    let operation = parsed("an operation", &claim.operation)?;
    let line = audit::Line {
        at: now,
        action: "test_claim_redeemed",
        guest: Some(parsed("a guest's uid", &claim.guest)?),
        operation: Some(operation),
        detail: "",
    };
    audit::append(transaction, &line)?;
    Ok(Some(TestGrant { operation, customer: parsed("a customer", &claim.customer)?, token_generation }))
}

pub(super) fn speech(connection: &Connection, operation: OperationId) -> Result<TestSpeech, StoreError> {
    let row: Option<(Option<String>, Option<String>)> = connection
        .prepare_cached("SELECT hello_version, report FROM test_access WHERE operation = ?1")
        .and_then(|mut select| {
            select.query_row([operation.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .map_err(StoreError::sqlite("read what a test's guest said"))?;
    let (hello, report) = row.unwrap_or_default();
    Ok(TestSpeech { hello, report: report.map(|text| from_json("a report", &text)).transpose()? })
}

/// The test is over: its claim and its token are worth nothing from now on.
pub(super) fn gone(transaction: &Transaction<'_>, operation: OperationId) -> Result<(), StoreError> {
    transaction
        .execute("DELETE FROM test_access WHERE operation = ?1", [operation.to_string()])
        .map_err(StoreError::sqlite("forget a test's token"))?;
    Ok(())
}

impl Store {
    /// A fresh claim for the scratch guest of a test; every earlier one of it, and its token, is worth nothing from now on.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Unknown`] when there is no record of the guest whose backup it is.
    pub async fn mint_test_claim(
        &self,
        test: TestHolder,
        claim: TokenHash,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Guests, "mint a test's claim", move |transaction| {
            let changed = transaction
                .execute(
                    "INSERT OR REPLACE INTO test_access (operation, guest, customer, claim_hash, claim_expires_at)
                     SELECT ?1, uid, customer, ?3, ?4 FROM guest WHERE uid = ?2",
                    (
                        test.operation.to_string(),
                        test.guest.to_string(),
                        claim.as_bytes(),
                        micros(expires_at),
                    ),
                )
                .map_err(StoreError::sqlite("mint a test's claim"))?;
            if changed == 0 {
                return Err(StoreError::Unknown { what: "guest", id: test.guest.to_string() });
            }
            Ok(())
        })
        .await
    }

    /// Whether this is the claim of a test, unused, and will be at that time.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn test_claim_lives(
        &self,
        operation: OperationId,
        claim: TokenHash,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let count: i64 = connection
                .query_row(
                    "SELECT count(*) FROM test_access WHERE operation = ?1 AND claim_hash = ?2
                     AND token_generation = 0 AND claim_expires_at >= ?3",
                    (operation.to_string(), claim.as_bytes(), micros(until)),
                    |row| row.get(0),
                )
                .map_err(StoreError::sqlite("look at a test's claim"))?;
            Ok(count > 0)
        })
        .await
    }

    /// Trades the claim of a test for a token, at most once. None when it is refused.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn redeem_test_claim(
        &self,
        attempt: Redemption,
        now: Timestamp,
    ) -> Result<Option<TestGrant>, StoreError> {
        self.write(Part::Guests, "redeem a test's claim", move |transaction| {
            redeem(transaction, &attempt, now)
        })
        .await
    }

    /// Which scratch guest holds this token.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn test_holder(&self, token: TokenHash) -> Result<Option<TestHolder>, StoreError> {
        self.read(move |connection| {
            let row: Option<(String, String)> = connection
                .prepare_cached("SELECT operation, guest FROM test_access WHERE token_hash = ?1")
                .and_then(|mut select| {
                    select.query_row([token.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
                })
                .map_err(StoreError::sqlite("find a test's token"))?;
            let Some((operation, guest)) = row else { return Ok(None) };
            let operation = parsed("an operation", &operation)?;
            Ok(Some(TestHolder { operation, guest: parsed("a guest's uid", &guest)? }))
        })
        .await
    }

    /// A scratch guest's controller is up.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_test_hello(
        &self,
        operation: OperationId,
        version: String,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Guests, "record a test's hello", move |transaction| {
            transaction
                .execute(
                    "UPDATE test_access SET hello_at = ?2, hello_version = ?3 WHERE operation = ?1",
                    (operation.to_string(), micros(now), version),
                )
                .map_err(StoreError::sqlite("record a test's hello"))?;
            Ok(())
        })
        .await
    }

    /// The findings of a scratch guest's controller. The first report counts.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_test_report(
        &self,
        operation: OperationId,
        report: TestReport,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Guests, "record a test's report", move |transaction| {
            transaction
                .execute(
                    "UPDATE test_access SET report = ?2, reported_at = ?3 WHERE operation = ?1 AND report IS NULL",
                    (operation.to_string(), json("a report", &report)?, micros(now)),
                )
                .map_err(StoreError::sqlite("record a test's report"))?;
            Ok(())
        })
        .await
    }

    /// The messages of the controller of a test's scratch guest so far.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn test_speech(&self, operation: OperationId) -> Result<TestSpeech, StoreError> {
        self.read(move |connection| speech(connection, operation)).await
    }

    /// The operation's claim, its token, and the messages sent with it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_test_access(&self, operation: OperationId) -> Result<(), StoreError> {
        self.write(Part::Guests, "forget a test's token", move |transaction| gone(transaction, operation))
            .await
    }
}
