//! Snapshots of state: from the hub or from files, line by line.
//!
//! In: the name of a snapshot. Out: its lines, checked against their digests. Deliberately absent: what is shown of them.

pub mod compare;
pub mod file;
pub mod source;
pub mod summary;
