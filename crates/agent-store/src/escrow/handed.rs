//! Recovery codes of a replaced host.

use std::collections::BTreeSet;

use holdfast_protocol::escrow::EscrowNumber;
use holdfast_protocol::id::TargetName;
use holdfast_recovery::escrow::{CodeNumber, EscrowFile, Record};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::super::columns::{from_json, json, micros};
use super::super::{Part, Store, StoreError};
use super::note;

/// A recovery code of a lost host, handed over as the hub reports it. Its words were not typed on this host yet.
#[derive(Clone, Debug)]
pub struct HandedCode {
    /// The record that it should contain.
    pub record: Record,
    /// The target that it is for.
    pub target: TargetName,
    /// The version that it is at the hub.
    pub version: EscrowNumber,
    pub file: EscrowFile,
}

/// Codes of the lost host that this one replaced.
pub(super) fn numbers(connection: &Connection) -> Result<BTreeSet<CodeNumber>, StoreError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = 'handed_codes'")
        .and_then(|mut select| select.query_row([], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read which codes were handed over"))?;
    text.map(|text| from_json("which codes were handed over", &text))
        .transpose()
        .map(Option::unwrap_or_default)
}

/// Those of which nothing is known here; so a repeat changes nothing.
fn tag_guest(transaction: &Transaction<'_>, all: Vec<HandedCode>, at: Timestamp) -> Result<(), StoreError> {
    let failed = || StoreError::sqlite("take over a lost box's code");
    let mut handed = numbers(transaction)?;
    for one in all {
        let code = one.record.context.code;
        if handed.contains(&code) {
            continue;
        }
        // An abandoned code of this host makes room; a kept one already has the number, or the version.
        transaction
            .execute("DELETE FROM escrow WHERE code = ?1 AND kept_at IS NULL", [code.number()])
            .map_err(failed())?;
        let made_at = micros(one.record.context.made_at.at());
        let taken = transaction
            .execute(
                "INSERT OR IGNORE INTO escrow (code, target, record, begun_at, shown_at, kept_at, file, version)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6)",
                rusqlite::params![
                    code.number(),
                    one.target.as_str(),
                    json("what a code is for", &one.record)?,
                    made_at,
                    one.file.to_text(),
                    one.version.number()
                ],
            )
            .map_err(failed())?;
        if taken == 0 {
            continue;
        }
        handed.insert(code);
        let detail = format!("code {code} of the lost box, for key {}", one.record.fingerprint);
        note(transaction, at, "escrow_handed_over", &detail)?;
    }
    transaction
        .execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('handed_codes', ?1)",
            [json("which codes were handed over", &handed)?],
        )
        .map_err(failed())?;
    Ok(())
}

impl Store {
    /// Keeps the codes that were handed over from a lost host. Its sheets are valid here and can be drilled, and the
    /// numbering continues.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn take_over_codes(&self, all: Vec<HandedCode>, at: Timestamp) -> Result<(), StoreError> {
        self.write(Part::Escrow, "take over a lost box's codes", move |transaction| {
            tag_guest(transaction, all, at)
        })
        .await
    }
}
