//! A simulated disk that loses unsynced changes at a power loss.
//!
//! | module | what |
//! | --- | --- |
//! | [`disk`] | files and folders, their synced state, and the change before which the power is lost |
//! | [`fate`] | what is found afterwards |
//! | [`mount`] | the FUSE file system that shows a disk in a folder |
//! | [`dice`] | numbers of a seed |
//!
//! The kernel may wait for the disk while it holds the memory map of the process that uses it. So a program that works
//! on the disk itself serves it from another process; one that only starts others may serve it in its own.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's tool fails by panicking")]

pub mod dice;
pub mod disk;
pub mod fate;
pub mod mount;
