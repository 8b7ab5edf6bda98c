//! The sheet of paper: one A4 page, as PDF and as plain text, for a person who may read it years later.
//!
//! ```text
//! Record + RecoveryCode (+ EscrowFile, + BackupKey) ─▶ Sheet ─▶ to_pdf, to_text
//! ```
//! The first page says what it is for, the words, and what to do with and without Holdfast; the same on paper and as text
//! ([`says`]). Two more pages are there when they are asked for: the wrapped key, which is worth nothing without the words,
//! and the bare key, which is worth everything to whoever finds it. Deliberately absent: clocks (the date is that of the
//! code), printers, and keeping what was made: a sheet is shown once.

mod face;
mod ink;
mod leaf;
mod pdf;
mod plain;
mod qr;
pub mod says;

use holdfast_seal::backup_key::BackupKey;

pub use pdf::DrawError;

use crate::code::RecoveryCode;
use crate::escrow::{EscrowFile, Record};

/// Whether a sheet says whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Host and customer stand on it.
    Named,
    /// Neither does: who finds it learns nothing.
    Anonymous,
}

/// What is to be printed.
#[derive(Clone, Copy, Debug)]
pub struct Sheet<'a> {
    /// What the code is for.
    pub record: &'a Record,
    /// The code.
    pub code: &'a RecoveryCode,
    /// Whether it says whose it is.
    pub naming: Naming,
    /// The wrapped key, for a page of its own.
    pub wrapped: Option<&'a EscrowFile>,
    /// The bare key, for a page of its own.
    pub bare: Option<&'a BackupKey>,
}

impl Sheet<'_> {
    /// What stands at the top, name by name.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let context = &self.record.context;
        let date: String = context.made_at.to_string().chars().take("2026-11-22".len()).collect();
        let mut facts = vec![("Sheet number", context.code.to_string()), ("Date", date)];
        if self.naming == Naming::Named {
            facts.push(("Host", context.host_name.to_string()));
            facts.push(("Customer", context.customer.to_string()));
        }
        facts
    }

    /// The fingerprint in four lines, short enough to compare.
    fn fingerprint(&self) -> Vec<String> {
        let bytes: Vec<&str> = self.record.fingerprint.as_str().split_inclusive(':').collect();
        bytes.chunks(8).map(<[&str]>::concat).collect()
    }

    fn pages(&self) -> usize {
        1 + usize::from(self.wrapped.is_some()) + usize::from(self.bare.is_some())
    }
}
