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
pub mod before;
pub mod claims;
pub mod compare;
pub mod guest_content;
pub mod guests;
pub mod history;
pub mod known_differences;
pub mod lines;
pub mod names;
pub mod node_polls;
pub mod outages;
pub mod play;
pub mod pools;
pub mod precondition;
pub mod prior_state;
pub mod recording;
pub mod report;
pub mod resend;
pub mod rights;
pub mod samples;
pub mod servers;
pub mod time;
pub mod walls;
pub mod watch;
