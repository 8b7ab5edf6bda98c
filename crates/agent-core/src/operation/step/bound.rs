//! Time-outs and attempts of a step.
//!
//! What copies or frees whole guests has no time that fits all: a terabyte over a thin line is a day. Its task is followed
//! for as long as Proxmox says that it runs: while it does, the guest is its, and what would be cleared away is the work
//! itself. That it takes long is reported (`plan::report`), and a person may end it in Proxmox.

/// How long and how often a step may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Seconds for one try; where its task is followed to its end, seconds that are ordinary.
    pub seconds: u64,
    pub tries: u32,
    /// How far its task is followed.
    pub follows: Follows,
}

impl Bound {
    pub(super) const fn within(seconds: u64, tries: u32) -> Self {
        Self { seconds, tries, follows: Follows::WithinItsBound }
    }

    pub(super) const fn to_its_end(seconds: u64, tries: u32) -> Self {
        Self { seconds, tries, follows: Follows::ToItsEnd }
    }
}

/// How far a task is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// For the seconds of its bound; then the world is asked.
    WithinItsBound,
    /// To its end.
    ToItsEnd,
}
