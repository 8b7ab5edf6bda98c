//! Snapshots of state: what all hosts should be, and are.
//!
//! What comes in: what the hub keeps of each host. What goes out: a document of lines, one for each host, with two
//! digests. One covers every byte. The other covers what is so, and not when it was seen: two snapshots between which
//! nothing changed have the same one ([`content`]). Deliberately absent: ages, which the reader computes, and secrets, for
//! which no type here has a place.
//!
//! | module | contents |
//! | --- | --- |
//! | [`lines`] | the lines of a document, and what it is of |
//! | [`host`], [`guest`] | one host, and one guest of it |
//! | [`condition`] | one condition that holds |
//! | [`content`] | canonical JSON, and what the content digest covers |
//! | [`document`] | writing and reading a document, line by line |
//! | [`narrow`] | the part of a host that one customer may see |
//! | [`kept_view`] | snapshots that the hub keeps |

pub mod condition;
pub mod content;
pub mod document;
pub mod guest;
pub mod host;
pub mod kept_view;
pub mod lines;
pub mod narrow;

pub use condition::{ConditionObserved, StateCondition};
pub use content::{canonical, content_digest};
pub use document::{DocumentEnd, Line, StateDocumentError, StateReader, StateWriter};
pub use guest::{GuestCurrent, GuestObserved, GuestProblem, GuestProtection, StateField, StateGuest};
pub use host::{
    DesiredSettings, DesiredState, DesiredTarget, HostObserved, HostVersions, StateHost, StateStorage,
    StateTarget,
};
pub use kept_view::StateSnapshotView;
pub use lines::{StateHead, StateLine, StateSchema, StateScope, StateTail};

#[cfg(test)]
mod tests;
