//! How a step is taken back.

/// How a step is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// There is nothing to take back, and why.
    Nothing(&'static str),
    /// Forgets the claim.
    ForgetClaim,
    /// Stops the guest that this operation started.
    StopGuest,
    /// Takes off the protection that this operation set.
    Unprotect,
    /// Destroys the guest that this operation made, and nothing else.
    DestroyGuest,
    /// Puts back the protection that this operation took off.
    ProtectAgain,
    /// Withdraws a mount that was asked for and could not be made.
    WithdrawRequest,
    /// Removes the snapshot that this operation made, and no other.
    RemoveSnapshot,
    /// Takes off the tag that this operation set.
    Disarm,
    /// Puts back the protection of the other guest.
    ProtectOther,
    /// Hands the volume back.
    ReassignBack,
    /// Hands a volume back to the guest that gave it to the container of a newer image.
    MoveBack,
    /// Puts back the tags and the description that were found.
    RestoreTags,
    /// Starts the guest again that was asked to go down for its copy.
    StartOriginal,
    /// Puts back what the guest was known by.
    RestoreOriginal,
    /// Puts back what the copy was known by.
    DemoteCopy,
    /// Stops the copy that was started in its guest's place.
    StopPlaced,
}
