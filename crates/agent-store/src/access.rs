//! Claims, tokens and hellos of guests.
//!
//! Of every secret only the SHA-256 is kept. A claim can be redeemed once. If the answer was lost, the same redeemer
//! may repeat the call, by a proof that it made before its first call. It then gets a new token in place of the unseen
//! one. Any other second redeemer freezes the guest.

use std::sync::Arc;

use holdfast_protocol::id::{CustomerId, GuestUid};
use holdfast_protocol::secret::TokenHash;
use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction};

use super::columns::{json, micros, parsed, word};
use super::{Part, Store, StoreError, audit, token_holder};
use agent_core::model::policy::Sha256Hex;
use agent_core::model::records::{HelloRecord, ReportedConditions};

/// One attempt to trade a claim.
#[derive(Clone, Copy, Debug)]
pub struct Redemption {
    /// Hash of the claim.
    pub claim: TokenHash,
    /// Hash of the redeemer's own proof, where it sent one.
    pub redeemer: Option<TokenHash>,
    /// Hash of the token it would get.
    pub token: TokenHash,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// The token is valid from now on.
    Granted {
        /// Whose it is.
        guest: GuestUid,
        /// The customer that it belongs to.
        customer: CustomerId,
        /// Counts this guest's tokens.
        token_generation: u32,
    },
    /// No such claim, or it is too old.
    Refused,
    /// It was redeemed by another before: the guest is frozen now.
    Twice { guest: GuestUid },
}

struct Claim {
    uid: String,
    customer: String,
    state: String,
    expires_at: Option<i64>,
    redeemer: Option<Vec<u8>>,
    token_generation: u32,
}

fn find_claim(transaction: &Transaction<'_>, hash: &TokenHash) -> Result<Option<Claim>, StoreError> {
    transaction
        .query_row(
            "SELECT uid, customer, claim_state, claim_expires_at, claim_redeemer, token_generation FROM guest
             WHERE claim_hash = ?1",
            [hash.as_bytes()],
            |row| {
                Ok(Claim {
                    uid: row.get(0)?,
                    customer: row.get(1)?,
                    state: row.get(2)?,
                    expires_at: row.get(3)?,
                    redeemer: row.get(4)?,
                    token_generation: row.get(5)?,
                })
            },
        )
        .optional()
        .map_err(StoreError::sqlite("read a claim"))
}

impl Redemption {
    /// Whether it comes from the caller that redeemed the claim first. That caller left this proof.
    pub(super) fn repeats(&self, redeemer: Option<&[u8]>) -> bool {
        let kept = redeemer.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        matches!((kept, self.redeemer), (Some(kept), Some(shown)) if TokenHash::from_bytes(kept) == shown)
    }
}

fn redeem(
    transaction: &Transaction<'_>,
    attempt: &Redemption,
    now: Timestamp,
) -> Result<Redeemed, StoreError> {
    let Some(claim) = find_claim(transaction, &attempt.claim)? else {
        return Ok(Redeemed::Refused);
    };
    if claim.expires_at.is_none_or(|at| at < micros(now)) {
        return Ok(Redeemed::Refused);
    }
    let guest: GuestUid = parsed("a guest's uid", &claim.uid)?;
    let first = claim.state == "set";
    if !first && !attempt.repeats(claim.redeemer.as_deref()) {
        transaction
            .execute("UPDATE guest SET access = 'frozen' WHERE uid = ?1", [&claim.uid])
            .map_err(StoreError::sqlite("freeze a guest"))?;
        note(transaction, now, "claim_twice", guest)?;
        return Ok(Redeemed::Twice { guest });
    }
    let token_generation = claim.token_generation.saturating_add(1);
    token_holder::retire(transaction, guest)?;
    transaction
        .execute(
            "UPDATE guest SET claim_state = 'used', claim_redeemer = coalesce(claim_redeemer, ?2), token_hash = ?3,
                 token_generation = ?4, token_used_from = NULL WHERE uid = ?1",
            (
                &claim.uid,
                attempt.redeemer.as_ref().map(|hash| hash.as_bytes().to_vec()),
                attempt.token.as_bytes(),
                token_generation,
            ),
        )
        .map_err(StoreError::sqlite("redeem a claim"))?;
    note(transaction, now, if first { "claim_redeemed" } else { "claim_repeated" }, guest)?;
    Ok(Redeemed::Granted { guest, customer: parsed("a customer", &claim.customer)?, token_generation })
}

/// What became of the token of a guest whose successor's claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenBack {
    /// It is the guest's token, as before.
    Is,
    /// It is not remembered any more: the claim was redeemed more often than earlier tokens are kept.
    Gone,
}

