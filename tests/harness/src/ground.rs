//! The grounds that stories begin on.

/// The state of the world before a story begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ground {
    /// Only foreign guests.
    Empty,
    /// Guest 1, 300, made and running, without a volume that no backup holds.
    HotRuns,
    /// Guest 1, 300, made and running, with data in its volumes and its first backup.
    GuestRuns,
    /// The same guest, stopped.
    GuestStands,
    /// The running guest, with a snapshot of ours that has expired.
    Snapshotted,
    /// Two guests of one customer, 300 and 301, both running.
    TwoGuests,
    /// The stopped guest, and next to it one of the same customer, 301, with room for a volume.
    Taker,
    /// The same two, both stopped.
    TwoStand,
    /// The running guest, with a second backup.
    BackedUp,
    /// The same, and it is promised that its last backup is kept.
    Promised,
    /// The running guest, with a snapshot that a schedule took.
    Scheduled,
    /// The same, and it is promised backups, but no snapshots any more.
    LetGo,
    /// The guest was destroyed on the node, with its volumes, its place in the pool and every right over its number.
    /// Its first backup is left.
    Lost,
    /// The running guest, and next to it a copy of its first backup, 301.
    Copy,
    /// Nothing of ours, on a host on which documents may make one guest a day.
    OneADay,
}

impl Ground {
    /// The number under which its operation is opened; each is another.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Empty => 200,
            Self::HotRuns => 214,
            Self::GuestRuns => 201,
            Self::GuestStands => 202,
            Self::TwoGuests => 203,
            Self::Taker => 205,
            Self::TwoStand => 206,
            Self::BackedUp => 207,
            Self::Promised => 208,
            Self::Scheduled => 209,
            Self::LetGo => 210,
            Self::Lost => 211,
            Self::Copy => 212,
            Self::OneADay => 213,
            Self::Snapshotted => 204,
        }
    }
}
