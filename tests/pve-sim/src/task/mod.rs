//! Tasks: what a call leaves running behind its answer.
//!
//! ```text
//! spawn -> running --body returns--> stopped: OK | WARNINGS: n | <error>
//!             |--- stop asked ----> stopped: <error of the interrupted body>
//!             '--- killed --------> stopped: unexpected status (the log just ends)
//! ```
//! In: a type, a guest, an owner and a body. Out: a UPID at once, then a log and an end that survive a restart.
pub mod index;
pub mod upid;
pub mod worker;

pub use worker::{Halt, Task};