fn give_token_back(
    transaction: &Transaction<'_>,
    uid: GuestUid,
    found: Option<u32>,
    now: Timestamp,
) -> Result<TokenBack, StoreError> {
    let failed = || StoreError::sqlite("give a token back");
    let name = uid.to_string();
    transaction
        .execute(
            "UPDATE guest SET claim_hash = NULL, claim_expires_at = NULL, claim_state = 'none', claim_redeemer = NULL,
                 hello_at = NULL WHERE uid = ?1",
            [&name],
        )
        .map_err(failed())?;
    let Some(found) = found else { return Ok(TokenBack::Is) };
    let count: u32 = transaction
        .query_row("SELECT token_generation FROM guest WHERE uid = ?1", [&name], |row| row.get(0))
        .map_err(failed())?;
    if count == found {
        return Ok(TokenBack::Is);
    }
    let former: Option<Vec<u8>> = transaction
        .query_row(
            "SELECT hash FROM former_token WHERE guest = ?1 AND generation = ?2",
            (&name, found),
            |row| row.get(0),
        )
        .optional()
        .map_err(failed())?;
    let Some(former) = former else {
        // It was given back before, or it is forgotten. Earlier tokens are kept by their count, so that of the container,
        // which has a later one, tells the two apart.
        let later: i64 = transaction
            .query_row(
                "SELECT count(*) FROM former_token WHERE guest = ?1 AND generation = ?2",
                (&name, count),
                |row| row.get(0),
            )
            .map_err(failed())?;
        return Ok(if later > 0 { TokenBack::Is } else { TokenBack::Gone });
    };
    token_holder::retire(transaction, uid)?;
    transaction
        .execute("DELETE FROM former_token WHERE hash = ?1", [&former])
        .and_then(|_| {
            transaction.execute(
                "UPDATE guest SET token_hash = ?2, token_used_from = NULL WHERE uid = ?1",
                (&name, &former),
            )
        })
        .map_err(failed())?;
    note(transaction, now, "token_given_back", uid)?;
    Ok(TokenBack::Is)
}

fn note(
    transaction: &Transaction<'_>,
    at: Timestamp,
    action: &str,
    guest: GuestUid,
) -> Result<(), StoreError> {
    audit::append(transaction, &audit::Line { at, action, guest: Some(guest), operation: None, detail: "" })
}

