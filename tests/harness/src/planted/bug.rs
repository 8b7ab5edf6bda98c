//! Bugs within the agent, which the harness must find.
//!
//! `tests/harness/bugs.toml` has the edits: each is one line where a careless change would go wrong the same way.
//! Deliberately absent: bugs that only a slower disk or another thread would show.

macro_rules! bugs {
    ($($name:ident = $word:literal, $text:literal;)*) => {
        /// One planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Bug { $(#[doc = $text] $name),* }

        impl Bug {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// What it does.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

bugs! {
    SkipFsync = "skip_fsync", "the last write is acknowledged before it is on disk";
    EffectBeforeIntent = "effect_before_intent", "a step acts before its intent is written";
    DropAuditLine = "drop_audit_line", "the audit does not hear of intents";
    SkipAdoption = "skip_adoption", "the task of a lost reply is not looked for";
    RepostBlindly = "repost_blindly", "a request whose reply was lost is sent again";
    UnknownIsFailed = "unknown_is_failed", "a task whose end nobody knows counts as failed";
    WarningsAreFailed = "warnings_are_failed", "a task with warnings counts as failed";
    TrustTaskOk = "trust_task_ok", "a task's OK counts as done, without a look";
    TrustTagAlone = "trust_tag_alone", "any part of the mark makes a guest ours";
    TrustNumberAlone = "trust_number_alone", "the number alone makes a guest ours";
    DestroyUnknownVolumes = "destroy_unknown_volumes", "an undo destroys volumes that it did not make";
    HiddenIsGone = "hidden_is_gone", "a guest that we may not see counts as gone";
    ForgetProtection = "forget_protection", "protection is not put back";
    LeaveBootstrapToken = "leave_bootstrap_token", "the bootstrap token stays in the guest's environment";
    ReuseNumber = "reuse_number", "a number that was another guest's is taken again";
    StaleDocument = "stale_document", "an older document replaces a newer one";
    NoLock = "no_lock", "a second agent may open the folder";
    EndlessTries = "endless_tries", "a step that fails is tried for ever";
    ForgetJobs = "forget_jobs", "a signed job that has ended is forgotten, and may be taken again";
    RenewAsAnother = "renew_as_another", "a renewed certificate may make this host another one";
    PruneProved = "prune_proved", "a retention removes the newest backup that was proved";
    CountMissing = "count_missing", "a backup that its storage does not list counts";
    LooseBrake = "loose_brake", "what documents touched lately does not count";
    LateCapture = "late_capture", "a capture that came after the bound of its window counts";
    EarlyGrant = "early_grant", "a window is reported as granted while something else holds the lane";
    StoreNotSynced = "store_not_synced", "the database does not wait for the disk";
    FileNotSynced = "file_not_synced", "a small file takes its place before its bytes are on disk";
    FolderNotSynced = "folder_not_synced", "a small file's name is not brought onto the disk";
    GiveTakenAddress = "give_taken_address", "a document gives a guest an address that another or root has";
    PassOverWithdrawal = "pass_over_withdrawal", "an order that was taken back is followed";
    EndlessRefusals = "endless_refusals", "each refusal is written down, however many there are";
}
