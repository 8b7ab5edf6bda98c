//! Bounds that every engine of the store keeps.

use jiff::SignedDuration;

/// Revoked hosts shown per name.
pub const REVOKED_NAMESAKES_SHOWN: u32 = 3;

/// How often a host without a desired document polls, in seconds.
pub const POLL_WITHOUT_DOCUMENT_S: u32 = 30;

/// An older sample of use says nothing of now: three were not sent, and the reason is seen elsewhere.
pub const SAMPLE_OLD: SignedDuration = SignedDuration::from_mins(4);

/// How much kept use is removed at a time, in seconds.
pub const THINNED_S: i64 = 3600;

/// Epochs kept per host; each began by an operator's decision.
pub const EPOCHS_MAX: u32 = 50;

/// Decisions of one round: each wave settles and opens once, and the last one finishes.
pub const ROLLOUT_DECISIONS_MAX: usize = 100;

/// A host's maintenance windows that are kept.
pub const MAINTENANCE_MAX: usize = 16;

/// Tries without success from which on a receiver counts as failing.
pub const FAILING_TRIES: u32 = 3;

/// More notices than this that wait for one receiver are combined: nothing is lost, it is said in fewer messages.
pub const NOTICES_WAITING_MAX: u32 = 256;
