//! Recovery sheet: two A4 pages, as PDF and as plain text.
//!
//! ```text
//! Record + RecoveryCode + OffSite + guests (+ EscrowFile, + BackupKey) ─▶ Sheet ─▶ to_pdf, to_text
//! ```
//! The first page contains its purpose, the words, and what to do with Holdfast. The second says where the backups are
//! and all that is typed to restore them without any program of Holdfast; the same on paper and as text ([`text`]). Two
//! more pages are there on request: the wrapped key, which is worth nothing without the words, and the bare key, which
//! is worth everything to anyone who finds it. Deliberately absent: clocks (the date is that of the code), printers,
//! and keeping what was made: a sheet is shown once.

mod layout;
mod pdf;
pub mod text;
mod text_output;

use holdfast_protocol::escrow::by_hand::{GuestNumbers, OffSite};
use holdfast_seal::backup_key::BackupKey;

pub use pdf::DrawError;

use crate::code::RecoveryCode;
use crate::escrow::{EscrowFile, Record};

/// Whether a sheet says whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Host and customer are printed on it.
    Named,
    /// Neither does: who finds it learns nothing.
    Anonymous,
}

/// The content to print.
#[derive(Clone, Copy, Debug)]
pub struct Sheet<'a> {
    /// What the code is for.
    pub record: &'a Record,
    pub code: &'a RecoveryCode,
    /// Whether it says whose it is.
    pub naming: Naming,
    /// Where the backups are. A sheet without names does not say it.
    pub off_site: Option<&'a OffSite>,
    /// Whose backups they are, with their numbers.
    pub guests: &'a [GuestNumbers],
    /// The wrapped key, for a page of its own.
    pub wrapped: Option<&'a EscrowFile>,
    /// The bare key, for a page of its own.
    pub bare: Option<&'a BackupKey>,
}

impl Sheet<'_> {
    /// The facts at the top, name by name.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let context = &self.record.context;
        // To the minute: a code that was never kept leaves its number to the next.
        let date: String = context.made_at.to_string().chars().take("2026-11-22T13:00".len()).collect();
        let date = format!("{} UTC", date.replace('T', " "));
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

    /// Where the backups are, where it says so.
    #[must_use]
    pub fn off_site(&self) -> Option<&OffSite> {
        match self.naming {
            Naming::Named => self.off_site,
            Naming::Anonymous => None,
        }
    }

    fn pages(&self) -> usize {
        2 + usize::from(self.wrapped.is_some()) + usize::from(self.bare.is_some())
    }
}
