//! Checks of presented client certificates.
//!
//! In: the host and generation read from a certificate that our CA signed, and the host's record. Out: that it may be
//! served, or why not. Generations count a host's certificates: once a newer one was used, an older one in use means
//! that two hold the identity, and both are frozen. Deliberately absent: TLS and X.509; they come before this.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;

/// What a certificate says of its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presented {
    pub host: HostId,
    /// Which of the host's certificates.
    pub generation: u32,
}

/// The status of a host at the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStatus {
    /// It is served.
    Active,
    /// Two held its identity: nothing is served to it.
    Frozen,
    Revoked,
}

/// What the hub keeps of a host's certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityRecord {
    /// The status of the host.
    pub status: HostStatus,
    /// The newest generation issued.
    pub issued: u32,
    /// The newest generation that was presented.
    pub used: u32,
    /// The first generation of the machine that took a lost one's place; 0 when none did.
    pub restored_from: u32,
    /// Generation of the first certificate after its last readmission; 0 when it never was readmitted.
    pub readmitted_from: u32,
}

/// How many certificates a host may be ahead of the record. A hub that was restored from a backup did not write down
/// those that it gave since: hosts renew theirs daily, and a backup of two months covers all of them.
pub const AHEAD_MAX: u32 = 90;

/// Why a certificate is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// No host of that id was ever enrolled here, or its certificate is further ahead of the record than any backup is old.
    #[error("this certificate names no host of this hub: enroll the host again with a new invite")]
    Unknown,
    /// It was revoked.
    #[error(
        "this host was revoked: to readmit it with its history, remove its identity folder, send an enrollment request \
         (`agentd enroll --request`) and approve it with `holdfast host approve --returns`; a new invite makes it a new host"
    )]
    Revoked,
    /// It is frozen already.
    #[error(
        "this host is frozen because two held its identity: an operator must look, revoke it, and enrol the right one anew"
    )]
    Frozen,
    /// Another machine took this one's place, by the operators' order.
    #[error(
        "another box took this one's place by an operator's order: this one stands still; to use it again, empty its state \
         folder and enrol it as a new host"
    )]
    Replaced,
    /// An older certificate after a newer one was used. The host is to be frozen.
    #[error(
        "certificate {presented} came after {used} was in use: two hold this identity, both are frozen until an operator looks"
    )]
    Twice {
        /// The generation presented.
        presented: u32,
        /// The newest in use.
        used: u32,
    },
}

impl IdentityError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown => ErrorCode::Certificate,
            Self::Revoked => ErrorCode::Revoked,
            Self::Replaced => ErrorCode::Replaced,
            Self::Frozen | Self::Twice { .. } => ErrorCode::Frozen,
        }
    }
}

/// Judges a certificate. One that is served is from then on the newest in use.
///
/// # Errors
/// [`IdentityError`]; after [`IdentityError::Twice`] the host must be frozen.
pub fn judge(presented: u32, record: IdentityRecord) -> Result<(), IdentityError> {
    match record.status {
        HostStatus::Revoked => Err(IdentityError::Revoked),
        // Also while the new machine is frozen: the freeze does not concern the old one.
        _ if presented < record.restored_from => Err(IdentityError::Replaced),
        // What was revoked stays revoked, and does not freeze the readmitted host.
        _ if presented < record.readmitted_from => Err(IdentityError::Revoked),
        HostStatus::Frozen => Err(IdentityError::Frozen),
        HostStatus::Active if presented > record.issued.saturating_add(AHEAD_MAX) => {
            Err(IdentityError::Unknown)
        }
        HostStatus::Active if presented < record.used => {
            Err(IdentityError::Twice { presented, used: record.used })
        }
        HostStatus::Active => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_against_each_record() {
        let active = |issued, used| IdentityRecord {
            status: HostStatus::Active,
            issued,
            used,
            restored_from: 0,
            readmitted_from: 0,
        };
        let table = [
            (1, active(1, 0), Ok(())),
            (1, active(1, 1), Ok(())),
            // Renewed, the new one not in use yet: the old one is still good.
            (1, active(2, 1), Ok(())),
            (2, active(2, 1), Ok(())),
            (1, active(2, 2), Err(IdentityError::Twice { presented: 1, used: 2 })),
            // Our CA signed it, so this hub gave it after the backup that it was restored from.
            (3, active(2, 2), Ok(())),
            (92, active(2, 2), Ok(())),
            (93, active(2, 2), Err(IdentityError::Unknown)),
        ];
        for (presented, record, expected) in table {
            assert_eq!(judge(presented, record), expected, "{presented} against {record:?}");
        }
        for (status, error) in
            [(HostStatus::Frozen, IdentityError::Frozen), (HostStatus::Revoked, IdentityError::Revoked)]
        {
            assert_eq!(
                judge(1, IdentityRecord { status, issued: 1, used: 1, restored_from: 0, readmitted_from: 0 }),
                Err(error)
            );
        }
        // The old machine gets its refusal, and neither freezes the new one nor is frozen with it.
        for status in [HostStatus::Active, HostStatus::Frozen] {
            let restored =
                IdentityRecord { status, issued: 3, used: 3, restored_from: 3, readmitted_from: 0 };
            assert_eq!(judge(2, restored), Err(IdentityError::Replaced));
            assert_eq!(judge(3, restored).is_ok(), status == HostStatus::Active);
            // Certificates before the revocation are refused; a replaced machine still gets its own refusal.
            let back = IdentityRecord { status, issued: 4, used: 4, restored_from: 2, readmitted_from: 4 };
            assert_eq!(judge(1, back), Err(IdentityError::Replaced));
            assert_eq!(judge(3, back), Err(IdentityError::Revoked));
            assert_eq!(judge(4, back).is_ok(), status == HostStatus::Active);
        }
    }
}
