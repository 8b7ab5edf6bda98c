//! Stable error codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal)*) => {
        /// What went wrong, for programs. The sentence next to it is for people.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as written on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status it travels with.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

codes! {
    /// An address that the host, a router or another guest has, that root keeps for others, or that its bridge does not reach.
    AddressTaken = "ADDRESS_TAKEN", 409
    /// Somebody else on the bridge answers for an address that a guest has.
    AddressTwice = "ADDRESS_TWICE", 409
    /// Not yet approved by an operator; the caller may try again later.
    ApprovalPending = "APPROVAL_PENDING", 202
    /// An archive cannot be brought back: it cannot be read, or what it holds is refused.
    ArchiveUnusable = "ARCHIVE_UNUSABLE", 409
    /// Bytes that were sent as a file of a release do not hash to its digest; none of them were kept.
    ArtifactWrong = "ARTIFACT_WRONG", 422
    /// A backup that was taken is not listed by its storage any more.
    BackupMissing = "BACKUP_MISSING", 409
    /// A backup could not begin within its window.
    BackupMissed = "BACKUP_MISSED", 409
    /// A backup is not encrypted with the key that was promised.
    BackupUnsealed = "BACKUP_UNSEALED", 409
    /// Break-glass is not enabled by root on this host.
    BreakGlassOff = "BREAK_GLASS_OFF", 403
    /// It would not stay up and was left for a person.
    Broken = "BROKEN", 409
    /// More would be stopped, restarted or resized at once than the host's change limit allows.
    BulkChangeHeld = "BULK_CHANGE_HELD", 409
    /// The queue is full; come back after `Retry-After`.
    Busy = "BUSY", 503
    /// It was cancelled before it began.
    Cancelled = "CANCELLED", 409
    /// The certificate is not ours, expired, revoked or of an older generation.
    Certificate = "CERTIFICATE", 401
    /// The claim is unknown, used or too old.
    ClaimRefused = "CLAIM_REFUSED", 403
    /// Two holders used one claim: both are frozen until a person checks.
    ClaimTwice = "CLAIM_TWICE", 403
    /// The clock is behind a time that was seen already; what is bound to time waits.
    ClockBehind = "CLOCK_BEHIND", 503
    /// No service keeps the clock right, so the latest time seen does not move.
    ClockUnkept = "CLOCK_UNKEPT", 503
    /// The typed text is no recovery code: a word is wrong, or two are in each other's place.
    CodeMistyped = "CODE_MISTYPED", 400
    /// A customer's consent is missing, or is none.
    ConsentMissing = "CONSENT_MISSING", 403
    /// A controller did not come up on this host: no guest here gets it any more.
    ControllerBad = "CONTROLLER_BAD", 409
    /// A guest came back and runs, and its controller has not been heard since.
    ControllerSilent = "CONTROLLER_SILENT", 409
    /// No operator approved the controller that runs in a guest.
    ControllerUnapproved = "CONTROLLER_UNAPPROVED", 409
    /// A controller that is requested for a guest is not installed, and why.
    ControllerWaits = "CONTROLLER_WAITS", 409
    /// The CSR cannot be read, or its key is not of a kind we take.
    Csr = "CSR", 400
    /// A document gives the guests of a customer more than its limits on the host allow.
    CustomerLimit = "CUSTOMER_LIMIT", 422
    /// The disk under a program's own files is full.
    DiskFull = "DISK_FULL", 507
    /// Two guests of the document share an address.
    DuplicateAddress = "DUPLICATE_ADDRESS", 422
    /// Two guests of the document share a uid.
    DuplicateGuest = "DUPLICATE_GUEST", 422
    /// One key twice in one JSON object.
    DuplicateKey = "DUPLICATE_KEY", 400
    /// Two guests of the document share a name.
    DuplicateName = "DUPLICATE_NAME", 422
    /// Two storage targets of the document share a name, or are one and the same place.
    DuplicateTarget = "DUPLICATE_TARGET", 422
    /// Two guests of the document share a VMID.
    DuplicateVmid = "DUPLICATE_VMID", 422
    /// Two volumes of a guest share a name or a mount path.
    DuplicateVolume = "DUPLICATE_VOLUME", 422
    /// An escrow file that is none, or was cut or changed.
    EscrowBroken = "ESCROW_BROKEN", 400
    /// The recovery code does not open this escrow file.
    EscrowCode = "ESCROW_CODE", 403
    /// A copy of a wrapped key is lost, or not as it should be.
    EscrowCopy = "ESCROW_COPY", 409
    /// No person has typed a recovery code for too long.
    EscrowDrill = "ESCROW_DRILL", 409
    /// Off-site backups whose key no recovery code opens: they are lost with the host.
    EscrowMissing = "ESCROW_MISSING", 409
    /// An escrow's number is behind the newest that the hub holds, or far ahead of it.
    EscrowNumber = "ESCROW_NUMBER", 409
    /// An escrow file of another host, customer, epoch, sheet or key than was requested.
    EscrowOther = "ESCROW_OTHER", 403
    /// An escrow's number is another version's already; none is overwritten.
    EscrowTaken = "ESCROW_TAKEN", 409
    /// An escrow file that requires far too little or too much work.
    EscrowWork = "ESCROW_WORK", 400
    /// An act that is never allowed.
    Forbidden = "FORBIDDEN", 403
    /// A guest that is not ours; it is not touched.
    ForeignGuest = "FOREIGN_GUEST", 409
    /// The holder of this identity is frozen until an operator checks.
    Frozen = "FROZEN", 403
    /// Same generation number, other content.
    GenerationConflict = "GENERATION_CONFLICT", 409
    /// A jump of the generation that no honest history makes.
    GenerationJump = "GENERATION_JUMP", 409
    /// The newest golden image of the host is older than it should be.
    GoldenOld = "GOLDEN_OLD", 409
    /// A golden image that no operator approved.
    GoldenUnapproved = "GOLDEN_UNAPPROVED", 409
    /// A guest would grow by more than documents may let it in a day: it waits for a signature.
    GrowthHeld = "GROWTH_HELD", 409
    /// A host is not the one that was known under its name: its id, key or epoch is another.
    HostKeyChanged = "HOST_KEY_CHANGED", 409
    /// The idempotency key was used with another body.
    IdempotencyMismatch = "IDEMPOTENCY_MISMATCH", 422
    /// An alert that was over already: nothing was changed.
    IncidentOver = "INCIDENT_OVER", 409
    /// Something still names it, so it is not removed.
    InUse = "IN_USE", 409
    /// The invite is too old.
    InviteExpired = "INVITE_EXPIRED", 403
    /// The invite does not exist.
    InviteUnknown = "INVITE_UNKNOWN", 403
    /// The order behind the invite was withdrawn by another one.
    InviteWithdrawn = "INVITE_WITHDRAWN", 403
    /// The invite was used with another key.
    InviteUsed = "INVITE_USED", 403
    /// Our own fault; the log knows more under the request id.
    Internal = "INTERNAL", 500
    /// The job is for another life of this host's state.
    JobEpoch = "JOB_EPOCH", 409
    /// The job ended before it could be done.
    JobExpired = "JOB_EXPIRED", 409
    /// The job ends before it begins, or is valid for longer than a day.
    JobLife = "JOB_LIFE", 400
    /// The job's time has not come.
    JobNotYet = "JOB_NOT_YET", 409
    /// The job's id or nonce was used before, by another job.
    JobReplayed = "JOB_REPLAYED", 409
    /// The job does not say what it must be held to: it is signed again with a newer `holdfast`.
    JobUnbound = "JOB_UNBOUND", 409
    /// The signing key may not sign this, or not any more.
    KeyRevoked = "KEY_REVOKED", 403
    /// The signing key is in no operators file of this host.
    KeyUnknown = "KEY_UNKNOWN", 403
    /// The guest or storage is locked by other work.
    Locked = "LOCKED", 409
    /// The node's memory is promised to guests already, up to what the policy lets.
    MemoryFull = "MEMORY_FULL", 409
    /// The path is there, and takes other methods: `Allow` names them.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405
    /// A field that must be there is not.
    Missing = "MISSING", 400
    /// The request names another host than the one it came to.
    Misdirected = "MISDIRECTED", 421
    /// Something of that name is there already.
    NameTaken = "NAME_TAKEN", 409
    /// An operator's signature is needed first.
    NeedsSignature = "NEEDS_SIGNATURE", 409
    /// There is no such thing.
    NotFound = "NOT_FOUND", 404
    /// An escrow is not read while the notice of it would reach no recipient.
    NoticeUnset = "NOTICE_UNSET", 409
    /// Another guest's or host's thing.
    NotYours = "NOT_YOURS", 403
    /// It is still on its host, and leaving it out of the document would leave it there unmanaged.
    OnHost = "ON_HOST", 409
    /// Work stopped on purpose for a person to inspect.
    Parked = "PARKED", 409
    /// The other side showed a certificate that is not the pinned one.
    PinMismatch = "PIN_MISMATCH", 502
    /// A signed change of who may sign waits for its delay, and can still be stopped.
    PolicyPending = "POLICY_PENDING", 409
    /// A guest is put under a backup policy that the document does not have.
    PolicyUnknown = "POLICY_UNKNOWN", 422
    /// It waited, and ended for work with a higher priority.
    Preempted = "PREEMPTED", 409
    /// `If-Match` does not name the current version.
    PreconditionFailed = "PRECONDITION_FAILED", 412
    /// A mutation without the header that names what it changes (`If-Match`).
    PreconditionRequired = "PRECONDITION_REQUIRED", 428
    /// As many as are allowed are there already.
    Quota = "QUOTA", 409
    /// A value outside its range or of the wrong kind.
    Range = "RANGE", 400
    /// Too many requests; come back after `Retry-After`.
    RateLimited = "RATE_LIMITED", 429
    /// The agent's own records cannot be written any more until it is started again.
    RecordsBroken = "RECORDS_BROKEN", 503
    /// The agent's own records were damaged and set apart: it only observes until a person has decided.
    RecordsDamaged = "RECORDS_DAMAGED", 503
    /// The agent's own records are larger than they should be.
    RecordsLarge = "RECORDS_LARGE", 503
    /// The enrollment request was refused for good.
    Refused = "REFUSED", 403
    /// Another machine took this one's place, by an operator's order: this one stays inactive.
    Replaced = "REPLACED", 403
    /// A report was longer than the hub accepts and was shortened.
    ReportShortened = "REPORT_SHORTENED", 503
    /// A restore certificate that is not signed by a key of the host that sends it, or is not about it and its guests.
    RestoreCertificate = "RESTORE_CERTIFICATE", 403
    /// A restore certificate of a test that is not later than the newest one here, or of which there is another one.
    RestoreCertificateOld = "RESTORE_CERTIFICATE_OLD", 409
    /// A backup did not come back when it was tried, and none was proved since.
    RestoreTestFailed = "RESTORE_TEST_FAILED", 409
    /// This machine took the place of a lost one, whose guests are not back yet.
    Restoring = "RESTORING", 409
    /// The certificate was revoked.
    Revoked = "REVOKED", 401
    /// Sealed credentials that are no sealed credentials, or were cut or changed.
    SealBroken = "SEAL_BROKEN", 400
    /// Sealed credentials for another key than this host's, for a passphrase, or for several readers.
    SealKey = "SEAL_KEY", 403
    /// Sealed credentials that are meant for another target, or for another backend under this name.
    SealTarget = "SEAL_TARGET", 403
    /// The bytes do not carry the signature they should.
    Signature = "SIGNATURE", 403
    /// Fewer operators signed than the policy wants for this.
    SignaturesMissing = "SIGNATURES_MISSING", 403
    /// A silence that would mute every alert.
    SilenceEverything = "SILENCE_EVERYTHING", 422
    /// Larger than is accepted.
    Size = "SIZE", 413
    /// Older than the one that is held.
    StaleGeneration = "STALE_GENERATION", 409
    /// A storage is fuller than is safe for the request.
    StorageFull = "STORAGE_FULL", 409
    /// A storage target is not there; its content is out of reach.
    StorageGone = "STORAGE_GONE", 503
    /// The storage that was found in a storage target's place is not that target.
    StorageWrong = "STORAGE_WRONG", 409
    /// Not JSON, or not one document.
    Syntax = "SYNTAX", 400
    /// Work is under way for longer than usual; it continues.
    TakesLong = "TAKES_LONG", 409
    /// What a signature was for is not as the operator saw it any more.
    TargetChanged = "TARGET_CHANGED", 409
    /// The act cannot be done to this kind of thing.
    TargetKind = "TARGET_KIND", 400
    /// No token, or none that is known.
    Unauthenticated = "UNAUTHENTICATED", 401
    /// Something the operation needs does not answer.
    Unavailable = "UNAVAILABLE", 503
    /// Packages of the guest were replaced, and only a restart brings them into use.
    RestartNeeded = "RESTART_NEEDED", 409
    /// Data on a guest's root disk stays behind, and what was signed does not cover it.
    RootDiskData = "ROOT_DISK_DATA", 409
    /// It is under way: it can no longer be cancelled.
    UnderWay = "UNDER_WAY", 409
    /// A field the schema does not have.
    UnknownField = "UNKNOWN_FIELD", 400
    /// The operators file or the policy that root laid down is not taken; those in use stay.
    TrustFile = "TRUST_FILE", 500
    /// The guest or a storage of it cannot do this at all.
    Unsupported = "UNSUPPORTED", 409
    /// A schema or variant this program does not speak.
    Version = "VERSION", 400
    /// The VMID belongs to a guest that is not ours.
    VmidForeign = "VMID_FOREIGN", 409
    /// No free VMID is left in the configured range.
    VmidRangeFull = "VMID_RANGE_FULL", 409
    /// The quiesce window is over: what was stopped for it can be started again.
    WindowOver = "WINDOW_OVER", 409
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_read_back() {
        let mut seen = std::collections::BTreeSet::new();
        for code in ErrorCode::ALL {
            assert!(seen.insert(code.as_str()), "{code} twice");
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), *code);
        }
    }
}
