//! Backup policies, promises and schedules.
//!
//! What comes in: policies of the desired document. What goes out: what one guest is promised ([`Protection`]), when
//! the next backup is due, and whether one promise is provably no weaker than another. Hub, operator and agent read the
//! same text by the same rules. Deliberately absent: the clock, taking backups, and who may weaken a promise.
//!
//! | module | contents |
//! | --- | --- |
//! | [`calendar`] | points in time that come again |
//! | [`compare`] | which parts of a promise are stronger, weaker or unknown |
//! | [`guest`] | what one guest is promised |
//! | [`policy`] | policies with their tiers, and schedules |
//! | [`posture`] | how well a guest is protected, in one word |
//! | [`prune`] | which backups a retention removes |
//! | [`retention`] | which backups are kept |
//! | [`tested`] | what restore tests of a tier showed, and whether a return takes longer than it did |
//! | [`zone`] | time zones by name |

pub mod calendar;
pub mod compare;
pub mod guest;
pub mod policy;
pub mod posture;
pub mod prune;
pub mod retention;
pub mod tested;
pub mod zone;

pub use calendar::Calendar;
pub use compare::{Comparison, Facet, Loosening, Part, compare};
pub use guest::{KeptVolume, NewestBackup, Protection, ProtectionReport};
pub use policy::{BackupPolicy, BackupTier, Consistency, OffSiteTier, Schedule, SnapshotTier, Tier, Tiers};
pub use posture::{Posture, PostureReport};
pub use prune::{DatedBackup, Fate, Proof, prune};
pub use retention::{Keep, Retention};
pub use tested::{LastTest, TierTested, Took, Trend};
pub use zone::Zone;
