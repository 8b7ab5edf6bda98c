//! Replay: recorded exchanges with a genuine node, played against a fresh instance.
//!
//! ```text
//! recording --> for each call: premises (what was done by hand) --> request with names mapped --> answer --> compare --> known difference?
//!                                                                          '--> its task: waited for, exit and log compared
//! ```
//! In: files in the form of the recordings. Out: a [`report::Report`]: equal, different, out of scope, by call, and every premise that had
//! to be taken. A premise can only be taken from what the recording itself shows, and never by looking at our own answer.
pub mod ahead;
pub mod backups;
pub mod barred;
pub mod before;
pub mod claims;
pub mod compare;
pub mod former;
pub mod guests;
pub mod inside;
pub mod known;
pub mod lines;
pub mod lived;
pub mod looks;
pub mod names;
pub mod play;
pub mod pools;
pub mod premise;
pub mod recording;
pub mod report;
pub mod resend;
pub mod rights;
pub mod servers;
pub mod shots;
pub mod time;
pub mod walls;
pub mod watch;
