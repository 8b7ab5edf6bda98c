//! Resources of a host's desired document: its named parts.
//!
//! In: a document, the name of a part, its new content, the last report. Out: the next document, what differs, what the
//! change would cause, who uses a part. All of it is pure; hub and command share it. Deliberately absent: the rules of
//! documents, which are in [`crate::desired`] and hold for a part as for a whole document; where documents are kept. There
//! is no part for a network: a guest's network has no name and is a part of its guest.
//!
//! | module | contents |
//! | --- | --- |
//! | [`change`] | a document with one part made, replaced or removed |
//! | [`diff`] | what differs between two documents |
//! | [`effects`] | what a change would cause on its host |
//! | [`merge`] | changes of a part as a JSON merge |
//! | [`on_host`] | what a host still has of a part |
//! | [`part`] | parts by name, and their content |
//! | [`requests`] | what changes a document, and the answers |
//! | [`signatures`] | what of a change waits for a signature |
//! | [`users`] | what names a part |
//! | [`view`] | a part as desired, reported and last applied |

pub mod change;
pub mod diff;
pub mod effects;
pub mod merge;
pub mod on_host;
pub mod part;
pub mod requests;
pub mod signatures;
pub mod users;
pub mod view;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use change::PartError;
pub use diff::{DocumentDiff, diff, promises_in_force};
pub use part::{DocumentPart, GuestRef, PartContent, PartKind};