impl Store {
    /// A fresh claim for a guest; every earlier one, and its token, is worth nothing from now on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mint_claim(
        &self,
        uid: GuestUid,
        claim: TokenHash,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let heard = Arc::clone(&self.heard);
        self.write(Part::Guests, "mint a claim", move |transaction| {
            heard.forget(uid);
            token_holder::retire(transaction, uid)?;
            let changed = transaction
                .execute(
                    "UPDATE guest SET claim_hash = ?2, claim_expires_at = ?3, claim_state = 'set', claim_redeemer = NULL,
                         token_hash = NULL, token_used_from = NULL, hello_at = NULL WHERE uid = ?1",
                    (uid.to_string(), claim.as_bytes(), micros(expires_at)),
                )
                .map_err(StoreError::sqlite("mint a claim"))?;
            if changed == 0 {
                return Err(StoreError::Unknown { what: "guest", id: uid.to_string() });
            }
            note(transaction, now, "claim_minted", uid)
        })
        .await
    }

    /// A fresh claim for the container that takes a guest's place. The guest's token stays its token until the claim is
    /// redeemed: the guest goes on with it if the exchange is taken back.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mint_successor_claim(
        &self,
        uid: GuestUid,
        claim: TokenHash,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let heard = Arc::clone(&self.heard);
        self.write(Part::Guests, "mint a claim", move |transaction| {
            heard.forget(uid);
            let changed = transaction
                .execute(
                    "UPDATE guest SET claim_hash = ?2, claim_expires_at = ?3, claim_state = 'set', claim_redeemer = NULL,
                         hello_at = NULL WHERE uid = ?1",
                    (uid.to_string(), claim.as_bytes(), micros(expires_at)),
                )
                .map_err(StoreError::sqlite("mint a claim"))?;
            if changed == 0 {
                return Err(StoreError::Unknown { what: "guest", id: uid.to_string() });
            }
            note(transaction, now, "claim_minted", uid)
        })
        .await
    }

    /// The count of a guest's present token; none for a guest that has no token.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn present_token(&self, uid: GuestUid) -> Result<Option<u32>, StoreError> {
        self.read(move |connection| {
            connection
                .query_row(
                    "SELECT token_generation FROM guest WHERE uid = ?1 AND token_hash IS NOT NULL",
                    [uid.to_string()],
                    |row| row.get(0),
                )
                .optional()
                .map_err(StoreError::sqlite("read a token's count"))
        })
        .await
    }

    /// Ends the claim of a container that was to take a guest's place. Where it was redeemed, the guest's token of this
    /// count is its token again, and the container's is an earlier one from now on. Doing it twice is doing it once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn give_token_back(
        &self,
        uid: GuestUid,
        found: Option<u32>,
        now: Timestamp,
    ) -> Result<TokenBack, StoreError> {
        let heard = Arc::clone(&self.heard);
        self.write(Part::Guests, "give a token back", move |transaction| {
            heard.forget(uid);
            give_token_back(transaction, uid, found, now)
        })
        .await
    }

    /// Whether this is the guest's claim, unused, and will be at that time.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn claim_lives(
        &self,
        uid: GuestUid,
        claim: TokenHash,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let count: i64 = connection
                .query_row(
                    "SELECT count(*) FROM guest WHERE uid = ?1 AND claim_hash = ?2 AND claim_state = 'set'
                     AND claim_expires_at >= ?3",
                    (uid.to_string(), claim.as_bytes(), micros(until)),
                    |row| row.get(0),
                )
                .map_err(StoreError::sqlite("look at a claim"))?;
            Ok(count > 0)
        })
        .await
    }

    /// Makes a guest's claim worthless.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_claim(&self, uid: GuestUid) -> Result<(), StoreError> {
        self.write(Part::Guests, "forget a claim", move |transaction| {
            transaction
                .execute(
                    "UPDATE guest SET claim_hash = NULL, claim_expires_at = NULL, claim_state = 'none',
                         claim_redeemer = NULL WHERE uid = ?1",
                    [uid.to_string()],
                )
                .map_err(StoreError::sqlite("forget a claim"))?;
            Ok(())
        })
        .await
    }

    /// Whose claim this is, used or not, so that its address can be checked before anything is used up.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn guest_by_claim(&self, claim: TokenHash) -> Result<Option<GuestUid>, StoreError> {
        self.read(move |connection| {
            connection
                .query_row("SELECT uid FROM guest WHERE claim_hash = ?1", [claim.as_bytes()], |row| {
                    row.get::<_, String>(0)
                })
                .optional()
                .map_err(StoreError::sqlite("find a claim"))?
                .map(|uid| parsed("a guest's uid", &uid))
                .transpose()
        })
        .await
    }

    /// Trades a claim for a token, at most once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn redeem_claim(&self, attempt: Redemption, now: Timestamp) -> Result<Redeemed, StoreError> {
        self.write(Part::Guests, "redeem a claim", move |transaction| redeem(transaction, &attempt, now))
            .await
    }

    /// A controller's last hello in this run of the agent, with its exact time. In records that time moves in steps, so
    /// that a repeated hello is no change to their readers.
    #[must_use]
    pub fn last_word(&self, uid: GuestUid) -> Option<HelloRecord> {
        self.heard.last(uid)
    }

    /// The listener was away at this moment: no guest could be heard.
    pub fn missed_all(&self, at: Timestamp) {
        self.heard.missed_all(at);
    }

    /// A connection of this guest was refused at this moment.
    pub fn missed_guest(&self, uid: GuestUid, at: Timestamp) {
        self.heard.missed_guest(uid, at);
    }

    /// Since when hellos of this guest would have been received. Missing hellos before that mean nothing.
    #[must_use]
    pub fn would_hear_since(&self, uid: GuestUid) -> Timestamp {
        self.heard.missed_last(uid).map_or(self.listening_since, |at| at.max(self.listening_since))
    }

    /// Records a controller's hello. One that only repeats the last one wakes no listener, and is written to disk once
    /// an hour.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_hello(&self, uid: GuestUid, hello: HelloRecord) -> Result<(), StoreError> {
        if self.heard.repeats(uid, &hello) {
            return Ok(());
        }
        let health = word("a health", &hello.health)?;
        let reported = (hello.reported != ReportedConditions::default())
            .then(|| json("what a guest reported", &hello.reported))
            .transpose()?;
        let heard = Arc::clone(&self.heard);
        let written = self
            .write(Part::Guests, "record a hello", move |transaction| {
                transaction
                    .execute(
                        "UPDATE guest SET hello_version = ?2, hello_health = ?3, hello_boot_id = ?4, hello_at = ?5,
                             hello_build = ?6, hello_reported = ?7 WHERE uid = ?1",
                        (
                            uid.to_string(),
                            &hello.version,
                            health,
                            &hello.boot_id,
                            micros(hello.at),
                            hello.build.as_ref().map(Sha256Hex::as_str),
                            reported,
                        ),
                    )
                    .map_err(StoreError::sqlite("record a hello"))?;
                // On the store's thread, like the forgetting, so that the two keep their order.
                heard.wrote(uid, hello);
                Ok(())
            })
            .await;
        if written.is_err() {
            self.heard.forget(uid);
        }
        written
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
